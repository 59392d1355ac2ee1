/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_BENCH_BESIDE_SOCKET_H
#define MOBIUS_BENCH_BESIDE_SOCKET_H

/*
 * Shared code of the small programs of this folder: the clock, and a TCP socket between the two
 * processes as a reference. Programs that include it are compiled with Möbius or with an MPI
 * library, so it uses neither.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../suite/tcp.h"

static void check(int status, const char* call) {
  if (status == 0) return;
  fprintf(stderr, "%s failed: %d\n", call, status);
  exit(1);
}
#define CHECK(call) check((call), #call)

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare_times(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Connects both; rank 1 listens. `gather` collects the data of both ranks, in their order. Returns
 * the socket. */
static int tcp_open(int rank, void (*gather)(const void* mine, void* all, size_t bytes)) {
  struct sockaddr_in where[2];
  struct sockaddr_in mine;
  struct in_addr address;
  int listener = -1;
  memset(&mine, 0, sizeof mine);
  if (rank == 1) {
    CHECK(tcp_own_address(NULL, &address));
    listener = tcp_listen(address, &mine);
    CHECK(listener < 0);
  }
  gather(&mine, where, sizeof mine);
  const int tcp = rank == 0 ? tcp_connect(&where[1]) : tcp_accept(listener);
  CHECK(tcp < 0);
  return tcp;
}

#endif
