/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The limits: the machine's speed without any library. The program forks, and each of its two
 * processes reads and writes the other's memory by plain loads and stores.
 *
 *   pingpong:line:none:local    payload and flag with stores alone, without a fence: the fastest
 *                               way to pass bytes to another core. A cache line per direction.
 *   completion:copy:none:local  memcpy from one memory to the other by one process.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* MAP_ANONYMOUS, MADV_REMOVE, gnu_get_libc_version */
#endif

#include <errno.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../loops.h"

enum { kRanks = 2, kSlotBytes = 4096, kPage = 4096 };

/* Memory that both processes have at the same address. */
typedef struct common {
  pthread_barrier_t barrier;
  unsigned char slots[kRanks][kSlotBytes];
} common_t;

static common_t* common;
static unsigned char* arena; /* for windows: reserved, and backed where it is touched */
static size_t arena_bytes, arena_used, arena_users;
static pid_t child;

/* ---- loops ---- */

typedef uint64_t __attribute__((may_alias)) word8_t;
typedef uint32_t __attribute__((may_alias)) word4_t;
typedef uint16_t __attribute__((may_alias)) word2_t;
typedef uint8_t __attribute__((may_alias)) word1_t;

static SUITE_INLINE void* far_data(const suite_spot_t* spot) {
  return (void*)(uintptr_t)spot->far_data;
}

static SUITE_INLINE int await_flag(suite_spot_t* spot) {
  const uint64_t expected = ++spot->seen;
  while (__atomic_load_n(spot->flag, __ATOMIC_ACQUIRE) != expected) continue;
  return 0;
}

#define DEFINE_LOOP(width, size, store_data)                                                \
  static SUITE_INLINE int turn_##width(suite_spot_t* spot) {                                \
    store_data;                                                                             \
    __atomic_store_n((uint64_t*)(uintptr_t)spot->far_flag, ++spot->sent, __ATOMIC_RELEASE); \
    return 0;                                                                               \
  }                                                                                         \
  SUITE_DEFINE_THERE_AND_BACK(line_##width, turn_##width, await_flag)                       \
  SUITE_REGISTER_LOOPS(line_block_##width, "line:none", "stores alone", size, line_##width, NULL)

#define STORE_WORD(width) \
  *(volatile word##width##_t*)far_data(spot) = *(word##width##_t*)(void*)spot->data

DEFINE_LOOP(8, 8, STORE_WORD(8))
DEFINE_LOOP(4, 4, STORE_WORD(4))
DEFINE_LOOP(2, 2, STORE_WORD(2))
DEFINE_LOOP(1, 1, STORE_WORD(1))
DEFINE_LOOP(any, 0, memcpy(far_data(spot), spot->data, spot->bytes))

static SUITE_INLINE int copy(suite_spot_t* spot) {
  memcpy(far_data(spot), spot->data, spot->bytes);
  __asm__ __volatile__("" ::: "memory"); /* each copy of a loop is made */
  return 0;
}

SUITE_DEFINE_ONE_SIDE(copies, copy)
SUITE_REGISTER_LOOPS(copy_block, "copy:none", "memcpy", 0, NULL, copies)

static suite_transfer_block_t line_transfer = {
    .head = {SUITE_TRANSFER, "line", "a cache line, by stores", NULL}, .effect = SUITE_PUTS};
static suite_transfer_block_t copy_transfer = {.head = {SUITE_TRANSFER, "copy", "memcpy", NULL},
                                               .effect = SUITE_PUTS};
static suite_sync_block_t none = {.head = {SUITE_SYNC, "none", "nothing", NULL}};
SUITE_REGISTER(line_transfer)
SUITE_REGISTER(copy_transfer)
SUITE_REGISTER(none)

/* ---- memory ---- */

/* Both processes open and close windows in the same order, so they agree on the places. */
static int local_open(suite_window_t* window) {
  const size_t bytes = (window->bytes + kPage - 1) / kPage * kPage;
  if (kRanks * bytes > arena_bytes - arena_used) return ENOMEM;
  for (int rank = 0; rank < kRanks; rank++)
    window->bases[rank] = (uint64_t)(uintptr_t)(arena + arena_used + (size_t)rank * bytes);
  window->base = arena + arena_used + (size_t)window->comm->rank * bytes;
  arena_used += kRanks * bytes;
  arena_users++;
  return 0;
}

static int local_close(suite_window_t* window) {
  pthread_barrier_wait(&common->barrier); /* the peer may still use it */
  if (--arena_users == 0) arena_used = 0;
  const size_t bytes = (window->bytes + kPage - 1) / kPage * kPage;
  return madvise(window->base, bytes, MADV_REMOVE) == 0 ? 0 : errno;
}

static suite_memory_block_t local = {
    {SUITE_MEMORY, "local", "pages that both processes have", NULL}, local_open, local_close};
SUITE_REGISTER(local)

/* ---- the library ---- */

/* Without the second process the first one would wait for ever. */
static void on_end_of_child(int signal_number) {
  (void)signal_number;
  _exit(1);
}

static void* map(size_t bytes) {
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
              0);
}

static int init(int* argc, char*** argv, suite_job_t* job) {
  pthread_barrierattr_t attributes;
  (void)argc;
  (void)argv;
  common = map(sizeof *common);
  if (common == MAP_FAILED) return errno;
  for (arena_bytes = (size_t)64 << 30; (arena = map(arena_bytes)) == MAP_FAILED; arena_bytes /= 2)
    if (arena_bytes < (size_t)1 << 20) return errno;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  int error = pthread_barrier_init(&common->barrier, &attributes, kRanks);
  if (error != 0) return error;
  signal(SIGCHLD, on_end_of_child);
  child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  }
  job->rank = child == 0;
  job->size = kRanks;
  snprintf(job->library, sizeof job->library, "limit");
  snprintf(job->version, sizeof job->version, "glibc %s", gnu_get_libc_version());
  return 0;
}

static int leave(suite_job_t* job) {
  (void)job;
  signal(SIGCHLD, SIG_DFL);
  pthread_barrier_wait(&common->barrier); /* until here, the end of one is an error of both */
  int status = 0;
  if (child > 0 && (waitpid(child, &status, 0) < 0 || WIFSIGNALED(status))) return ECHILD;
  return 0;
}

/* The other process ends with this one. */
static void stop(suite_job_t* job, int status) {
  (void)job;
  if (child > 0) kill(child, SIGKILL);
  _exit(status);
}

static int barrier(suite_comm_t* comm) {
  (void)comm;
  pthread_barrier_wait(&common->barrier);
  return 0;
}

static int gather(suite_comm_t* comm, const void* mine, void* all, size_t bytes) {
  if (bytes > kSlotBytes) return EMSGSIZE;
  memcpy(common->slots[comm->rank], mine, bytes);
  barrier(comm);
  for (int rank = 0; rank < kRanks; rank++)
    memcpy((char*)all + (size_t)rank * bytes, common->slots[rank], bytes);
  return barrier(comm);
}

static int share(suite_comm_t* comm, int root, void* data, size_t bytes) {
  if (bytes > kSlotBytes) return EMSGSIZE;
  if (comm->rank == root) memcpy(common->slots[root], data, bytes);
  barrier(comm);
  memcpy(data, common->slots[root], bytes);
  return barrier(comm);
}

static const char* explain(int error) { return strerror(error); }

static int settle(suite_window_t* window) { return barrier(window->comm); }

SUITE_REGISTER_WHOLE_JOB("both processes")

const suite_library_t suite_library = {
    .name = "limits",
    .init = init,
    .leave = leave,
    .abort = stop,
    .world = suite_whole_job,
    .barrier = barrier,
    .share = share,
    .gather = gather,
    .explain = explain,
    .settle = settle,
};
