/* SPDX-License-Identifier: BSD-3-Clause */

/* ARMCI: the job, the suite's own messages, memory and synchronisations. */

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "armci_blocks.h"

/* A slot of this many bytes for each rank, in memory of each rank, for gather(). */
enum { kSlotBytes = 4096 };
static void** slots;

static int init(int* argc, char*** argv, suite_job_t* job) {
#ifdef MPI_VERSION
  TRY(MPI_Init(argc, argv));
  TRY(ARMCI_Init());
  const char version[] = "ARMCI-MPI";
#else
  TRY(ARMCI_Init_args(argc, argv));
  const char version[] = "of this project";
#endif
  job->rank = armci_msg_me();
  job->size = armci_msg_nproc();
  snprintf(job->library, sizeof job->library, "armci");
  snprintf(job->version, sizeof job->version, "%s", version);
  slots = calloc((size_t)job->size, sizeof *slots);
  if (slots == NULL) return SUITE_ARMCI_NO_MEMORY;
  return ARMCI_Malloc(slots, (armci_size_t)job->size * kSlotBytes);
}

static int leave(suite_job_t* job) {
  TRY(ARMCI_Free(slots[job->rank]));
  free(slots);
  TRY(ARMCI_Finalize());
#ifdef MPI_VERSION
  return MPI_Finalize();
#else
  return SUITE_ARMCI_OK;
#endif
}

static void stop(suite_job_t* job, int status) {
  (void)job;
  ARMCI_Error("the suite gave up", status);
}

static int barrier(suite_comm_t* comm) {
  (void)comm;
  ARMCI_Barrier();
  return SUITE_ARMCI_OK;
}

static int gather(suite_comm_t* comm, const void* mine, void* all, size_t bytes) {
  static char part[kSlotBytes]; /* transfers need writable memory */
  for (size_t begin = 0; begin < bytes; begin += kSlotBytes) {
    size_t length = bytes - begin < kSlotBytes ? bytes - begin : kSlotBytes;
    memcpy(part, (const char*)mine + begin, length);
    for (int to = 0; to < comm->size; to++)
      TRY(ARMCI_Put(part, (char*)slots[to] + (size_t)comm->rank * kSlotBytes, (int)length, to));
    ARMCI_Barrier();
    for (int from = 0; from < comm->size; from++)
      memcpy((char*)all + (size_t)from * bytes + begin,
             (char*)slots[comm->rank] + (size_t)from * kSlotBytes, length);
    ARMCI_Barrier(); /* from now on the next part may overwrite this one */
  }
  return SUITE_ARMCI_OK;
}

static int share(suite_comm_t* comm, int root, void* data, size_t bytes) {
  (void)comm;
  armci_msg_bcast(data, (int)bytes, root);
  return SUITE_ARMCI_OK;
}

static const char* explain(int error) {
  static char text[64];
  if (error == SUITE_ARMCI_NO_MEMORY) return "no memory";
  if (error == SUITE_ARMCI_NO_SUM) return "ARMCI adds int, long and double only";
  if (error == SUITE_ARMCI_NO_LONG) return "ARMCI_Rmw adds an int: 4 bytes";
  snprintf(text, sizeof text, "error %d of ARMCI or MPI", error);
  return text;
}

static int settle(suite_window_t* window) { return barrier(window->comm); }

static int tell(suite_window_t* window, const suite_sync_block_t* sync, int to) {
  (void)sync;
  uint64_t flag = ++window->sent[to];
  TRY(ARMCI_Put(&flag, armci_place(window, to, suite_flag(window, window->comm->rank)), 8, to));
  ARMCI_Fence(to);
  return SUITE_ARMCI_OK;
}

/* Lets the library make progress. ARMCI has no call for it, and ARMCI-MPI's get from the own rank
 * calls no MPI. */
static int serve(void) {
#ifdef MPI_VERSION
  int waiting;
  return MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &waiting, MPI_STATUS_IGNORE);
#else
  return SUITE_ARMCI_OK; /* this project's libarmci has a progress thread */
#endif
}

/* Through the library: plain loads may see another copy of the memory. */
static int await(suite_window_t* window, int from) {
  enum { kSpins = 1000 };
  uint64_t flag = 0, wanted = ++window->seen[from];
  int me = window->comm->rank;
  for (int spins = 0; flag < wanted; spins++) {
    if (spins > kSpins) sched_yield(); /* processes may share a processor */
    TRY(serve());
    TRY(ARMCI_Get(armci_place(window, me, suite_flag(window, from)), &flag, 8, me));
  }
  return SUITE_ARMCI_OK;
}

SUITE_REGISTER_WHOLE_JOB("all processes")

static int allocate_open(suite_window_t* window) {
  window->state = calloc(1, sizeof(armci_window_t));
  if (window->state == NULL) return SUITE_ARMCI_NO_MEMORY;
  /* bases are as large as pointers, and ARMCI_Malloc() gives those of all ranks */
  TRY(ARMCI_Malloc((void**)window->bases, (armci_size_t)window->bytes));
  window->base = armci_place(window, window->comm->rank, 0);
  return SUITE_ARMCI_OK;
}

static int allocate_close(suite_window_t* window) {
  ARMCI_Barrier();
  free(window->state);
  return ARMCI_Free(window->base);
}

static suite_memory_block_t allocate = {
    {SUITE_MEMORY, "allocate", "ARMCI_Malloc", NULL}, allocate_open, allocate_close};
SUITE_REGISTER(allocate)

static int flush_leave(suite_window_t* window, int to, int from) {
  armci_window_t* state = armci_window_of(window);
  (void)from;
  if (state->pending) ARMCI_Fence(to);
  state->pending = 0;
  return SUITE_ARMCI_OK;
}

static int complete(suite_window_t* window, int to) {
  return flush_leave(window, to, SUITE_NOBODY);
}

static int fence(suite_window_t* window, int to, int from) {
  (void)to;
  (void)from;
  return barrier(window->comm);
}

static suite_sync_block_t flush_block = {
    {SUITE_SYNC, "flush", "ARMCI_Fence after what is not a get", NULL},
    1,
    NULL,
    NULL,
    flush_leave,
    NULL,
    complete};
static suite_sync_block_t fence_block = {
    {SUITE_SYNC, "fence", "ARMCI_Barrier before and after", NULL},
    0,
    NULL,
    fence,
    fence,
    NULL,
    NULL};
SUITE_REGISTER(flush_block)
SUITE_REGISTER(fence_block)

const suite_library_t suite_library = {
    .name = "armci",
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
