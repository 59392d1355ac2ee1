/* SPDX-License-Identifier: BSD-3-Clause */

/* How processes come later: spawned, from a job that connects, or over a socket. They are alive
 * when a put into each of them has completed and all have met. */

#include <string.h>

#include "../session.h"
#include "mobius_blocks.h"

/* Both sides: a team of all, and a word of each child; the first process puts into it. */
static int meet(mob_bridge_t bridge, int is_foreign) {
  void* words[2 * SUITE_MOST_CHILDREN];
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

static int answer(void) {
  TRY(meet(mob_parent(), 0));
  return mob_bridge_disconnect(mob_parent());
}

static int spawn(suite_job_t* job, const suite_cell_t* cell, int children,
                 suite_arrival_times_t* times) {
  const char* arguments[] = {"--cells", cell->name, "--sizes", "1", NULL};
  mob_bridge_t bridge;
  times->begin = suite_now_ns();
  TRY(mob_spawn(MOB_TEAM_WORLD, job->argv[0], arguments, children, NULL, &bridge));
  times->there = suite_now_ns();
  TRY(meet(bridge, 0));
  times->alive = suite_now_ns();
  return mob_bridge_disconnect(bridge);
}

static int come(suite_job_t* job, int by_socket, suite_arrival_times_t* times) {
  mob_bridge_t bridge;
  times->begin = suite_now_ns();
  TRY(mobius_meet(job, by_socket, &bridge));
  times->there = suite_now_ns();
  TRY(meet(bridge, 1));
  times->alive = suite_now_ns();
  return mob_bridge_disconnect(bridge);
}

static int by_port(suite_job_t* job, const suite_cell_t* cell, int children,
                   suite_arrival_times_t* times) {
  (void)cell;
  (void)children;
  return come(job, 0, times);
}

static int by_socket(suite_job_t* job, const suite_cell_t* cell, int children,
                     suite_arrival_times_t* times) {
  (void)cell;
  (void)children;
  return come(job, 1, times);
}

static suite_arrival_block_t spawn_block = {
    {SUITE_ARRIVAL, "spawn", "mob_spawn", NULL}, 0, spawn, answer};
static suite_arrival_block_t connect_block = {
    {SUITE_ARRIVAL, "connect", "mob_accept, mob_connect", NULL}, 0, by_port, NULL};
static suite_arrival_block_t join_block = {
    {SUITE_ARRIVAL, "join", "mob_join", NULL}, 1, by_socket, NULL};
SUITE_REGISTER(spawn_block)
SUITE_REGISTER(connect_block)
SUITE_REGISTER(join_block)
