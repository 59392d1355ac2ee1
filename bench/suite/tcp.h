/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_TCP_H
#define SUITE_TCP_H

/**
 * @file
 * A plain TCP socket between two processes, the reference for libraries. Independent of all
 * libraries; the programs of bench/network use it, too. Functions return -1 with errno set on
 * failure.
 */

#include <netinet/in.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The address at which other hosts reach this one: that of `interface`, or, with null, that of the
 * first network interface, else that of the loopback. */
int tcp_own_address(const char* interface, struct in_addr* address);

/** A socket that listens at `address`; sets `where` to its address and port. */
int tcp_listen(struct in_addr address, struct sockaddr_in* where);

/** Connects to a listening socket, whose owner need not have called tcp_accept() yet. */
int tcp_connect(const struct sockaddr_in* where);

/** Waits for the first connection and returns it. Always closes the listener. */
int tcp_accept(int listener);

int tcp_send(int tcp, const void* data, size_t bytes);

/** Receives `bytes` bytes. Polls with MSG_DONTWAIT, else sleeps. */
int tcp_receive(int tcp, void* data, size_t bytes, int flags);

#ifdef __cplusplus
}
#endif

#endif
