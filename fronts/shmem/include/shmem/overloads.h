/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_SHMEM_OVERLOADS_H
#define MOBIUS_SHMEM_OVERLOADS_H

/* The type-generic names of OpenSHMEM as overloads, for C++. Not an interface: programs include
 * shmem.h. */

/* One overload. NAME: the part of the C function's name after the type. */
#define SHMEM_OVERLOAD_(result, name, function, parameters, arguments) \
  inline result name parameters { return function arguments; }

#define SHMEM_OVERLOAD_RMA_(A, N, T)                                                               \
  SHMEM_OVERLOAD_(void, shmem_p, shmem_##N##_p, (T * dest, T value, int pe), (dest, value, pe))    \
  SHMEM_OVERLOAD_(void, shmem_p, shmem_ctx_##N##_p, (shmem_ctx_t ctx, T * dest, T value, int pe),  \
                  (ctx, dest, value, pe))                                                          \
  SHMEM_OVERLOAD_(T, shmem_g, shmem_##N##_g, (const T* source, int pe), (source, pe))              \
  SHMEM_OVERLOAD_(T, shmem_g, shmem_ctx_##N##_g, (shmem_ctx_t ctx, const T* source, int pe),       \
                  (ctx, source, pe))                                                               \
  SHMEM_OVERLOAD_MOVE_(put, N, T)                                                                  \
  SHMEM_OVERLOAD_MOVE_(get, N, T)                                                                  \
  SHMEM_OVERLOAD_MOVE_(put_nbi, N, T)                                                              \
  SHMEM_OVERLOAD_MOVE_(get_nbi, N, T)                                                              \
  SHMEM_OVERLOAD_STRIDED_(iput, ibput, N, T)                                                       \
  SHMEM_OVERLOAD_STRIDED_(iget, ibget, N, T)                                                       \
  SHMEM_OVERLOAD_SIGNAL_(put_signal, N, T)                                                         \
  SHMEM_OVERLOAD_SIGNAL_(put_signal_nbi, N, T)                                                     \
  SHMEM_OVERLOAD_TEAM_(collect, N, T)                                                              \
  SHMEM_OVERLOAD_TEAM_(fcollect, N, T)                                                             \
  SHMEM_OVERLOAD_TEAM_(alltoall, N, T)                                                             \
  SHMEM_OVERLOAD_TEAM_(max_reduce, N, T)                                                           \
  SHMEM_OVERLOAD_TEAM_(min_reduce, N, T)                                                           \
  SHMEM_OVERLOAD_SUM_(A, N, T)                                                                     \
  SHMEM_OVERLOAD_(int, shmem_broadcast, shmem_##N##_broadcast,                                     \
                  (shmem_team_t team, T * dest, const T* source, size_t nelems, int PE_root),      \
                  (team, dest, source, nelems, PE_root))                                           \
  SHMEM_OVERLOAD_(                                                                                 \
      int, shmem_alltoalls, shmem_##N##_alltoalls,                                                 \
      (shmem_team_t team, T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems), \
      (team, dest, source, dst, sst, nelems))
#define SHMEM_OVERLOAD_MOVE_(OP, N, T)                                                            \
  SHMEM_OVERLOAD_(void, shmem_##OP, shmem_##N##_##OP,                                             \
                  (T * dest, const T* source, size_t nelems, int pe), (dest, source, nelems, pe)) \
  SHMEM_OVERLOAD_(void, shmem_##OP, shmem_ctx_##N##_##OP,                                         \
                  (shmem_ctx_t ctx, T * dest, const T* source, size_t nelems, int pe),            \
                  (ctx, dest, source, nelems, pe))
#define SHMEM_OVERLOAD_STRIDED_(I, IB, N, T)                                                 \
  SHMEM_OVERLOAD_(                                                                           \
      void, shmem_##I, shmem_##N##_##I,                                                      \
      (T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),      \
      (dest, source, dst, sst, nelems, pe))                                                  \
  SHMEM_OVERLOAD_(void, shmem_##I, shmem_ctx_##N##_##I,                                      \
                  (shmem_ctx_t ctx, T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, \
                   size_t nelems, int pe),                                                   \
                  (ctx, dest, source, dst, sst, nelems, pe))                                 \
  SHMEM_OVERLOAD_(void, shmem_##IB, shmem_##N##_##IB,                                        \
                  (T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,    \
                   size_t nblocks, int pe),                                                  \
                  (dest, source, dst, sst, bsize, nblocks, pe))                              \
  SHMEM_OVERLOAD_(void, shmem_##IB, shmem_ctx_##N##_##IB,                                    \
                  (shmem_ctx_t ctx, T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, \
                   size_t bsize, size_t nblocks, int pe),                                    \
                  (ctx, dest, source, dst, sst, bsize, nblocks, pe))
#define SHMEM_OVERLOAD_SIGNAL_(OP, N, T)                                                          \
  SHMEM_OVERLOAD_(void, shmem_##OP, shmem_##N##_##OP,                                             \
                  (T * dest, const T* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, \
                   int sig_op, int pe),                                                           \
                  (dest, source, nelems, sig_addr, signal, sig_op, pe))                           \
  SHMEM_OVERLOAD_(void, shmem_##OP, shmem_ctx_##N##_##OP,                                         \
                  (shmem_ctx_t ctx, T * dest, const T* source, size_t nelems, uint64_t* sig_addr, \
                   uint64_t signal, int sig_op, int pe),                                          \
                  (ctx, dest, source, nelems, sig_addr, signal, sig_op, pe))
#define SHMEM_OVERLOAD_TEAM_(OP, N, T)                                           \
  SHMEM_OVERLOAD_(int, shmem_##OP, shmem_##N##_##OP,                             \
                  (shmem_team_t team, T * dest, const T* source, size_t nelems), \
                  (team, dest, source, nelems))
#define SHMEM_OVERLOAD_BITS_(A, N, T)    \
  SHMEM_OVERLOAD_TEAM_(and_reduce, N, T) \
  SHMEM_OVERLOAD_TEAM_(or_reduce, N, T)  \
  SHMEM_OVERLOAD_TEAM_(xor_reduce, N, T)
#define SHMEM_OVERLOAD_SUM_(A, N, T)      \
  SHMEM_OVERLOAD_TEAM_(sum_reduce, N, T)  \
  SHMEM_OVERLOAD_TEAM_(prod_reduce, N, T) \
  SHMEM_OVERLOAD_TEAM_(sum_inscan, N, T)  \
  SHMEM_OVERLOAD_TEAM_(sum_exscan, N, T)
SHMEM_LIST_RMA_DISTINCT_(SHMEM_OVERLOAD_RMA_, )
SHMEM_LIST_INTEGERS_DISTINCT_(SHMEM_OVERLOAD_BITS_, )
SHMEM_LIST_COMPLEX_(SHMEM_OVERLOAD_SUM_, )

inline void shmem_signal_set(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) {
  shmem_ctx_signal_set(ctx, sig_addr, signal, pe);
}
inline void shmem_signal_add(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) {
  shmem_ctx_signal_add(ctx, sig_addr, signal, pe);
}
inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }

/* NAME(arguments), with and without a context. PARAMETERS and ARGUMENTS are in parentheses. */
#define SHMEM_OPEN_(...) __VA_ARGS__
#define SHMEM_OVERLOAD_AMO_OF_(result, OP, N, PARAMETERS, ARGUMENTS)           \
  SHMEM_OVERLOAD_(result, shmem_##OP, shmem_##N##_##OP, PARAMETERS, ARGUMENTS) \
  SHMEM_OVERLOAD_(result, shmem_##OP, shmem_ctx_##N##_##OP,                    \
                  (shmem_ctx_t ctx, SHMEM_OPEN_ PARAMETERS), (ctx, SHMEM_OPEN_ ARGUMENTS))
#define SHMEM_OVERLOAD_EXTENDED_(A, N, T)                                                     \
  SHMEM_OVERLOAD_AMO_OF_(T, atomic_fetch, N, (const T* source, int pe), (source, pe))         \
  SHMEM_OVERLOAD_AMO_OF_(void, atomic_set, N, (T * dest, T value, int pe), (dest, value, pe)) \
  SHMEM_OVERLOAD_AMO_OF_(T, atomic_swap, N, (T * dest, T value, int pe), (dest, value, pe))   \
  SHMEM_OVERLOAD_AMO_OF_(void, atomic_fetch_nbi, N, (T * fetch, const T* source, int pe),     \
                         (fetch, source, pe))                                                 \
  SHMEM_OVERLOAD_AMO_OF_(void, atomic_swap_nbi, N, (T * fetch, T * dest, T value, int pe),    \
                         (fetch, dest, value, pe))                                            \
  SHMEM_OVERLOAD_(T, shmem_fetch, shmem_##N##_fetch, (const T* source, int pe), (source, pe)) \
  SHMEM_OVERLOAD_(void, shmem_set, shmem_##N##_set, (T * dest, T value, int pe),              \
                  (dest, value, pe))                                                          \
  SHMEM_OVERLOAD_(T, shmem_swap, shmem_##N##_swap, (T * dest, T value, int pe), (dest, value, pe))
#define SHMEM_OVERLOAD_AMO_(A, N, T)                                                               \
  SHMEM_OVERLOAD_EXTENDED_(A, N, T)                                                                \
  SHMEM_OVERLOAD_AMO_OF_(T, atomic_compare_swap, N, (T * dest, T cond, T value, int pe),           \
                         (dest, cond, value, pe))                                                  \
  SHMEM_OVERLOAD_AMO_OF_(T, atomic_fetch_inc, N, (T * dest, int pe), (dest, pe))                   \
  SHMEM_OVERLOAD_AMO_OF_(T, atomic_fetch_add, N, (T * dest, T value, int pe), (dest, value, pe))   \
  SHMEM_OVERLOAD_AMO_OF_(void, atomic_inc, N, (T * dest, int pe), (dest, pe))                      \
  SHMEM_OVERLOAD_AMO_OF_(void, atomic_add, N, (T * dest, T value, int pe), (dest, value, pe))      \
  SHMEM_OVERLOAD_AMO_OF_(void, atomic_compare_swap_nbi, N,                                         \
                         (T * fetch, T * dest, T cond, T value, int pe),                           \
                         (fetch, dest, cond, value, pe))                                           \
  SHMEM_OVERLOAD_AMO_OF_(void, atomic_fetch_inc_nbi, N, (T * fetch, T * dest, int pe),             \
                         (fetch, dest, pe))                                                        \
  SHMEM_OVERLOAD_AMO_OF_(void, atomic_fetch_add_nbi, N, (T * fetch, T * dest, T value, int pe),    \
                         (fetch, dest, value, pe))                                                 \
  SHMEM_OVERLOAD_(T, shmem_cswap, shmem_##N##_cswap, (T * dest, T cond, T value, int pe),          \
                  (dest, cond, value, pe))                                                         \
  SHMEM_OVERLOAD_(T, shmem_finc, shmem_##N##_finc, (T * dest, int pe), (dest, pe))                 \
  SHMEM_OVERLOAD_(T, shmem_fadd, shmem_##N##_fadd, (T * dest, T value, int pe), (dest, value, pe)) \
  SHMEM_OVERLOAD_(void, shmem_inc, shmem_##N##_inc, (T * dest, int pe), (dest, pe))                \
  SHMEM_OVERLOAD_(void, shmem_add, shmem_##N##_add, (T * dest, T value, int pe), (dest, value, pe))
#define SHMEM_OVERLOAD_BIT_(OP, N, T)                                                              \
  SHMEM_OVERLOAD_AMO_OF_(void, atomic_##OP, N, (T * dest, T value, int pe), (dest, value, pe))     \
  SHMEM_OVERLOAD_AMO_OF_(T, atomic_fetch_##OP, N, (T * dest, T value, int pe), (dest, value, pe))  \
  SHMEM_OVERLOAD_AMO_OF_(void, atomic_fetch_##OP##_nbi, N, (T * fetch, T * dest, T value, int pe), \
                         (fetch, dest, value, pe))
#define SHMEM_OVERLOAD_WAITS_(A, N, T)                   \
  SHMEM_OVERLOAD_WAIT_(A, N, T)                          \
  SHMEM_OVERLOAD_WAIT_SET_(void, wait_until_all, N, T)   \
  SHMEM_OVERLOAD_WAIT_SET_(size_t, wait_until_any, N, T) \
  SHMEM_OVERLOAD_WAIT_SOME_(wait_until_some, N, T)       \
  SHMEM_OVERLOAD_WAIT_SET_(int, test_all, N, T)          \
  SHMEM_OVERLOAD_WAIT_SET_(size_t, test_any, N, T)       \
  SHMEM_OVERLOAD_WAIT_SOME_(test_some, N, T)
#define SHMEM_OVERLOAD_WAIT_(A, N, T)                                                           \
  SHMEM_OVERLOAD_(void, shmem_wait_until, shmem_##N##_wait_until, (T * ivar, int cmp, T value), \
                  (ivar, cmp, value))                                                           \
  SHMEM_OVERLOAD_(void, shmem_wait, shmem_##N##_wait, (T * ivar, T value), (ivar, value))       \
  SHMEM_OVERLOAD_(int, shmem_test, shmem_##N##_test, (T * ivar, int cmp, T value),              \
                  (ivar, cmp, value))
#define SHMEM_OVERLOAD_WAIT_SET_(result, OP, N, T)                                         \
  SHMEM_OVERLOAD_(result, shmem_##OP, shmem_##N##_##OP,                                    \
                  (T * ivars, size_t nelems, const int* status, int cmp, T value),         \
                  (ivars, nelems, status, cmp, value))                                     \
  SHMEM_OVERLOAD_(result, shmem_##OP##_vector, shmem_##N##_##OP##_vector,                  \
                  (T * ivars, size_t nelems, const int* status, int cmp, const T* values), \
                  (ivars, nelems, status, cmp, values))
#define SHMEM_OVERLOAD_WAIT_SOME_(OP, N, T)                                                     \
  SHMEM_OVERLOAD_(                                                                              \
      size_t, shmem_##OP, shmem_##N##_##OP,                                                     \
      (T * ivars, size_t nelems, size_t* indices, const int* status, int cmp, T value),         \
      (ivars, nelems, indices, status, cmp, value))                                             \
  SHMEM_OVERLOAD_(                                                                              \
      size_t, shmem_##OP##_vector, shmem_##N##_##OP##_vector,                                   \
      (T * ivars, size_t nelems, size_t* indices, const int* status, int cmp, const T* values), \
      (ivars, nelems, indices, status, cmp, values))
SHMEM_LIST_AMO_DISTINCT_(SHMEM_OVERLOAD_AMO_, )
SHMEM_LIST_AMO_REALS_(SHMEM_OVERLOAD_EXTENDED_, )
SHMEM_LIST_AMO_BITS_DISTINCT_(SHMEM_OVERLOAD_BIT_, and)
SHMEM_LIST_AMO_BITS_DISTINCT_(SHMEM_OVERLOAD_BIT_, or)
SHMEM_LIST_AMO_BITS_DISTINCT_(SHMEM_OVERLOAD_BIT_, xor)
SHMEM_LIST_AMO_DISTINCT_(SHMEM_OVERLOAD_WAITS_, )
SHMEM_LIST_SHORT_WAITS_(SHMEM_OVERLOAD_WAITS_, )

#undef SHMEM_OVERLOAD_
#undef SHMEM_OVERLOAD_RMA_
#undef SHMEM_OVERLOAD_MOVE_
#undef SHMEM_OVERLOAD_STRIDED_
#undef SHMEM_OVERLOAD_SIGNAL_
#undef SHMEM_OVERLOAD_TEAM_
#undef SHMEM_OVERLOAD_BITS_
#undef SHMEM_OVERLOAD_SUM_
#undef SHMEM_OPEN_
#undef SHMEM_OVERLOAD_AMO_OF_
#undef SHMEM_OVERLOAD_EXTENDED_
#undef SHMEM_OVERLOAD_AMO_
#undef SHMEM_OVERLOAD_BIT_
#undef SHMEM_OVERLOAD_WAIT_
#undef SHMEM_OVERLOAD_WAITS_
#undef SHMEM_OVERLOAD_WAIT_SET_
#undef SHMEM_OVERLOAD_WAIT_SOME_

#endif
