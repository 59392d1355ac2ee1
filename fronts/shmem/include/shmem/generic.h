/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_SHMEM_GENERIC_H
#define MOBIUS_SHMEM_GENERIC_H

/* The type-generic names of OpenSHMEM for C11. Not an interface: programs include shmem.h.
 *
 * A name with and without a context is told apart by the number of its arguments, and its type by
 * the object that the first pointer points to. */

#define SHMEM_ARG5_(a, b, c, d, e, ...) e
#define SHMEM_ARG6_(a, b, c, d, e, f, ...) f
#define SHMEM_ARG7_(a, b, c, d, e, f, g, ...) g
#define SHMEM_ARG8_(a, b, c, d, e, f, g, h, ...) h
#define SHMEM_ARG9_(a, b, c, d, e, f, g, h, i, ...) i
#define SHMEM_ARG4_(a, b, c, d, ...) d

struct shmem_no_type_;
#define SHMEM_ASSOC_(OP, NAME, TYPE) \
  TYPE:                              \
  shmem_##NAME##_##OP,
#define SHMEM_CTX_ASSOC_(OP, NAME, TYPE) \
  TYPE:                                  \
  shmem_ctx_##NAME##_##OP,
/* The last entry is never chosen; it has no comma behind it. */
#define SHMEM_PLAIN_(LIST, OP, first, ...) \
  _Generic(*(first), LIST(SHMEM_ASSOC_, OP) struct shmem_no_type_*: 0)(first, __VA_ARGS__)
#define SHMEM_CTX_(LIST, OP, ctx, first, ...) \
  _Generic(*(first), LIST(SHMEM_CTX_ASSOC_, OP) struct shmem_no_type_*: 0)(ctx, first, __VA_ARGS__)
#define SHMEM_TEAM_(LIST, OP, team, first, ...) \
  _Generic(*(first), LIST(SHMEM_ASSOC_, OP) struct shmem_no_type_*: 0)(team, first, __VA_ARGS__)

/* Names of 2 to 7 arguments, or one more with a context. */
#define SHMEM_BY_2_(LIST, OP, ...) \
  SHMEM_ARG4_(__VA_ARGS__, SHMEM_CTX_, SHMEM_PLAIN_, 0)(LIST, OP, __VA_ARGS__)
#define SHMEM_BY_3_(LIST, OP, ...) \
  SHMEM_ARG5_(__VA_ARGS__, SHMEM_CTX_, SHMEM_PLAIN_, 0)(LIST, OP, __VA_ARGS__)
#define SHMEM_BY_4_(LIST, OP, ...) \
  SHMEM_ARG6_(__VA_ARGS__, SHMEM_CTX_, SHMEM_PLAIN_, 0)(LIST, OP, __VA_ARGS__)
#define SHMEM_BY_5_(LIST, OP, ...) \
  SHMEM_ARG7_(__VA_ARGS__, SHMEM_CTX_, SHMEM_PLAIN_, 0)(LIST, OP, __VA_ARGS__)
#define SHMEM_BY_6_(LIST, OP, ...) \
  SHMEM_ARG8_(__VA_ARGS__, SHMEM_CTX_, SHMEM_PLAIN_, 0)(LIST, OP, __VA_ARGS__)
#define SHMEM_BY_7_(LIST, OP, ...) \
  SHMEM_ARG9_(__VA_ARGS__, SHMEM_CTX_, SHMEM_PLAIN_, 0)(LIST, OP, __VA_ARGS__)

#define SHMEM_LIST_AMO_EXTENDED_DISTINCT_(X, A) \
  SHMEM_LIST_AMO_REALS_(X, A)                   \
  SHMEM_LIST_AMO_DISTINCT_(X, A)
#define SHMEM_LIST_WAITS_DISTINCT_(X, A) \
  SHMEM_LIST_SHORT_WAITS_(X, A)          \
  SHMEM_LIST_AMO_DISTINCT_(X, A)
#define SHMEM_LIST_SUMS_DISTINCT_(X, A) \
  SHMEM_LIST_COMPLEX_(X, A)             \
  SHMEM_LIST_RMA_DISTINCT_(X, A)

/* Put and get */
#define shmem_p(...) SHMEM_BY_3_(SHMEM_LIST_RMA_DISTINCT_, p, __VA_ARGS__)
#define shmem_g(...) SHMEM_BY_2_(SHMEM_LIST_RMA_DISTINCT_, g, __VA_ARGS__)
#define shmem_put(...) SHMEM_BY_4_(SHMEM_LIST_RMA_DISTINCT_, put, __VA_ARGS__)
#define shmem_get(...) SHMEM_BY_4_(SHMEM_LIST_RMA_DISTINCT_, get, __VA_ARGS__)
#define shmem_put_nbi(...) SHMEM_BY_4_(SHMEM_LIST_RMA_DISTINCT_, put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) SHMEM_BY_4_(SHMEM_LIST_RMA_DISTINCT_, get_nbi, __VA_ARGS__)
#define shmem_iput(...) SHMEM_BY_6_(SHMEM_LIST_RMA_DISTINCT_, iput, __VA_ARGS__)
#define shmem_iget(...) SHMEM_BY_6_(SHMEM_LIST_RMA_DISTINCT_, iget, __VA_ARGS__)
#define shmem_ibput(...) SHMEM_BY_7_(SHMEM_LIST_RMA_DISTINCT_, ibput, __VA_ARGS__)
#define shmem_ibget(...) SHMEM_BY_7_(SHMEM_LIST_RMA_DISTINCT_, ibget, __VA_ARGS__)
#define shmem_put_signal(...) SHMEM_BY_7_(SHMEM_LIST_RMA_DISTINCT_, put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) SHMEM_BY_7_(SHMEM_LIST_RMA_DISTINCT_, put_signal_nbi, __VA_ARGS__)
#define shmem_signal_set(...) \
  SHMEM_ARG5_(__VA_ARGS__, shmem_ctx_signal_set, shmem_signal_set, 0)(__VA_ARGS__)
#define shmem_signal_add(...) \
  SHMEM_ARG5_(__VA_ARGS__, shmem_ctx_signal_add, shmem_signal_add, 0)(__VA_ARGS__)

/* Atomic operations */
#define shmem_atomic_fetch(...) \
  SHMEM_BY_2_(SHMEM_LIST_AMO_EXTENDED_DISTINCT_, atomic_fetch, __VA_ARGS__)
#define shmem_atomic_set(...) \
  SHMEM_BY_3_(SHMEM_LIST_AMO_EXTENDED_DISTINCT_, atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) \
  SHMEM_BY_3_(SHMEM_LIST_AMO_EXTENDED_DISTINCT_, atomic_swap, __VA_ARGS__)
#define shmem_atomic_compare_swap(...) \
  SHMEM_BY_4_(SHMEM_LIST_AMO_DISTINCT_, atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) \
  SHMEM_BY_2_(SHMEM_LIST_AMO_DISTINCT_, atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) \
  SHMEM_BY_3_(SHMEM_LIST_AMO_DISTINCT_, atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_inc(...) SHMEM_BY_2_(SHMEM_LIST_AMO_DISTINCT_, atomic_inc, __VA_ARGS__)
#define shmem_atomic_add(...) SHMEM_BY_3_(SHMEM_LIST_AMO_DISTINCT_, atomic_add, __VA_ARGS__)
#define shmem_atomic_and(...) SHMEM_BY_3_(SHMEM_LIST_AMO_BITS_DISTINCT_, atomic_and, __VA_ARGS__)
#define shmem_atomic_or(...) SHMEM_BY_3_(SHMEM_LIST_AMO_BITS_DISTINCT_, atomic_or, __VA_ARGS__)
#define shmem_atomic_xor(...) SHMEM_BY_3_(SHMEM_LIST_AMO_BITS_DISTINCT_, atomic_xor, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) \
  SHMEM_BY_3_(SHMEM_LIST_AMO_BITS_DISTINCT_, atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) \
  SHMEM_BY_3_(SHMEM_LIST_AMO_BITS_DISTINCT_, atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) \
  SHMEM_BY_3_(SHMEM_LIST_AMO_BITS_DISTINCT_, atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) \
  SHMEM_BY_3_(SHMEM_LIST_AMO_EXTENDED_DISTINCT_, atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) \
  SHMEM_BY_4_(SHMEM_LIST_AMO_EXTENDED_DISTINCT_, atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) \
  SHMEM_BY_5_(SHMEM_LIST_AMO_DISTINCT_, atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) \
  SHMEM_BY_3_(SHMEM_LIST_AMO_DISTINCT_, atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) \
  SHMEM_BY_4_(SHMEM_LIST_AMO_DISTINCT_, atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) \
  SHMEM_BY_4_(SHMEM_LIST_AMO_BITS_DISTINCT_, atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) \
  SHMEM_BY_4_(SHMEM_LIST_AMO_BITS_DISTINCT_, atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) \
  SHMEM_BY_4_(SHMEM_LIST_AMO_BITS_DISTINCT_, atomic_fetch_xor_nbi, __VA_ARGS__)

/* Deprecated names of atomic operations */
#define shmem_fetch(...) SHMEM_PLAIN_(SHMEM_LIST_AMO_EXTENDED_DISTINCT_, fetch, __VA_ARGS__)
#define shmem_set(...) SHMEM_PLAIN_(SHMEM_LIST_AMO_EXTENDED_DISTINCT_, set, __VA_ARGS__)
#define shmem_swap(...) SHMEM_PLAIN_(SHMEM_LIST_AMO_EXTENDED_DISTINCT_, swap, __VA_ARGS__)
#define shmem_cswap(...) SHMEM_PLAIN_(SHMEM_LIST_AMO_DISTINCT_, cswap, __VA_ARGS__)
#define shmem_finc(...) SHMEM_PLAIN_(SHMEM_LIST_AMO_DISTINCT_, finc, __VA_ARGS__)
#define shmem_fadd(...) SHMEM_PLAIN_(SHMEM_LIST_AMO_DISTINCT_, fadd, __VA_ARGS__)
#define shmem_inc(...) SHMEM_PLAIN_(SHMEM_LIST_AMO_DISTINCT_, inc, __VA_ARGS__)
#define shmem_add(...) SHMEM_PLAIN_(SHMEM_LIST_AMO_DISTINCT_, add, __VA_ARGS__)

/* Waiting */
#define shmem_wait_until(...) SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, wait_until, __VA_ARGS__)
#define shmem_test(...) SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, test, __VA_ARGS__)
#define shmem_wait_until_all(...) \
  SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, wait_until_all, __VA_ARGS__)
#define shmem_wait_until_any(...) \
  SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, wait_until_any, __VA_ARGS__)
#define shmem_wait_until_some(...) \
  SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, wait_until_some, __VA_ARGS__)
#define shmem_test_all(...) SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, test_all, __VA_ARGS__)
#define shmem_test_any(...) SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, test_any, __VA_ARGS__)
#define shmem_test_some(...) SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, test_some, __VA_ARGS__)
#define shmem_wait_until_all_vector(...) \
  SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any_vector(...) \
  SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) \
  SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, wait_until_some_vector, __VA_ARGS__)
#define shmem_test_all_vector(...) \
  SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, test_all_vector, __VA_ARGS__)
#define shmem_test_any_vector(...) \
  SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, test_any_vector, __VA_ARGS__)
#define shmem_test_some_vector(...) \
  SHMEM_PLAIN_(SHMEM_LIST_WAITS_DISTINCT_, test_some_vector, __VA_ARGS__)

/* Collective calls */
#define shmem_sync(...) SHMEM_ARG5_(__VA_ARGS__, shmem_sync, 0, 0, shmem_team_sync, 0)(__VA_ARGS__)
#define shmem_broadcast(...) SHMEM_TEAM_(SHMEM_LIST_RMA_DISTINCT_, broadcast, __VA_ARGS__)
#define shmem_collect(...) SHMEM_TEAM_(SHMEM_LIST_RMA_DISTINCT_, collect, __VA_ARGS__)
#define shmem_fcollect(...) SHMEM_TEAM_(SHMEM_LIST_RMA_DISTINCT_, fcollect, __VA_ARGS__)
#define shmem_alltoall(...) SHMEM_TEAM_(SHMEM_LIST_RMA_DISTINCT_, alltoall, __VA_ARGS__)
#define shmem_alltoalls(...) SHMEM_TEAM_(SHMEM_LIST_RMA_DISTINCT_, alltoalls, __VA_ARGS__)
#define shmem_and_reduce(...) SHMEM_TEAM_(SHMEM_LIST_INTEGERS_DISTINCT_, and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...) SHMEM_TEAM_(SHMEM_LIST_INTEGERS_DISTINCT_, or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) SHMEM_TEAM_(SHMEM_LIST_INTEGERS_DISTINCT_, xor_reduce, __VA_ARGS__)
#define shmem_max_reduce(...) SHMEM_TEAM_(SHMEM_LIST_RMA_DISTINCT_, max_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) SHMEM_TEAM_(SHMEM_LIST_RMA_DISTINCT_, min_reduce, __VA_ARGS__)
#define shmem_sum_reduce(...) SHMEM_TEAM_(SHMEM_LIST_SUMS_DISTINCT_, sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) SHMEM_TEAM_(SHMEM_LIST_SUMS_DISTINCT_, prod_reduce, __VA_ARGS__)
#define shmem_sum_inscan(...) SHMEM_TEAM_(SHMEM_LIST_SUMS_DISTINCT_, sum_inscan, __VA_ARGS__)
#define shmem_sum_exscan(...) SHMEM_TEAM_(SHMEM_LIST_SUMS_DISTINCT_, sum_exscan, __VA_ARGS__)

#endif
