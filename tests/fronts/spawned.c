/* SPDX-License-Identifier: BSD-3-Clause */

/* A program that Möbius' own call has spawned starts the front, which refuses and ends the job. */

#include <mobius/mobius.h>

#include <stdio.h>
#include <string.h>

#if defined FRONT_ARMCI
#include <armci.h>
static void start(void) { ARMCI_Init(); }
#elif defined FRONT_LAPI
#include <lapi.h>
static void start(void) {
  char text[LAPI_MAX_ERR_STRING] = "";
  lapi_handle_t handle;
  lapi_info_t info;
  memset(&info, 0, sizeof info);
  if (LAPI_Init(&handle, &info) == LAPI_SUCCESS) return;
  LAPI_Msg_string(LAPI_ERR_NO_ENVIRONMENT, text);
  mob_abort(1, text);
}
#elif defined FRONT_SHMEM
#include <shmem.h>
static void start(void) { shmem_init(); }
#elif defined FRONT_UPC
#include <mobius_upc/program.h>
static void start(void) { mob_upc_start(); }
#endif

int main(int argc, char** argv) {
  const char* child[] = {"child", NULL};
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  mob_team_t all;
  if (argc > 1) {
    start();
    fprintf(stderr, "the front has started\n");
    return 0;
  }
  if (mob_init() != MOB_OK || mob_spawn(MOB_TEAM_WORLD, argv[0], child, 1, NULL, &bridge) != MOB_OK)
    mob_abort(1, mob_last_error());
  (void)mob_bridge_merge(bridge, 0, &all); /* until the job ends */
  for (;;) (void)mob_poll();
}
