/* SPDX-License-Identifier: BSD-3-Clause */

/* Teams of paper 3, §3, that are made later: of a process and one that it spawned, or one of
 * another job, which connects by a port or joins over a socket. */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mobius_blocks.h"

enum { kTries = 60000, kPauseUs = 1000 }; /* until the other job is there */

/* The port of two jobs that meet, numbered by meeting: the folder of the file is theirs alone. */
static void name_port(const char* file, int meeting, char* name, size_t bytes) {
  char end[24];
  snprintf(end, sizeof end, ".%d", meeting);
  size_t room = bytes - 1 - strlen(end), length = strlen(file);
  snprintf(name, bytes, "%s%s", length > room ? file + length - room : file, end);
  for (char* at = name; *at != '\0'; at++)
    if (*at == '/') *at = '_';
}

static int accept_at(const suite_job_t* job, const char* name, mob_bridge_t* bridge) {
  mob_port_t port = MOB_PORT_NONE;
  if (job->rank == 0) TRY(mob_port_open(name, &port, NULL));
  TRY(mob_accept(MOB_TEAM_WORLD, port, NULL, bridge));
  return mob_port_close(port);
}

static int connect_to(const char* name, mob_bridge_t* bridge) {
  int error = MOB_ERR_PEER;
  /* The other job may not have opened the port yet. */
  for (int i = 0; i < kTries && error == MOB_ERR_PEER; i++) {
    error = mob_connect(MOB_TEAM_WORLD, name, NULL, bridge);
    if (error == MOB_ERR_PEER) usleep(kPauseUs);
  }
  return error;
}

static int socket_to(const suite_job_t* job, const char* name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  /* An abstract address: the first byte stays zero. */
  int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
  socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  if (job->joins) {
    for (int i = 0; i < kTries; i++) {
      if (connect(made, (struct sockaddr*)&address, bytes) == 0) return made;
      if (errno != ECONNREFUSED) break;
      usleep(kPauseUs);
    }
    close(made);
    return -1;
  }
  int end = -1;
  if (bind(made, (struct sockaddr*)&address, bytes) == 0 && listen(made, 1) == 0)
    end = accept(made, NULL, NULL);
  close(made);
  return end;
}

int mobius_meet(const suite_job_t* job, int by_socket, mob_bridge_t* bridge) {
  static int meetings;
  char name[65];
  if (job->port_file == NULL) return SUITE_MOBIUS_NO_MEETING;
  name_port(job->port_file, meetings++, name, sizeof name);
  if (by_socket) {
    int end = socket_to(job, name);
    if (end < 0) return SUITE_MOBIUS_NO_SOCKET;
    int error = mob_join(end, bridge);
    close(end);
    return error;
  }
  return job->joins ? connect_to(name, bridge) : accept_at(job, name, bridge);
}

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

/* A communicator of this process and the one at the other side of the bridge. */
static int merge(suite_job_t* job, mob_bridge_t bridge, suite_comm_t* comm) {
  mobius_comm_t* state = calloc(1, sizeof *state + 2 * sizeof(mob_rank_t));
  if (state == NULL) return MOB_ERR_MEMORY;
  memset(comm, 0, sizeof *comm);
  comm->job = job;
  comm->state = state;
  state->bridge = bridge;
  TRY(mob_bridge_merge(state->bridge, 0, &state->team));
  comm->rank = mob_team_rank(state->team);
  comm->size = mob_team_size(state->team);
  for (int i = 0; i < comm->size; i++) state->world[i] = mob_team_number(state->team, i);
  return MOB_OK;
}

static int spawn_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  mob_bridge_t bridge = mob_parent();
  if (!job->child) {
    if (job->size != 1) return SUITE_MOBIUS_NEEDS_ONE;
    const char** arguments = arguments_for(job, cell);
    if (arguments == NULL) return MOB_ERR_MEMORY;
    int error = mob_spawn(MOB_TEAM_WORLD, job->argv[0], arguments, 1, NULL, &bridge);
    free(arguments);
    TRY(error);
  }
  return merge(job, bridge, comm);
}

static int meet(suite_job_t* job, int by_socket, suite_comm_t* comm) {
  mob_bridge_t bridge;
  if (job->size != 1) return SUITE_MOBIUS_NEEDS_ONE;
  TRY(mobius_meet(job, by_socket, &bridge));
  return merge(job, bridge, comm);
}

static int applications_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  (void)cell;
  return meet(job, 0, comm);
}

static int join_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  (void)cell;
  return meet(job, 1, comm);
}

static int dynamic_close(suite_comm_t* comm) {
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
    dynamic_close};
static suite_communicator_block_t applications = {
    {SUITE_COMMUNICATOR, "applications",
     "two programs that meet (--port-file) by mob_accept() and mob_connect()", NULL},
    1,
    applications_open,
    dynamic_close};
static suite_communicator_block_t join_block = {
    {SUITE_COMMUNICATOR, "join", "the same by mob_join() over a socket", NULL},
    1,
    join_open,
    dynamic_close};
SUITE_REGISTER(spawn_block)
SUITE_REGISTER(applications)
SUITE_REGISTER(join_block)
