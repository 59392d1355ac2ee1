/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_BENCH_BESIDE_SOCKET_H
#define MOBIUS_BENCH_BESIDE_SOCKET_H

/*
 * What the small programs of this folder share: the clock, and a TCP socket between the two
 * processes, by which what they measure stands. For programs that are compiled with Möbius or with
 * an MPI library, so it knows of neither.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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

/* The address that the other host reaches this one by: of the first interface that is one. */
static struct in_addr own_address(void) {
  struct in_addr found = {htonl(INADDR_LOOPBACK)};
  struct ifaddrs* all = NULL;
  CHECK(getifaddrs(&all));
  for (const struct ifaddrs* each = all; each != NULL; each = each->ifa_next) {
    if (each->ifa_addr == NULL || each->ifa_addr->sa_family != AF_INET ||
        (each->ifa_flags & IFF_LOOPBACK) != 0 || (each->ifa_flags & IFF_UP) == 0) {
      continue;
    }
    found = ((const struct sockaddr_in*)(const void*)each->ifa_addr)->sin_addr;
    break;
  }
  freeifaddrs(all);
  return found;
}

/* How the two find each other. */
struct meeting {
  int rank;
  void* window;                            /* memory that the other one can read */
  void (*barrier)(void);                   /* of both */
  void (*read_window)(void* to, size_t n); /* the first `n` bytes of the other's window */
  void (*look)(void);                      /* serves the other one, where nobody else does */
};

/* A connection of both: rank 1 listens, and says where in its window. Returns the socket. */
static int tcp_open(const struct meeting* with) {
  struct sockaddr_in where = {.sin_family = AF_INET};
  socklen_t size = sizeof where;
  int listener = -1;
  int tcp = -1;
  if (with->rank == 1) {
    where.sin_addr = own_address();
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(bind(listener, (struct sockaddr*)&where, size));
    CHECK(listen(listener, 1));
    CHECK(getsockname(listener, (struct sockaddr*)&where, &size));
    memcpy(with->window, &where, sizeof where);
  }
  with->barrier();
  if (with->rank == 0) {
    with->read_window(&where, sizeof where);
    tcp = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(tcp, (struct sockaddr*)&where, size));
  } else {
    while ((tcp = accept(listener, NULL, NULL)) < 0 && errno == EAGAIN) with->look();
    close(listener);
  }
  const int on = 1;
  CHECK(setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
  return tcp;
}
static void tcp_send(int tcp, const char* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t now = send(tcp, data + done, bytes - done, MSG_NOSIGNAL);
    CHECK(now <= 0);
    done += (size_t)now;
  }
}
/* With MSG_DONTWAIT it polls. */
static void tcp_receive(int tcp, char* data, size_t bytes, int flags) {
  for (size_t received = 0; received < bytes;) {
    const ssize_t got = recv(tcp, data + received, bytes - received, flags);
    if (got < 0 && errno == EAGAIN) continue;
    CHECK(got <= 0);
    received += (size_t)got;
  }
}

#endif
