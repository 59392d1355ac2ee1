/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * spawn-cost (paper 3, Table 1): one process spawns n= others. Parts: spawn, mob_spawn() alone;
 * alive, until a put into each child has completed and all have met; disconnect. "Bytes" are the
 * number of children.
 */

#include <string.h>

#include "../session.h"
#include "mobius_blocks.h"

/* Slow spawns are repeated less often: no more after kEnoughNs. */
enum { kSpawns = 6, kLeastSpawns = 3, kMostChildren = 64 };
static const int64_t kEnoughNs = 3000000000;

/* Both sides: a team of all, and a word of each child; the parent puts into it. */
static int meet(mob_bridge_t bridge, int is_child) {
  void* words[kMostChildren + 1];
  void* word = NULL;
  mob_team_t all;
  TRY(mob_bridge_merge(bridge, 0, &all));
  if (is_child) {
    TRY(mob_local_alloc(sizeof(uint64_t), 0, &word));
    memset(word, 0, sizeof(uint64_t));
  }
  TRY(mob_publish(all, word, words));
  for (mob_rank_t child = 1; !is_child && child < mob_team_size(all); child++)
    TRY(mob_put8(mob_team_number(all, child), words[child], 1));
  TRY(mob_flush_all());
  TRY(mob_team_barrier(all));
  if (is_child && *(uint64_t*)word != 1) mob_abort(1, "a put has not arrived");
  return mob_team_free(all);
}

static const char* child(void) {
  int error = meet(mob_parent(), 1);
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

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  static const char* const kParts[] = {"spawn", "alive", "disconnect"};
  double times[3], samples[3][kSpawns];
  if (session->job->child) return child();
  uint64_t children = suite_option_number(cell, "n", 1);
  if (session->job->size != 1) return "one process spawns: start it with -n 1";
  if (children == 0 || children > kMostChildren) return "n is 1 to 64";
  int64_t begin = suite_now_ns();
  int spawned = 0;
  for (; spawned < kSpawns; spawned++) {
    if (spawned >= kLeastSpawns && suite_now_ns() - begin > kEnoughNs) break;
    suite_show_life(session);
    int error = spawn_once(session->job, cell, (int)children, times);
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
    {SUITE_EXPERIMENT, "spawn-cost", "mob_spawn() of n processes (paper 3, Table 1)", NULL},
    measure};
SUITE_REGISTER(spawn_cost)
