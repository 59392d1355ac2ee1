/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * spawn-cost (paper 3, Table 1): one process spawns n= others. Parts: spawn, mob_spawn() alone;
 * alive, until a put into each child has completed and all have met; disconnect. "Bytes" are the
 * number of children.
 *
 * spawn-cost:connect and spawn-cost:join: two jobs of n processes, or of one, meet (--port-file).
 * The job that does not connect measures from when both are ready.
 */

#include <string.h>

#include "../session.h"
#include "mobius_blocks.h"

/* Slow spawns are repeated less often: no more after kEnoughNs. */
enum { kSpawns = 6, kLeastSpawns = 3, kMostChildren = 64 };
static const int64_t kEnoughNs = 3000000000;

/* Both sides: a team of all, and a word of each child; the first process puts into it. */
static int meet(mob_bridge_t bridge, int is_foreign) {
  void* words[2 * kMostChildren];
  void* word = NULL;
  mob_team_t all;
  mob_mem_t mem = NULL;
  TRY(mob_bridge_merge(bridge, 0, &all));
  /* The members of the first side have the ranks that they have at home. Which side is first is
   * left to chance where processes join. */
  int is_child = mob_team_rank(all) != mob_team_rank(MOB_TEAM_WORLD);
  mob_rank_t size = mob_team_size(all), others = mob_bridge_others(bridge, NULL);
  mob_rank_t first = is_child ? others : size - others; /* of the children */
  if (is_foreign) { /* only memory of both jobs is reached from both sides */
    TRY(mob_team_alloc(all, sizeof(uint64_t), 0, &mem));
    word = mob_mem_local(mem);
  } else if (is_child) {
    TRY(mob_local_alloc(sizeof(uint64_t), 0, &word));
    memset(word, 0, sizeof(uint64_t));
  }
  TRY(mob_publish(all, word, words));
  for (mob_rank_t child = first; mob_team_rank(all) == 0 && child < size; child++)
    TRY(mob_put8(mob_team_number(all, child), words[child], 1));
  TRY(mob_flush_all());
  TRY(mob_team_barrier(all));
  if (is_child && *(uint64_t*)word != 1) mob_abort(1, "a put has not arrived");
  if (mem != NULL) TRY(mob_mem_free(mem));
  return mob_team_free(all);
}

static const char* child(void) {
  int error = meet(mob_parent(), 0);
  if (error == MOB_OK) error = mob_bridge_disconnect(mob_parent());
  return error == MOB_OK ? NULL : suite_library.explain(error);
}

static int spawn_once(const suite_job_t* job, const suite_cell_t* cell, int children,
                      double* times) {
  const char* arguments[] = {"--cells", cell->name, "--sizes", "1", NULL};
  mob_bridge_t bridge;
  int64_t begin = suite_now_ns();
  TRY(mob_spawn(MOB_TEAM_WORLD, job->argv[0], arguments, children, NULL, &bridge));
  int64_t spawned = suite_now_ns();
  TRY(meet(bridge, 0));
  int64_t alive = suite_now_ns();
  TRY(mob_bridge_disconnect(bridge));
  times[0] = (double)(spawned - begin);
  times[1] = (double)(alive - begin);
  times[2] = (double)(suite_now_ns() - alive);
  return MOB_OK;
}

/* One of two jobs that meet. */
static int connect_once(const suite_job_t* job, int by_socket, double* times) {
  mob_bridge_t bridge;
  int64_t begin = suite_now_ns();
  TRY(mobius_meet(job, by_socket, &bridge));
  int64_t connected = suite_now_ns();
  TRY(meet(bridge, 1));
  int64_t alive = suite_now_ns();
  TRY(mob_bridge_disconnect(bridge));
  times[0] = (double)(connected - begin);
  times[1] = (double)(alive - begin);
  times[2] = (double)(suite_now_ns() - alive);
  return MOB_OK;
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  const suite_job_t* job = session->job;
  int by_socket = strcmp(cell->transfer, "join") == 0;
  int connects = by_socket || strcmp(cell->transfer, "connect") == 0;
  const char* const kParts[] = {connects ? "connect" : "spawn", "alive", "disconnect"};
  double times[3], samples[3][kSpawns];
  if (job->child && !connects) return child();
  uint64_t children = suite_option_number(cell, "n", 1);
  if (!connects && job->size != 1) return "one process spawns: start it with -n 1";
  if (children == 0 || children > kMostChildren) return "n is 1 to 64";
  if (connects && (uint64_t)job->size != children) return "start as many processes as n says";
  if (by_socket && job->size != 1) return "one process joins another: start it with -n 1";
  int64_t begin = suite_now_ns();
  int spawned = 0;
  for (; spawned < kSpawns; spawned++) {
    /* Two jobs meet equally often. */
    if (!connects && spawned >= kLeastSpawns && suite_now_ns() - begin > kEnoughNs) break;
    suite_show_life(session);
    int error = connects ? connect_once(job, by_socket, times)
                         : spawn_once(job, cell, (int)children, times);
    if (error != MOB_OK) {
      if (spawned == 0) return suite_library.explain(error);
      suite_give_up(session, cell, error);
    }
    for (int part = 0; part < 3; part++) samples[part][spawned] = times[part];
  }
  for (int part = 0; part < 3; part++) {
    /* The first spawn loads things that later ones reuse. */
    suite_times_t shown = {samples[part] + 1, (uint64_t)spawned - 1, 1, (uint64_t)spawned, NULL, 0};
    suite_record_samples(session, cell, kParts[part], (size_t)children, &shown);
  }
  return NULL;
}

static suite_experiment_block_t spawn_cost = {
    {SUITE_EXPERIMENT, "spawn-cost",
     "mob_spawn() of n processes, or two jobs that meet (paper 3, Table 1)", NULL},
    measure};
SUITE_REGISTER(spawn_cost)
