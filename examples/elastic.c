/* SPDX-License-Identifier: BSD-3-Clause */

/* A job that grows while there is much to do, and shrinks again: the first processes spawn helpers,
 * share a counter of tasks with them, and go on without them. Build and run:
 *   mobcc elastic.c -o elastic && mobius run -n 2 ./elastic */

#include <mobius/mobius.h>

#include <stdio.h>

enum { TASKS = 1000, HELPERS = 2 };

static void check(mob_status_t status) {
  if (status != MOB_OK) mob_abort(1, mob_last_error()); /* ends the job and says why */
}

/* Takes tasks until none is left, and adds up their results. The counter is at member 0. */
static uint64_t work(mob_team_t team, mob_mem_t mem) {
  const mob_rank_t home = mob_team_number(team, 0);
  uint64_t task = 0;
  uint64_t sum = 0;
  void* counter;
  check(mob_mem_address(mem, home, 0, &counter));
  for (;;) {
    check(mob_fetch_add8(home, counter, 1, &task));
    if (task >= TASKS) return sum;
    sum += task * task;
  }
}

/* What all of them do together, old and new. */
static uint64_t work_together(mob_team_t team) {
  mob_mem_t mem;
  uint64_t own;
  uint64_t total = 0;
  check(mob_team_alloc(team, sizeof(uint64_t), 0, &mem)); /* zeros */
  own = work(team, mem);
  check(mob_allreduce(team, MOB_SUM, MOB_UINT64, &own, &total, 1));
  check(mob_mem_free(mem));
  return total;
}

int main(int argc, char** argv) {
  mob_bridge_t bridge;
  mob_team_t all;
  uint64_t total;
  uint64_t expected = 0;
  uint64_t task;
  int is_helper;
  (void)argc;
  check(mob_init());
  bridge = mob_parent();
  is_helper = bridge != MOB_BRIDGE_NONE;
  if (!is_helper) check(mob_spawn(MOB_TEAM_WORLD, argv[0], NULL, HELPERS, NULL, &bridge));
  check(mob_bridge_merge(bridge, 0, &all));
  total = work_together(all);
  check(mob_team_free(all));
  check(mob_bridge_disconnect(bridge)); /* the helpers leave; nobody waits for them any more */
  if (!is_helper) {
    for (task = 0; task < TASKS; ++task) expected += task * task;
    if (total != expected || work_together(MOB_TEAM_WORLD) != expected) {
      mob_abort(1, "elastic: the sum of the tasks is wrong");
    }
    if (mob_rank() == 0) printf("elastic: %d tasks, %d helpers: right\n", TASKS, HELPERS);
  }
  check(mob_finalize());
  return 0;
}
