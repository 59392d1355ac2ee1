/* SPDX-License-Identifier: BSD-3-Clause */

/* Two jobs that connect: one keeps a counter, the other one counts with it. Build and run, in two
 * shells or in one:
 *   mobcc connect.c -o connect
 *   mobius run -n 2 ./connect serve & mobius run -n 2 ./connect count */

#include <mobius/mobius.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TIMES = 1000 };
static const char* name = "mobius-example"; /* of the port, unless a second argument names it */

static void check(mob_status_t status) {
  if (status != MOB_OK) mob_abort(1, mob_last_error()); /* ends the job and says why */
}

/* Waits for the job that counts. */
static mob_bridge_t serve(void) {
  mob_port_t port = MOB_PORT_NONE;
  mob_bridge_t bridge;
  if (mob_rank() == 0) check(mob_port_open(name, &port, NULL));
  check(mob_accept(MOB_TEAM_WORLD, port, NULL, &bridge));
  check(mob_port_close(port));
  return bridge;
}

/* Connects to the job that serves, which may not be there yet. */
static mob_bridge_t find(void) {
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  mob_status_t status = MOB_ERR_PEER;
  int i;
  for (i = 0; i < 100 && status == MOB_ERR_PEER; ++i) {
    status = mob_connect(MOB_TEAM_WORLD, name, NULL, &bridge);
    if (status == MOB_ERR_PEER) usleep(100000);
  }
  check(status);
  return bridge;
}

int main(int argc, char** argv) {
  mob_bridge_t bridge;
  mob_team_t all;
  mob_mem_t mem;
  mob_rank_t home;
  void* counter;
  uint64_t old;
  int i;
  const int serves = argc > 1 && strcmp(argv[1], "serve") == 0;
  if (argc > 2) name = argv[2];
  check(mob_init());
  bridge = serves ? serve() : find();
  check(mob_bridge_merge(bridge, 0, &all)); /* first those that serve */
  check(mob_team_alloc(all, sizeof(uint64_t), 0, &mem));
  home = mob_team_number(all, 0); /* the number in the caller's own job */
  check(mob_mem_address(mem, home, 0, &counter));
  for (i = 0; i < TIMES && !serves; ++i) check(mob_fetch_add8(home, counter, 1, &old));
  check(mob_team_barrier(all));
  if (mob_team_rank(all) == 0) {
    const uint64_t expected = (uint64_t)TIMES * (uint64_t)mob_bridge_others(bridge, NULL);
    if (*(uint64_t*)mob_mem_local(mem) != expected) mob_abort(1, "connect: the count is wrong");
    printf("connect: %d processes counted to %llu\n", (int)mob_bridge_others(bridge, NULL),
           (unsigned long long)expected);
  }
  check(mob_mem_free(mem));
  check(mob_team_free(all));
  check(mob_bridge_disconnect(bridge));
  check(mob_finalize());
  return 0;
}
