/* SPDX-License-Identifier: BSD-3-Clause */

/* OpenSHMEM: the job, and the suite's own messages. */

#include <stdlib.h>
#include <string.h>

#include "shmem_blocks.h"

/* A slot of this many bytes for each rank, in symmetric memory, for gather() and share(). */
enum { kSlotBytes = 4096 };
static unsigned char* slots;

static int init(int* argc, char*** argv, suite_job_t* job) {
  int major = 0, minor = 0;
  char name[SHMEM_MAX_NAME_LEN + 1] = "";
  (void)argc;
  (void)argv;
  shmem_init();
  job->rank = shmem_my_pe();
  job->size = shmem_n_pes();
  shmem_info_get_version(&major, &minor);
  shmem_info_get_name(name);
  snprintf(job->library, sizeof job->library, "shmem");
  snprintf(job->version, sizeof job->version, "OpenSHMEM %d.%d, %s", major, minor, name);
  slots = shmem_malloc((size_t)job->size * kSlotBytes);
  return slots != NULL ? SUITE_SHMEM_OK : SUITE_SHMEM_NO_MEMORY;
}

static int leave(suite_job_t* job) {
  (void)job;
  shmem_free(slots);
  shmem_finalize();
  return SUITE_SHMEM_OK;
}

static void stop(suite_job_t* job, int status) {
  (void)job;
  shmem_global_exit(status);
}

static int barrier(suite_comm_t* comm) {
  (void)comm;
  shmem_barrier_all();
  return SUITE_SHMEM_OK;
}

static int gather(suite_comm_t* comm, const void* mine, void* all, size_t bytes) {
  for (size_t begin = 0; begin < bytes; begin += kSlotBytes) {
    size_t part = bytes - begin < kSlotBytes ? bytes - begin : kSlotBytes;
    for (int to = 0; to < comm->size; to++)
      shmem_putmem(slots + (size_t)comm->rank * kSlotBytes, (const char*)mine + begin, part, to);
    shmem_barrier_all();
    for (int from = 0; from < comm->size; from++)
      memcpy((char*)all + (size_t)from * bytes + begin, slots + (size_t)from * kSlotBytes, part);
    shmem_barrier_all(); /* from now on the next part may overwrite this one */
  }
  return SUITE_SHMEM_OK;
}

static int share(suite_comm_t* comm, int root, void* data, size_t bytes) {
  for (size_t begin = 0; begin < bytes; begin += kSlotBytes) {
    size_t part = bytes - begin < kSlotBytes ? bytes - begin : kSlotBytes;
    if (comm->rank == root)
      for (int to = 0; to < comm->size; to++)
        shmem_putmem(slots, (const char*)data + begin, part, to);
    shmem_barrier_all();
    memcpy((char*)data + begin, slots, part);
    shmem_barrier_all();
  }
  return SUITE_SHMEM_OK;
}

static const char* explain(int error) {
  switch (error) {
    case SUITE_SHMEM_NO_MEMORY:
      return "shmem_malloc: no memory (SHMEM_SYMMETRIC_SIZE says how much there is)";
    case SUITE_SHMEM_STATIC_FULL:
      return "more bytes than the static memory of the suite has";
    case SUITE_SHMEM_TOO_MANY:
      return "more ranks than the suite has locks for";
    default:
      return "no reason";
  }
}

static int settle(suite_window_t* window) { return barrier(window->comm); }

static int tell(suite_window_t* window, const suite_sync_block_t* sync, int to) {
  long* flag = (long*)shmem_place(window, to, suite_flag(window, window->comm->rank));
  (void)sync;
  shmem_long_p(flag, (long)++window->sent[to], to);
  shmem_quiet();
  return SUITE_SHMEM_OK;
}

static int await(suite_window_t* window, int from) {
  long* flag = (long*)shmem_place(window, window->comm->rank, suite_flag(window, from));
  /* Larger than expected if the other rank has already sent its next signal. */
  shmem_long_wait_until(flag, SHMEM_CMP_GE, (long)++window->seen[from]);
  return SUITE_SHMEM_OK;
}

SUITE_REGISTER_WHOLE_JOB("all PEs")

const suite_library_t suite_library = {
    .name = "shmem",
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
