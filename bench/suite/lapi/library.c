/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * LAPI on Möbius (docs/fronts/lapi.md), as the programs of paper 1 used it: a put increments a
 * counter at the target, which waits for it, and one at the origin. There is no flag. A get is
 * measured from one side, as in paper 1: LAPI signals the target of a get too early.
 */

#include <mobius/collective.h>
#include <mobius/job.h>
#include <mobius/team.h>

#include <lapi.h>
#include <stdlib.h>
#include <string.h>

#include "../loops.h"

enum { kMostTasks = 64, kPage = 4096, kStaticBytes = 20 << 20 };
/** Our own errors. */
enum { SUITE_LAPI_NO_MEMORY = -1000, SUITE_LAPI_STATIC_FULL, SUITE_LAPI_TOO_MANY };

#define TRY(call)                              \
  do {                                         \
    int error_ = (call);                       \
    if (error_ != LAPI_SUCCESS) return error_; \
  } while (0)

static lapi_handle_t handle;
static lapi_cntr_t arrived;   /* incremented by the peer */
static lapi_cntr_t completed; /* incremented by own operations */
static lapi_cntr_t* arrived_at[kMostTasks];

/* ---- loops ---- */

static SUITE_INLINE int put(suite_spot_t* spot, lapi_cntr_t* at_target) {
  TRY(LAPI_Put(handle, (unsigned)spot->peer, spot->bytes, (void*)(uintptr_t)spot->far_data,
               spot->data, at_target, NULL, &completed));
  return LAPI_Waitcntr(handle, &completed, 1, NULL);
}

static SUITE_INLINE int operate_put(suite_spot_t* spot) { return put(spot, NULL); }

static SUITE_INLINE int operate_get(suite_spot_t* spot) {
  TRY(LAPI_Get(handle, (unsigned)spot->peer, spot->bytes, (void*)(uintptr_t)spot->far_data,
               spot->data, NULL, &completed));
  return LAPI_Waitcntr(handle, &completed, 1, NULL);
}

/* The data, then the target's counter, then the origin's. */
static SUITE_INLINE int turn(suite_spot_t* spot) { return put(spot, arrived_at[spot->peer]); }

static SUITE_INLINE int await_counter(suite_spot_t* spot) {
  (void)spot;
  return LAPI_Waitcntr(handle, &arrived, 1, NULL);
}

SUITE_DEFINE_THERE_AND_BACK(puts_there_and_back, turn, await_counter)
SUITE_DEFINE_ONE_SIDE(puts_one_side, operate_put)
SUITE_DEFINE_ONE_SIDE(gets_one_side, operate_get)
SUITE_REGISTER_LOOPS(put_loops, "put:flush", "LAPI_Put, LAPI_Waitcntr", 0, puts_there_and_back,
                     puts_one_side)
SUITE_REGISTER_LOOPS(get_loops, "get:flush", "LAPI_Get, LAPI_Waitcntr", 0, NULL, gets_one_side)

static suite_transfer_block_t put_block = {.head = {SUITE_TRANSFER, "put", "LAPI_Put", NULL},
                                           .effect = SUITE_PUTS};
static suite_transfer_block_t get_block = {.head = {SUITE_TRANSFER, "get", "LAPI_Get", NULL},
                                           .effect = SUITE_GETS};
static suite_sync_block_t flush = {.head = {SUITE_SYNC, "flush", "counters", NULL}};
SUITE_REGISTER(put_block)
SUITE_REGISTER(get_block)
SUITE_REGISTER(flush)

/* ---- memory ---- */

static unsigned char static_memory[kStaticBytes] __attribute__((aligned(kPage)));
static size_t static_used; /* it is divided among the windows that are open */
static int static_users;

static int publish(suite_window_t* window) {
  void* bases[kMostTasks];
  if (window->base == NULL) return SUITE_LAPI_NO_MEMORY;
  TRY(LAPI_Address_init(handle, window->base, bases));
  for (int rank = 0; rank < window->comm->size; rank++)
    window->bases[rank] = (uint64_t)(uintptr_t)bases[rank];
  return LAPI_SUCCESS;
}

static int static_open(suite_window_t* window) {
  if (window->bytes > kStaticBytes - static_used) return SUITE_LAPI_STATIC_FULL;
  window->base = static_memory + static_used;
  static_used += (window->bytes + kPage - 1) / kPage * kPage;
  static_users++;
  return publish(window);
}

static int static_close(suite_window_t* window) {
  (void)window;
  if (--static_users == 0) static_used = 0;
  return LAPI_Gfence(handle);
}

static int malloc_open(suite_window_t* window) {
  window->base = suite_pages(window->bytes);
  return publish(window);
}

static int malloc_close(suite_window_t* window) {
  TRY(LAPI_Gfence(handle));
  free(window->base);
  return LAPI_SUCCESS;
}

static suite_memory_block_t allocate = {
    {SUITE_MEMORY, "allocate", "static memory", NULL}, static_open, static_close};
static suite_memory_block_t create = {
    {SUITE_MEMORY, "create", "malloc memory", NULL}, malloc_open, malloc_close};
SUITE_REGISTER(allocate)
SUITE_REGISTER(create)

/* ---- the library ---- */

static int init(int* argc, char*** argv, suite_job_t* job) {
  lapi_info_t info;
  void* table[kMostTasks];
  (void)argc;
  (void)argv;
  memset(&info, 0, sizeof info);
  TRY(LAPI_Init(&handle, &info));
  TRY(LAPI_Qenv(handle, TASK_ID, &job->rank));
  TRY(LAPI_Qenv(handle, NUM_TASKS, &job->size));
  snprintf(job->library, sizeof job->library, "lapi");
  snprintf(job->version, sizeof job->version, "%s", mob_version());
  if (job->size > kMostTasks) return SUITE_LAPI_TOO_MANY;
  TRY(LAPI_Address_init(handle, &arrived, table));
  for (int rank = 0; rank < job->size; rank++) arrived_at[rank] = table[rank];
  return LAPI_SUCCESS;
}

static int leave(suite_job_t* job) {
  (void)job;
  return LAPI_Term(handle);
}

static void stop(suite_job_t* job, int status) {
  (void)job;
  mob_abort(status, "the suite gave up");
}

static int barrier(suite_comm_t* comm) {
  (void)comm;
  return LAPI_Gfence(handle);
}

/* LAPI has no collective operations; the job's are those of its Möbius. */
static int share(suite_comm_t* comm, int root, void* data, size_t bytes) {
  (void)comm;
  return mob_broadcast(MOB_TEAM_WORLD, root, data, bytes);
}

static int gather(suite_comm_t* comm, const void* mine, void* all, size_t bytes) {
  (void)comm;
  return mob_allgather(MOB_TEAM_WORLD, mine, all, bytes);
}

static const char* explain(int error) {
  static char text[LAPI_MAX_ERR_STRING];
  switch (error) {
    case SUITE_LAPI_NO_MEMORY:
      return "no memory";
    case SUITE_LAPI_STATIC_FULL:
      return "more bytes than the static memory of the suite has";
    case SUITE_LAPI_TOO_MANY:
      return "more tasks than the suite has places for";
    default:
      LAPI_Msg_string(error, text);
      return text;
  }
}

static int settle(suite_window_t* window) { return barrier(window->comm); }

SUITE_REGISTER_WHOLE_JOB("all tasks")

const suite_library_t suite_library = {
    .name = "lapi",
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
