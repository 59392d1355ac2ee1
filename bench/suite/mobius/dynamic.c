/* SPDX-License-Identifier: BSD-3-Clause */

/* Teams of paper 3, §3, that are made later: of a process and one that it spawned. */

#include <stdlib.h>
#include <string.h>

#include "mobius_blocks.h"

/* The child runs the same program with the same arguments, but only this cell. */
static const char** arguments_for(const suite_job_t* job, const suite_cell_t* cell) {
  const char** arguments = calloc((size_t)job->argc + 1, sizeof *arguments);
  int count = 0;
  if (arguments == NULL) return NULL;
  for (int i = 1; i < job->argc; i++) {
    if (strcmp(job->argv[i], "--out") == 0) {
      i++;
      continue;
    }
    arguments[count++] = job->argv[i];
    if (strcmp(job->argv[i], "--cells") == 0 && i + 1 < job->argc) {
      arguments[count++] = cell->name;
      i++;
    }
  }
  return arguments;
}

static int spawn_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  if (!job->child && job->size != 1) return SUITE_MOBIUS_NEEDS_ONE;
  mobius_comm_t* state = calloc(1, sizeof *state + 2 * sizeof(mob_rank_t));
  if (state == NULL) return MOB_ERR_MEMORY;
  memset(comm, 0, sizeof *comm);
  comm->job = job;
  comm->state = state;
  state->bridge = mob_parent();
  if (!job->child) {
    const char** arguments = arguments_for(job, cell);
    if (arguments == NULL) return MOB_ERR_MEMORY;
    int error = mob_spawn(MOB_TEAM_WORLD, job->argv[0], arguments, 1, NULL, &state->bridge);
    free(arguments);
    TRY(error);
  }
  TRY(mob_bridge_merge(state->bridge, 0, &state->team));
  comm->rank = mob_team_rank(state->team);
  comm->size = mob_team_size(state->team);
  for (int i = 0; i < comm->size; i++) state->world[i] = mob_team_number(state->team, i);
  return MOB_OK;
}

static int spawn_close(suite_comm_t* comm) {
  mobius_comm_t* state = mobius_comm_of(comm);
  TRY(mob_team_free(state->team));
  TRY(mob_bridge_disconnect(state->bridge));
  free(state);
  comm->state = NULL;
  return MOB_OK;
}

static suite_communicator_block_t spawn_block = {
    {SUITE_COMMUNICATOR, "spawn", "mob_spawn() and mob_bridge_merge()", NULL},
    1,
    spawn_open,
    spawn_close};
SUITE_REGISTER(spawn_block)
