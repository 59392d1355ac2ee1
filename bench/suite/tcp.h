/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_TCP_H
#define SUITE_TCP_H

/**
 * @file
 * A plain TCP socket between two processes, by which what libraries do stands. It knows of none of
 * them; the programs of bench/network have it, too. Functions return -1 where they fail, with errno
 * set.
 */

#include <netinet/in.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The address that other hosts reach this one by: of that interface, or, with null, of the first
 * that is one; then the loopback's where there is no other. */
int tcp_own_address(const char* interface, struct in_addr* address);

/** A socket that listens there, and where that is. */
int tcp_listen(struct in_addr address, struct sockaddr_in* where);

/** To who listens there, who need not have called tcp_accept() yet. */
int tcp_connect(const struct sockaddr_in* where);

/** The first connection; waits for it. Closes the listener in any case. */
int tcp_accept(int listener);

int tcp_send(int tcp, const void* data, size_t bytes);

/** Receives all of it. With MSG_DONTWAIT it polls, else it sleeps. */
int tcp_receive(int tcp, void* data, size_t bytes, int flags);

#ifdef __cplusplus
}
#endif

#endif
