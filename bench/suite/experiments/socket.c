/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * socket: the reference for transfers between hosts: bytes from the leader to the next rank over a
 * plain TCP socket, and 8 bytes back, both ends polling (socket:put:none:none). A get, 8 bytes
 * there and the others back, takes as long. Option depth=: so many transfers in a row before the 8
 * bytes, each to a place of its own, as in bandwidth; times are per transfer.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sys/socket.h with -std=c99 */
#endif

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../session.h"
#include "../tcp.h"

typedef struct two_ends {
  suite_session_t* session;
  const suite_cell_t* cell;
  int leader, other; /* ranks; the others are idle */
  int tcp;           /* the connection of the two */
  size_t bytes;
  int depth;
  unsigned char* data; /* of `depth` transfers */
} two_ends_t;

/* The answer if all bytes are right; else the place and the value of a wrong byte. */
static const uint64_t kRight = UINT64_MAX;
enum { kByteBits = 8 };

static int is_leader(const two_ends_t* e) { return e->session->world.rank == e->leader; }
static int is_other(const two_ends_t* e) { return e->session->world.rank == e->other; }

static int go(const two_ends_t* e) {
  int error = 0;
  for (int i = 0; i < e->depth && error == 0; i++) {
    unsigned char* place = e->data + (size_t)i * e->bytes;
    if (is_leader(e)) error = tcp_send(e->tcp, place, e->bytes);
    if (is_other(e)) error = tcp_receive(e->tcp, place, e->bytes, MSG_DONTWAIT);
  }
  return error;
}

static int come_back(const two_ends_t* e, uint64_t* word) {
  if (is_leader(e)) return tcp_receive(e->tcp, word, sizeof *word, MSG_DONTWAIT);
  return is_other(e) ? tcp_send(e->tcp, word, sizeof *word) : 0;
}

/* The failure is not the library's. */
static void check(const two_ends_t* e, int error) {
  if (error != 0) suite_stop(e->session, e->cell, strerror(errno));
}

static int repeat(void* context, uint64_t repetitions) {
  const two_ends_t* e = context;
  uint64_t word = kRight;
  for (; repetitions > 0; repetitions--) {
    check(e, go(e));
    check(e, come_back(e, &word));
  }
  return 0;
}

static void check_library(const two_ends_t* e, int error) {
  if (error != 0) suite_give_up(e->session, e->cell, error);
}

static unsigned char sent(uint64_t key, size_t i) {
  return (unsigned char)(suite_mix(key, i / 8) >> (i % 8 * 8));
}

/* Sends known bytes and compares all of them. Returns 1 if right. */
static int verify(const two_ends_t* e, uint64_t round, const char* when) {
  const size_t all = e->bytes * (size_t)e->depth;
  const uint64_t key = suite_mix(suite_mix(e->session->seed, all), round);
  uint64_t word = kRight;
  for (size_t i = 0; e->data != NULL && i < all; i++)
    e->data[i] = (unsigned char)(is_leader(e) ? sent(key, i) : ~sent(key, i));
  check(e, go(e));
  for (size_t i = 0; is_other(e) && i < all && word == kRight; i++)
    if (e->data[i] != sent(key, i)) word = (uint64_t)i << kByteBits | e->data[i];
  check(e, come_back(e, &word));
  check_library(e, suite_library.share(&e->session->world, e->leader, &word, sizeof word));
  if (word == kRight) return 1;
  const uint64_t byte = word >> kByteBits;
  suite_record_wrong(e->session, e->cell, e->bytes, (int64_t)byte, sent(key, (size_t)byte),
                     (unsigned char)word, when);
  return 0;
}

static const char* measure_size(void* context, size_t bytes) {
  two_ends_t* e = context;
  suite_times_t times;
  e->bytes = bytes;
  e->depth = suite_option(e->cell, "depth", NULL) != NULL ? suite_row_of(e->cell, bytes) : 1;
  if (is_leader(e) || is_other(e)) {
    e->data = malloc(bytes * (size_t)e->depth);
    if (e->data == NULL) abort();
  }
  if (verify(e, 0, "before timing")) {
    check_library(e, suite_time(e->session, &e->session->world, repeat, e, &times));
    suite_times_divide(&times, e->depth);
    if (verify(e, 1, "after timing"))
      suite_record_samples(e->session, e->cell, NULL, bytes, &times);
    suite_times_free(&times);
  }
  free(e->data);
  e->data = NULL;
  return NULL;
}

/* Connects the two. Returns null, or the reason why it cannot. */
static const char* open_socket(two_ends_t* e) {
  static char text[SUITE_TEXT_BYTES];
  suite_comm_t* world = &e->session->world;
  const char *interface = world->job->interface, *problem = NULL;
  struct sockaddr_in mine = {0}, *all = calloc((size_t)world->size, sizeof *all);
  struct in_addr address;
  int listener = -1;
  if (all == NULL) abort();
  if (is_other(e)) {
    if (tcp_own_address(interface, &address) == 0) listener = tcp_listen(address, &mine);
    if (listener < 0) {
      snprintf(text, sizeof text, "no place to listen: %s", strerror(errno));
      problem = text;
    }
  }
  check_library(e, suite_library.gather(world, &mine, all, sizeof mine));
  if (is_leader(e) && all[e->other].sin_port != 0) {
    const struct sockaddr_in* there = &all[e->other];
    char name[INET_ADDRSTRLEN] = "";
    e->tcp = tcp_connect(there);
    if (e->tcp < 0) {
      int error = errno;
      inet_ntop(AF_INET, &there->sin_addr, name, sizeof name);
      snprintf(text, sizeof text, "no connection to %s: %s", name, strerror(error));
      problem = text;
    }
  }
  free(all);
  problem = suite_agree(e->session, world, problem);
  if (problem == NULL && is_other(e)) {
    e->tcp = tcp_accept(listener);
    check(e, e->tcp < 0);
  } else if (listener >= 0) {
    close(listener);
  }
  return problem;
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  const suite_comm_t* world = &session->world;
  two_ends_t e = {.session = session, .cell = cell, .tcp = -1};
  if (strcmp(cell->transfer, "put") != 0) return "socket measures put";
  if (world->size < 2) return "a socket has two ends";
  e.leader = world->leader;
  e.other = (world->leader + 1) % world->size;
  const char* refused = open_socket(&e);
  if (refused == NULL) refused = suite_each_size(session, measure_size, &e);
  if (e.tcp >= 0) close(e.tcp);
  return refused;
}

static suite_experiment_block_t socket_block = {
    {SUITE_EXPERIMENT, "socket", "a plain TCP socket, without the library", NULL}, measure};
SUITE_REGISTER(socket_block)
