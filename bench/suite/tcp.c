/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getifaddrs */
#endif

#include "tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int tcp_own_address(const char* interface, struct in_addr* address) {
  struct ifaddrs* all = NULL;
  const struct ifaddrs* found = NULL;
  if (getifaddrs(&all) != 0) return -1;
  for (const struct ifaddrs* each = all; each != NULL && found == NULL; each = each->ifa_next) {
    if (each->ifa_addr == NULL || each->ifa_addr->sa_family != AF_INET) continue;
    int is_first = (each->ifa_flags & IFF_LOOPBACK) == 0 && (each->ifa_flags & IFF_UP) != 0;
    if (interface != NULL ? strcmp(each->ifa_name, interface) == 0 : is_first) found = each;
  }
  address->s_addr = htonl(INADDR_LOOPBACK);
  if (found != NULL) *address = ((const struct sockaddr_in*)(const void*)found->ifa_addr)->sin_addr;
  freeifaddrs(all);
  if (found != NULL || interface == NULL) return 0;
  errno = ENODEV;
  return -1;
}

/* Closes the socket and keeps the errno of the failure. */
static int give_back(int tcp) {
  int error = errno;
  if (tcp >= 0) close(tcp);
  errno = error;
  return -1;
}

static int has_no_delay(int tcp) {
  const int on = 1;
  return setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
}

int tcp_listen(struct in_addr address, struct sockaddr_in* where) {
  struct sockaddr* generic = (struct sockaddr*)where;
  socklen_t size = sizeof *where;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  memset(where, 0, sizeof *where);
  where->sin_family = AF_INET;
  where->sin_addr = address;
  if (listener < 0 || bind(listener, generic, size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, generic, &size) != 0) {
    return give_back(listener);
  }
  return listener;
}

int tcp_connect(const struct sockaddr_in* where) {
  int tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (tcp < 0 || connect(tcp, (const struct sockaddr*)where, sizeof *where) != 0 ||
      !has_no_delay(tcp)) {
    return give_back(tcp);
  }
  return tcp;
}

int tcp_accept(int listener) {
  int tcp = accept(listener, NULL, NULL);
  give_back(listener);
  return tcp >= 0 && has_no_delay(tcp) ? tcp : give_back(tcp);
}

int tcp_send(int tcp, const void* data, size_t bytes) {
  const char* next = data;
  while (bytes > 0) {
    ssize_t sent = send(tcp, next, bytes, MSG_NOSIGNAL);
    if (sent < 0) return -1;
    next += sent;
    bytes -= (size_t)sent;
  }
  return 0;
}

int tcp_receive(int tcp, void* data, size_t bytes, int flags) {
  char* next = data;
  while (bytes > 0) {
    ssize_t got = recv(tcp, next, bytes, flags);
    if (got < 0 && errno == EAGAIN) continue;
    if (got == 0) errno = ECONNRESET;
    if (got <= 0) return -1;
    next += got;
    bytes -= (size_t)got;
  }
  return 0;
}
