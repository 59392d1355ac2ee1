/* SPDX-License-Identifier: BSD-3-Clause */

/* Fronts and processes that come later. `spawned_X`: a program that Möbius' own call has spawned
 * starts the front, which refuses and ends the job. `spawned_X beside`: the front runs in the first
 * process, which spawns another and names it as the target of a put. The front refuses. */

#include <mobius/mobius.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined FRONT_ARMCI
#include <armci.h>
static void start(void) { ARMCI_Init(); }
static void put(uint64_t* word, uint64_t* remote, mob_rank_t number) {
  ARMCI_Put(word, remote, sizeof *word, number);
}
#elif defined FRONT_LAPI
#include <lapi.h>
static lapi_handle_t handle;
static void end(int error) {
  char text[LAPI_MAX_ERR_STRING] = "";
  if (error == LAPI_SUCCESS) return;
  LAPI_Msg_string(error, text);
  mob_abort(1, text);
}
static void start(void) {
  lapi_info_t info;
  memset(&info, 0, sizeof info);
  end(LAPI_Init(&handle, &info));
}
static void put(uint64_t* word, uint64_t* remote, mob_rank_t number) {
  end(LAPI_Put(handle, (uint)number, sizeof *word, remote, word, NULL, NULL, NULL));
}
#elif defined FRONT_SHMEM
#include <shmem.h>
static void start(void) { shmem_init(); }
static void put(uint64_t* word, uint64_t* remote, mob_rank_t number) {
  (void)remote;
  shmem_putmem(shmem_malloc(sizeof *word), word, sizeof *word, number);
}
#elif defined FRONT_UPC
#include <mobius_upc/program.h>
static void start(void) { mob_upc_start(); }
/* A program in UPC names no process but by its address. */
static void put(uint64_t* word, uint64_t* remote, mob_rank_t number) {
  (void)word, (void)remote, (void)number;
}
#endif

static void check(mob_status_t status) {
  if (status != MOB_OK) mob_abort(1, mob_last_error());
}

/* A word of the last member of a team of the two. */
static uint64_t* word_of_last(mob_bridge_t bridge) {
  mob_team_t all;
  mob_mem_t mem;
  void* word = NULL;
  check(mob_bridge_merge(bridge, 0, &all)); /* until the job ends */
  check(mob_team_alloc(all, sizeof(uint64_t), 0, &mem));
  check(mob_mem_address(mem, mob_team_number(all, 1), 0, &word));
  return word;
}

int main(int argc, char** argv) {
  const char* child[] = {argc > 1 ? "plain" : "child", NULL};
  const char* what = argc > 1 ? argv[1] : "";
  mob_bridge_t bridge = MOB_BRIDGE_NONE;
  mob_rank_t number = -1;
  uint64_t word = 1;
  if (strcmp(what, "child") == 0) {
    start();
    fprintf(stderr, "the front has started\n");
    return 0;
  }
  if (strcmp(what, "beside") == 0) start();
  if (mob_initialized() == 0) check(mob_init());
  if (strcmp(what, "plain") == 0) {
    (void)word_of_last(mob_parent());
  } else {
    check(mob_spawn(MOB_TEAM_WORLD, argv[0], child, 1, NULL, &bridge));
    uint64_t* remote = word_of_last(bridge);
    (void)mob_bridge_others(bridge, &number);
    if (strcmp(what, "beside") == 0) {
      put(&word, remote, number);
      mob_abort(1, "the front has put to it");
    }
  }
  for (;;) (void)mob_poll();
}
