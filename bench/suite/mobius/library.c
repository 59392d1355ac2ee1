/* SPDX-License-Identifier: BSD-3-Clause */

/* Möbius through its public C interface. */

#include <stdlib.h>
#include <string.h>

#include "mobius_blocks.h"

/* A communicator with its ranks in the order of the world's, or in reverse order. */
static int make(suite_job_t* job, int key, suite_comm_t* comm) {
  mobius_comm_t* state = calloc(1, sizeof *state + (size_t)job->size * sizeof(mob_rank_t));
  if (state == NULL) return MOB_ERR_MEMORY;
  memset(comm, 0, sizeof *comm);
  comm->job = job;
  comm->state = state;
  TRY(mob_team_split(MOB_TEAM_WORLD, 0, key, &state->team));
  comm->rank = mob_team_rank(state->team);
  comm->size = mob_team_size(state->team);
  for (int i = 0; i < comm->size; i++) state->world[i] = mob_team_number(state->team, i);
  return MOB_OK;
}

static int team_close(suite_comm_t* comm) {
  mobius_comm_t* state = mobius_comm_of(comm);
  TRY(mob_team_free(state->team));
  free(state);
  comm->state = NULL;
  return MOB_OK;
}

static int in_order(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  (void)cell;
  return make(job, job->rank, comm);
}

static int reordered_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  (void)cell;
  return make(job, -job->rank, comm);
}

static int world_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  mobius_comm_t* state = calloc(1, sizeof *state + (size_t)job->size * sizeof(mob_rank_t));
  (void)cell;
  if (state == NULL) return MOB_ERR_MEMORY;
  memset(comm, 0, sizeof *comm);
  comm->job = job;
  comm->state = state;
  state->team = MOB_TEAM_WORLD;
  comm->rank = job->rank;
  comm->size = job->size;
  for (int i = 0; i < comm->size; i++) state->world[i] = mob_team_number(MOB_TEAM_WORLD, i);
  return MOB_OK;
}

static int world_close(suite_comm_t* comm) {
  free(comm->state);
  comm->state = NULL;
  return MOB_OK;
}

static suite_communicator_block_t world_block = {
    {SUITE_COMMUNICATOR, "world", "the job", NULL}, 0, world_open, world_close};
static suite_communicator_block_t split = {
    {SUITE_COMMUNICATOR, "split", "a team of all ranks, as they were", NULL},
    0,
    in_order,
    team_close};
static suite_communicator_block_t reordered = {
    {SUITE_COMMUNICATOR, "reordered", "a team of all ranks, the other way round", NULL},
    0,
    reordered_open,
    team_close};
SUITE_REGISTER(world_block)
SUITE_REGISTER(split)
SUITE_REGISTER(reordered)

static int init(int* argc, char*** argv, suite_job_t* job) {
  (void)argc;
  (void)argv;
  TRY(mob_init());
  job->rank = mob_team_rank(MOB_TEAM_WORLD);
  job->child = mob_parent() != MOB_BRIDGE_NONE;
  job->size = mob_size();
  snprintf(job->library, sizeof job->library, "mobius");
  snprintf(job->version, sizeof job->version, "%s", mob_version());
  return MOB_OK;
}

static int leave(suite_job_t* job) {
  (void)job;
  return mob_finalize();
}

static void stop(suite_job_t* job, int status) {
  (void)job;
  mob_abort(status, "the suite gave up");
}

static int world(suite_job_t* job, suite_comm_t* comm) { return world_open(job, NULL, comm); }

static int barrier(suite_comm_t* comm) { return mob_team_barrier(mobius_comm_of(comm)->team); }

static int share(suite_comm_t* comm, int root, void* data, size_t bytes) {
  return mob_broadcast(mobius_comm_of(comm)->team, root, data, bytes);
}

static int gather(suite_comm_t* comm, const void* mine, void* all, size_t bytes) {
  return mob_allgather(mobius_comm_of(comm)->team, mine, all, bytes);
}

static const char* explain(int error) {
  if (error == SUITE_MOBIUS_NEEDS_ONE) return "one process spawns: start it with -n 1";
  if (error == SUITE_MOBIUS_NO_MEETING)
    return "two programs meet by --port-file, and this one has none";
  if (error == SUITE_MOBIUS_NO_SOCKET) return "the other program was not there, or had no socket";
  const char* text = mob_last_error();
  return text[0] != '\0' ? text : mob_status_name((mob_status_t)error);
}

static int settle(suite_window_t* window) { return barrier(window->comm); }

static int tell(suite_window_t* window, const suite_sync_block_t* sync, int to) {
  mob_rank_t rank = mobius_rank_of(window, to);
  (void)sync;
  window->sent[to]++;
  TRY(mob_put8(rank, mobius_place(window, to, suite_flag(window, window->comm->rank)),
               window->sent[to]));
  return mob_flush(rank);
}

static int await(suite_window_t* window, int from) {
  const uint64_t* flag = (const uint64_t*)(const void*)(window->base + suite_flag(window, from));
  /* Larger than expected if the other rank has already sent its next signal. */
  return mob_wait_until_u8(flag, MOB_GE, ++window->seen[from]);
}

static void prepare(suite_spot_t* spot) {
  const suite_window_t* window = spot->window;
  spot->peer = mobius_rank_of(window, spot->peer);
  spot->own = mobius_rank_of(window, spot->own);
  /* What else than stores of a process of this host may write the flag? */
  spot->remark = !mob_is_host_mate(spot->peer) || mobius_window_of(window)->mem == NULL;
}

/* A hint even for the job's own policy, so that all policies have the same cost. */
static int rule(suite_window_t* window, const char* policy) {
  static const char* const kNames[] = {"adaptive", "fifo", "interleave", "gets-first", "aggregate"};
  for (int i = 0; i < (int)(sizeof kNames / sizeof kNames[0]); i++)
    if (strcmp(policy, kNames[i]) == 0)
      return mob_mem_schedule(mobius_window_of(window)->mem,
                              (mob_schedule_t)(MOB_SCHEDULE_ADAPTIVE + i));
  return MOB_ERR_ARGUMENT;
}

const suite_library_t suite_library = {
    .name = "mobius",
    .init = init,
    .leave = leave,
    .abort = stop,
    .world = world,
    .barrier = barrier,
    .share = share,
    .gather = gather,
    .explain = explain,
    .settle = settle,
    .tell = tell,
    .await = await,
    .prepare = prepare,
    .rule = rule,
};
