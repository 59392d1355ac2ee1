/* SPDX-License-Identifier: BSD-3-Clause */

/* UPC: the job, the suite's own messages, memory and synchronisations. */

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "upc_blocks.h"

void mob_upc_start(void); /* main() is in C */

/* A slot of this many bytes for each thread, in memory of each thread, for gather() and share(). */
enum { kSlotBytes = 4096 };
static upc_window_t slots;

/* Allocates so many bytes with affinity to each thread. Collective. */
static int parts_open(upc_window_t* window, size_t bytes) {
  window->memory = upc_all_alloc(THREADS, bytes);
  window->parts = malloc((size_t)THREADS * sizeof *window->parts);
  if (window->memory == NULL || window->parts == NULL) return SUITE_UPC_NO_MEMORY;
  for (int thread = 0; thread < THREADS; thread++)
    window->parts[thread] = (upc_part_t)((shared unsigned char*)window->memory + thread);
  return SUITE_UPC_OK;
}

static void parts_close(upc_window_t* window) {
  upc_all_free(window->memory);
  free(window->parts);
}

static int init(int* argc, char*** argv, suite_job_t* job) {
  (void)argc;
  (void)argv;
  mob_upc_start();
  job->rank = MYTHREAD;
  job->size = THREADS;
  snprintf(job->library, sizeof job->library, "upc");
  snprintf(job->version, sizeof job->version, "UPC %ld", (long)__UPC_VERSION__);
  return parts_open(&slots, (size_t)THREADS * kSlotBytes);
}

static int leave(suite_job_t* job) {
  (void)job;
  parts_close(&slots);
  return SUITE_UPC_OK;
}

static void stop(suite_job_t* job, int status) {
  (void)job;
  upc_global_exit(status);
}

static int barrier(suite_comm_t* comm) {
  (void)comm;
  upc_barrier;
  return SUITE_UPC_OK;
}

static int gather(suite_comm_t* comm, const void* mine, void* all, size_t bytes) {
  for (size_t begin = 0; begin < bytes; begin += kSlotBytes) {
    size_t part = bytes - begin < kSlotBytes ? bytes - begin : kSlotBytes;
    upc_memput(slots.parts[MYTHREAD], (const char*)mine + begin, part);
    upc_barrier;
    for (int from = 0; from < comm->size; from++)
      upc_memget((char*)all + (size_t)from * bytes + begin, slots.parts[from], part);
    upc_barrier; /* from now on the next part may overwrite this one */
  }
  return SUITE_UPC_OK;
}

static int share(suite_comm_t* comm, int root, void* data, size_t bytes) {
  for (size_t begin = 0; begin < bytes; begin += kSlotBytes) {
    size_t part = bytes - begin < kSlotBytes ? bytes - begin : kSlotBytes;
    if (comm->rank == root) upc_memput(slots.parts[root], (const char*)data + begin, part);
    upc_barrier;
    upc_memget((char*)data + begin, slots.parts[root], part);
    upc_barrier;
  }
  return SUITE_UPC_OK;
}

static const char* explain(int error) {
  return error == SUITE_UPC_NO_MEMORY ? "upc_all_alloc: no memory" : "no reason";
}

static int settle(suite_window_t* window) { return barrier(window->comm); }

static int tell(suite_window_t* window, const suite_sync_block_t* sync, int to) {
  (void)sync;
  *(strict shared [] uint64_t*)upc_place(window, to, suite_flag(window, MYTHREAD)) = ++window->sent[to];
  return SUITE_UPC_OK;
}

static int await(suite_window_t* window, int from) {
  enum { kSpins = 1000 };
  strict shared [] uint64_t* flag =
      (strict shared [] uint64_t*)upc_place(window, MYTHREAD, suite_flag(window, from));
  uint64_t wanted = ++window->seen[from];
  /* Larger than expected if the other thread has already sent its next signal. */
  for (int spins = 0; *flag < wanted; spins++)
    if (spins > kSpins) sched_yield(); /* threads may share a processor */
  return SUITE_UPC_OK;
}

SUITE_REGISTER_WHOLE_JOB("all threads")

static int allocate_open(suite_window_t* window) {
  upc_window_t* state = calloc(1, sizeof *state);
  if (state == NULL) return SUITE_UPC_NO_MEMORY;
  window->state = state;
  int error = parts_open(state, window->bytes);
  if (error == SUITE_UPC_OK) window->base = (unsigned char*)state->parts[MYTHREAD];
  return error;
}

static int allocate_close(suite_window_t* window) {
  parts_close(window->state);
  free(window->state);
  window->state = NULL;
  return SUITE_UPC_OK;
}

static suite_memory_block_t allocate = {
    {SUITE_MEMORY, "allocate", "upc_all_alloc", NULL}, allocate_open, allocate_close};
SUITE_REGISTER(allocate)

static int flush_leave(suite_window_t* window, int to, int from) {
  (void)window;
  (void)from;
  if (to != SUITE_NOBODY) upc_fence;
  return SUITE_UPC_OK;
}

static int fence(suite_window_t* window, int to, int from) {
  (void)to;
  (void)from;
  return barrier(window->comm);
}

static int complete(suite_window_t* window, int to) {
  return flush_leave(window, to, SUITE_NOBODY);
}

static suite_sync_block_t flush_block = {
    {SUITE_SYNC, "flush", "upc_fence", NULL}, 1, NULL, NULL, flush_leave, NULL, complete};
static suite_sync_block_t fence_block = {
    {SUITE_SYNC, "fence", "upc_barrier before and after", NULL}, 0, NULL, fence, fence, NULL, NULL};
SUITE_REGISTER(flush_block)
SUITE_REGISTER(fence_block)

const suite_library_t suite_library = {
    .name = "upc",
    .init = init,
    .leave = leave,
    .abort = stop,
    .world = suite_whole_job,
    .barrier = barrier,
    .share = share,
    .gather = gather,
    .explain = explain,
    .settle = settle,
    .tell = tell,
    .await = await,
};
