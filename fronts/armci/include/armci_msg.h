/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_ARMCI_MSG_H
#define MOBIUS_ARMCI_MSG_H

/**
 * @file
 * Messages and collective operations of ARMCI. Also included by <armci.h> and as <message.h>.
 *
 * Scopes: SCOPE_ALL is all processes, SCOPE_NODE those of the caller's domain (armci_domain_id()),
 * SCOPE_MASTERS the first process of each domain. Roots are ranks in the job.
 *
 * Operations of reductions: "+", "*", "max", "min", "absmax", "absmin", and for integers "or", "|",
 * "bor", "&", "band", "&&", "land", "||", "lor".
 */

#include <armci.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

enum armci_scope_e { SCOPE_ALL, SCOPE_NODE, SCOPE_MASTERS };
enum armci_type_e { ARMCI_INT, ARMCI_LONG, ARMCI_LONG_LONG, ARMCI_FLOAT, ARMCI_DOUBLE };

int armci_msg_me(void);
int armci_msg_nproc(void);
/** Ends the job. */
void armci_msg_abort(int code);
/** @return seconds since a fixed time in the past */
double armci_timer(void);

/** Sends `bytes` bytes; returns when the caller may reuse the buffer. */
void armci_msg_snd(int tag, void* buffer, int bytes, int to);
/**
 * Receives the next message with a tag from a process. A message longer than `capacity` is an
 * error. `received` may be null.
 */
void armci_msg_rcv(int tag, void* buffer, int capacity, int* received, int from);
/** As armci_msg_rcv(), from any process. @return the sender */
int armci_msg_rcvany(int tag, void* buffer, int capacity, int* received);

void armci_msg_barrier(void);
void parmci_msg_barrier(void);
void armci_msg_group_barrier(ARMCI_Group* group);
void parmci_msg_group_barrier(ARMCI_Group* group);
/** Computes the caller's neighbours in a binary tree of a scope; -1: no such neighbour. */
void armci_msg_bintree(int scope, int* root, int* up, int* left, int* right);

void armci_msg_bcast(void* buffer, int bytes, int root);
void armci_msg_brdcst(void* buffer, int bytes, int root);
void armci_msg_bcast_scope(int scope, void* buffer, int bytes, int root);
void armci_msg_group_bcast_scope(int scope, void* buffer, int bytes, int root, ARMCI_Group* group);

/** Combines the vectors of all processes; the scope's first process gets the result. */
void armci_msg_reduce(void* x, int n, char* op, int type);
void armci_msg_reduce_scope(int scope, void* x, int n, char* op, int type);
/**
 * Finds the record of `bytes` bytes whose first element, of a type, is "min" or "max" among the
 * contributing processes; all processes get it. Of equal records, that of the lowest rank.
 */
void armci_msg_sel(void* x, int bytes, char* op, int type, int contribute);
void armci_msg_sel_scope(int scope, void* x, int bytes, char* op, int type, int contribute);

/** Combines the vectors of all processes; all get the result. */
void armci_msg_gop_scope(int scope, void* x, int n, char* op, int type);
void armci_msg_igop(int* x, int n, char* op);
void armci_msg_lgop(long* x, int n, char* op);
void armci_msg_llgop(long long* x, int n, char* op);
void armci_msg_fgop(float* x, int n, char* op);
void armci_msg_dgop(double* x, int n, char* op);
void armci_msg_group_gop_scope(int scope, void* x, int n, char* op, int type, ARMCI_Group* group);
void armci_msg_group_igop(int* x, int n, char* op, ARMCI_Group* group);
void armci_msg_group_lgop(long* x, int n, char* op, ARMCI_Group* group);
void armci_msg_group_llgop(long long* x, int n, char* op, ARMCI_Group* group);
void armci_msg_group_fgop(float* x, int n, char* op, ARMCI_Group* group);
void armci_msg_group_dgop(double* x, int n, char* op, ARMCI_Group* group);

/** Broadcasts in SCOPE_NODE, from its first process. */
void armci_msg_clus_brdcst(void* buffer, int bytes);
void armci_msg_clus_igop(int* x, int n, char* op);
void armci_msg_clus_lgop(long* x, int n, char* op);
void armci_msg_clus_llgop(long long* x, int n, char* op);
void armci_msg_clus_fgop(float* x, int n, char* op);
void armci_msg_clus_dgop(double* x, int n, char* op);

/**
 * Gives every process the entry of each: `ptr_ar` has one entry per process, of which the caller
 * has set its own.
 */
void armci_exchange_address(void** ptr_ar, int n);
/** As armci_exchange_address(), in a group. */
void armci_exchange_address_grp(void** ptr_ar, int n, ARMCI_Group* group);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#endif
