/* SPDX-License-Identifier: BSD-3-Clause */

/* Every function of OpenSHMEM 1.6, and those of former versions that programs still call, as
 * SHMEM_FUNCTION_(RESULT, NAME, PARAMETERS). Not an interface: shmem.h includes it to declare
 * shmem_NAME, pshmem.h to declare pshmem_NAME. It has no guard, because it is included twice. */

/* clang-format off: one line per function reads best */

/* --- Set-up, and questions about it --- */
SHMEM_FUNCTION_(void, init, (void))
SHMEM_FUNCTION_(int, init_thread, (int requested, int* provided))
SHMEM_FUNCTION_(void, query_thread, (int* provided))
SHMEM_FUNCTION_(void, query_initialized, (int* initialized))
SHMEM_FUNCTION_(void, finalize, (void))
SHMEM_FUNCTION_(SHMEM_NORETURN_ void, global_exit, (int status))
SHMEM_FUNCTION_(int, my_pe, (void))
SHMEM_FUNCTION_(int, n_pes, (void))
SHMEM_FUNCTION_(int, pe_accessible, (int pe))
SHMEM_FUNCTION_(int, addr_accessible, (const void* addr, int pe))
SHMEM_FUNCTION_(void*, ptr, (const void* dest, int pe))
SHMEM_FUNCTION_(void*, team_ptr, (shmem_team_t team, const void* dest, int pe))
SHMEM_FUNCTION_(void, info_get_version, (int* major, int* minor))
SHMEM_FUNCTION_(void, info_get_name, (char* name))
SHMEM_FUNCTION_(void, pcontrol, (int level, ...))

/* --- Symmetric heap --- */
SHMEM_FUNCTION_(void*, malloc, (size_t size))
SHMEM_FUNCTION_(void*, calloc, (size_t count, size_t size))
SHMEM_FUNCTION_(void*, align, (size_t alignment, size_t size))
SHMEM_FUNCTION_(void*, malloc_with_hints, (size_t size, long hints))
SHMEM_FUNCTION_(void*, realloc, (void* ptr, size_t size))
SHMEM_FUNCTION_(void, free, (void* ptr))

/* --- Teams and contexts --- */
SHMEM_FUNCTION_(int, team_my_pe, (shmem_team_t team))
SHMEM_FUNCTION_(int, team_n_pes, (shmem_team_t team))
SHMEM_FUNCTION_(int, team_get_config,
                (shmem_team_t team, long config_mask, shmem_team_config_t* config))
SHMEM_FUNCTION_(int, team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team))
SHMEM_FUNCTION_(int, team_split_strided,
                (shmem_team_t parent_team, int start, int stride, int size,
                 const shmem_team_config_t* config, long config_mask, shmem_team_t* new_team))
SHMEM_FUNCTION_(int, team_split_2d,
                (shmem_team_t parent_team, int xrange, const shmem_team_config_t* xaxis_config,
                 long xaxis_mask, shmem_team_t* xaxis_team, const shmem_team_config_t* yaxis_config,
                 long yaxis_mask, shmem_team_t* yaxis_team))
SHMEM_FUNCTION_(void, team_destroy, (shmem_team_t team))
SHMEM_FUNCTION_(int, team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t* ctx))
SHMEM_FUNCTION_(int, ctx_create, (long options, shmem_ctx_t* ctx))
SHMEM_FUNCTION_(void, ctx_destroy, (shmem_ctx_t ctx))
SHMEM_FUNCTION_(int, ctx_get_team, (shmem_ctx_t ctx, shmem_team_t* team))
SHMEM_FUNCTION_(void, ctx_session_start,
                (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t* config,
                 long config_mask))
SHMEM_FUNCTION_(void, ctx_session_stop, (shmem_ctx_t ctx))

/* --- Completion and order --- */
SHMEM_FUNCTION_(void, quiet, (void))
SHMEM_FUNCTION_(void, ctx_quiet, (shmem_ctx_t ctx))
SHMEM_FUNCTION_(void, pe_quiet, (const int* target_pes, size_t npes))
SHMEM_FUNCTION_(void, ctx_pe_quiet, (shmem_ctx_t ctx, const int* target_pes, size_t npes))
SHMEM_FUNCTION_(void, fence, (void))
SHMEM_FUNCTION_(void, ctx_fence, (shmem_ctx_t ctx))

/* --- Put and get --- */
#define SHMEM_RMA_FUNCTIONS_(A, N, T)                                              \
  SHMEM_FUNCTION_(void, N##_p, (T * dest, T value, int pe))                        \
  SHMEM_FUNCTION_(T, N##_g, (const T* source, int pe))                             \
  SHMEM_FUNCTION_(void, ctx_##N##_p, (shmem_ctx_t ctx, T * dest, T value, int pe)) \
  SHMEM_FUNCTION_(T, ctx_##N##_g, (shmem_ctx_t ctx, const T* source, int pe))      \
  SHMEM_BLOCK_FUNCTIONS_(N##_put, N##_get, N##_iput, N##_iget, N##_ibput, N##_ibget, T)
/* The forms that elements of a size share with elements of a type. */
#define SHMEM_BLOCK_FUNCTIONS_(PUT, GET, IPUT, IGET, IBPUT, IBGET, T) \
  SHMEM_STRAIGHT_FUNCTIONS_(PUT, GET, T)                              \
  SHMEM_STRIDED_FUNCTIONS_(IPUT, IBPUT, T)                            \
  SHMEM_STRIDED_FUNCTIONS_(IGET, IBGET, T)
#define SHMEM_STRAIGHT_FUNCTIONS_(PUT, GET, T)                                                    \
  SHMEM_FUNCTION_(void, PUT, (T * dest, const T* source, size_t nelems, int pe))                  \
  SHMEM_FUNCTION_(void, GET, (T * dest, const T* source, size_t nelems, int pe))                  \
  SHMEM_FUNCTION_(void, PUT##_nbi, (T * dest, const T* source, size_t nelems, int pe))            \
  SHMEM_FUNCTION_(void, GET##_nbi, (T * dest, const T* source, size_t nelems, int pe))            \
  SHMEM_FUNCTION_(void, PUT##_signal,                                                             \
                  (T * dest, const T* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, \
                   int sig_op, int pe))                                                           \
  SHMEM_FUNCTION_(void, PUT##_signal_nbi,                                                         \
                  (T * dest, const T* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, \
                   int sig_op, int pe))                                                           \
  SHMEM_FUNCTION_(void, ctx_##PUT,                                                                \
                  (shmem_ctx_t ctx, T * dest, const T* source, size_t nelems, int pe))            \
  SHMEM_FUNCTION_(void, ctx_##GET,                                                                \
                  (shmem_ctx_t ctx, T * dest, const T* source, size_t nelems, int pe))            \
  SHMEM_FUNCTION_(void, ctx_##PUT##_nbi,                                                          \
                  (shmem_ctx_t ctx, T * dest, const T* source, size_t nelems, int pe))            \
  SHMEM_FUNCTION_(void, ctx_##GET##_nbi,                                                          \
                  (shmem_ctx_t ctx, T * dest, const T* source, size_t nelems, int pe))            \
  SHMEM_FUNCTION_(void, ctx_##PUT##_signal,                                                       \
                  (shmem_ctx_t ctx, T * dest, const T* source, size_t nelems, uint64_t* sig_addr, \
                   uint64_t signal, int sig_op, int pe))                                          \
  SHMEM_FUNCTION_(void, ctx_##PUT##_signal_nbi,                                                   \
                  (shmem_ctx_t ctx, T * dest, const T* source, size_t nelems, uint64_t* sig_addr, \
                   uint64_t signal, int sig_op, int pe))
#define SHMEM_STRIDED_FUNCTIONS_(I, IB, T)                                                       \
  SHMEM_FUNCTION_(                                                                               \
      void, I, (T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)) \
  SHMEM_FUNCTION_(void, ctx_##I,                                                                 \
                  (shmem_ctx_t ctx, T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,     \
                   size_t nelems, int pe))                                                       \
  SHMEM_FUNCTION_(void, IB,                                                                      \
                  (T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,        \
                   size_t nblocks, int pe))                                                      \
  SHMEM_FUNCTION_(void, ctx_##IB,                                                                \
                  (shmem_ctx_t ctx, T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,     \
                   size_t bsize, size_t nblocks, int pe))
SHMEM_LIST_RMA_(SHMEM_RMA_FUNCTIONS_, )
/* put8_signal, as PUT##_signal makes it, is also the standard's name of the sized form. */
#define SHMEM_SIZED_FUNCTIONS_(A, BITS, BYTES)                                                   \
  SHMEM_BLOCK_FUNCTIONS_(put##BITS, get##BITS, iput##BITS, iget##BITS, ibput##BITS, ibget##BITS, \
                         void)
SHMEM_LIST_SIZES_(SHMEM_SIZED_FUNCTIONS_, )
SHMEM_STRAIGHT_FUNCTIONS_(putmem, getmem, void)
SHMEM_FUNCTION_(uint64_t, signal_fetch, (const uint64_t* sig_addr))
SHMEM_FUNCTION_(void, signal_set, (uint64_t* sig_addr, uint64_t signal, int pe))
SHMEM_FUNCTION_(void, signal_add, (uint64_t* sig_addr, uint64_t signal, int pe))
SHMEM_FUNCTION_(void, ctx_signal_set,
                (shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe))
SHMEM_FUNCTION_(void, ctx_signal_add,
                (shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe))
#undef SHMEM_RMA_FUNCTIONS_
#undef SHMEM_BLOCK_FUNCTIONS_
#undef SHMEM_STRAIGHT_FUNCTIONS_
#undef SHMEM_STRIDED_FUNCTIONS_
#undef SHMEM_SIZED_FUNCTIONS_

/* --- Atomic operations --- */
#define SHMEM_AMO_EXTENDED_FUNCTIONS_(A, N, T)                                              \
  SHMEM_FUNCTION_(T, N##_atomic_fetch, (const T* source, int pe))                           \
  SHMEM_FUNCTION_(void, N##_atomic_set, (T * dest, T value, int pe))                        \
  SHMEM_FUNCTION_(T, N##_atomic_swap, (T * dest, T value, int pe))                          \
  SHMEM_FUNCTION_(void, N##_atomic_fetch_nbi, (T * fetch, const T* source, int pe))         \
  SHMEM_FUNCTION_(void, N##_atomic_swap_nbi, (T * fetch, T * dest, T value, int pe))        \
  SHMEM_FUNCTION_(T, ctx_##N##_atomic_fetch, (shmem_ctx_t ctx, const T* source, int pe))    \
  SHMEM_FUNCTION_(void, ctx_##N##_atomic_set, (shmem_ctx_t ctx, T * dest, T value, int pe)) \
  SHMEM_FUNCTION_(T, ctx_##N##_atomic_swap, (shmem_ctx_t ctx, T * dest, T value, int pe))   \
  SHMEM_FUNCTION_(void, ctx_##N##_atomic_fetch_nbi,                                         \
                  (shmem_ctx_t ctx, T * fetch, const T* source, int pe))                    \
  SHMEM_FUNCTION_(void, ctx_##N##_atomic_swap_nbi,                                          \
                  (shmem_ctx_t ctx, T * fetch, T * dest, T value, int pe))                  \
  SHMEM_FUNCTION_(T, N##_fetch, (const T* source, int pe))                                  \
  SHMEM_FUNCTION_(void, N##_set, (T * dest, T value, int pe))                               \
  SHMEM_FUNCTION_(T, N##_swap, (T * dest, T value, int pe))
#define SHMEM_AMO_FUNCTIONS_(A, N, T)                                                          \
  SHMEM_AMO_EXTENDED_FUNCTIONS_(A, N, T)                                                       \
  SHMEM_FUNCTION_(T, N##_atomic_compare_swap, (T * dest, T cond, T value, int pe))             \
  SHMEM_FUNCTION_(T, N##_atomic_fetch_inc, (T * dest, int pe))                                 \
  SHMEM_FUNCTION_(T, N##_atomic_fetch_add, (T * dest, T value, int pe))                        \
  SHMEM_FUNCTION_(void, N##_atomic_inc, (T * dest, int pe))                                    \
  SHMEM_FUNCTION_(void, N##_atomic_add, (T * dest, T value, int pe))                           \
  SHMEM_FUNCTION_(void, N##_atomic_compare_swap_nbi,                                           \
                  (T * fetch, T * dest, T cond, T value, int pe))                              \
  SHMEM_FUNCTION_(void, N##_atomic_fetch_inc_nbi, (T * fetch, T * dest, int pe))               \
  SHMEM_FUNCTION_(void, N##_atomic_fetch_add_nbi, (T * fetch, T * dest, T value, int pe))      \
  SHMEM_FUNCTION_(T, ctx_##N##_atomic_compare_swap,                                            \
                  (shmem_ctx_t ctx, T * dest, T cond, T value, int pe))                        \
  SHMEM_FUNCTION_(T, ctx_##N##_atomic_fetch_inc, (shmem_ctx_t ctx, T * dest, int pe))          \
  SHMEM_FUNCTION_(T, ctx_##N##_atomic_fetch_add, (shmem_ctx_t ctx, T * dest, T value, int pe)) \
  SHMEM_FUNCTION_(void, ctx_##N##_atomic_inc, (shmem_ctx_t ctx, T * dest, int pe))             \
  SHMEM_FUNCTION_(void, ctx_##N##_atomic_add, (shmem_ctx_t ctx, T * dest, T value, int pe))    \
  SHMEM_FUNCTION_(void, ctx_##N##_atomic_compare_swap_nbi,                                     \
                  (shmem_ctx_t ctx, T * fetch, T * dest, T cond, T value, int pe))             \
  SHMEM_FUNCTION_(void, ctx_##N##_atomic_fetch_inc_nbi,                                        \
                  (shmem_ctx_t ctx, T * fetch, T * dest, int pe))                              \
  SHMEM_FUNCTION_(void, ctx_##N##_atomic_fetch_add_nbi,                                        \
                  (shmem_ctx_t ctx, T * fetch, T * dest, T value, int pe))                     \
  SHMEM_FUNCTION_(T, N##_cswap, (T * dest, T cond, T value, int pe))                           \
  SHMEM_FUNCTION_(T, N##_finc, (T * dest, int pe))                                             \
  SHMEM_FUNCTION_(T, N##_fadd, (T * dest, T value, int pe))                                    \
  SHMEM_FUNCTION_(void, N##_inc, (T * dest, int pe))                                           \
  SHMEM_FUNCTION_(void, N##_add, (T * dest, T value, int pe))
#define SHMEM_AMO_BIT_FUNCTIONS_(OP, N, T)                                                      \
  SHMEM_FUNCTION_(void, N##_atomic_##OP, (T * dest, T value, int pe))                           \
  SHMEM_FUNCTION_(T, N##_atomic_fetch_##OP, (T * dest, T value, int pe))                        \
  SHMEM_FUNCTION_(void, N##_atomic_fetch_##OP##_nbi, (T * fetch, T * dest, T value, int pe))    \
  SHMEM_FUNCTION_(void, ctx_##N##_atomic_##OP, (shmem_ctx_t ctx, T * dest, T value, int pe))    \
  SHMEM_FUNCTION_(T, ctx_##N##_atomic_fetch_##OP, (shmem_ctx_t ctx, T * dest, T value, int pe)) \
  SHMEM_FUNCTION_(void, ctx_##N##_atomic_fetch_##OP##_nbi,                                      \
                  (shmem_ctx_t ctx, T * fetch, T * dest, T value, int pe))
SHMEM_LIST_AMO_(SHMEM_AMO_FUNCTIONS_, )
SHMEM_LIST_AMO_REALS_(SHMEM_AMO_EXTENDED_FUNCTIONS_, )
SHMEM_LIST_AMO_BITS_(SHMEM_AMO_BIT_FUNCTIONS_, and)
SHMEM_LIST_AMO_BITS_(SHMEM_AMO_BIT_FUNCTIONS_, or)
SHMEM_LIST_AMO_BITS_(SHMEM_AMO_BIT_FUNCTIONS_, xor)
/* Of SGI's and Cray's libraries: replaces the bits of `mask`, returns the former value. */
SHMEM_FUNCTION_(int, int_mswap, (int* dest, int mask, int value, int pe))
SHMEM_FUNCTION_(long, long_mswap, (long* dest, long mask, long value, int pe))
#undef SHMEM_AMO_EXTENDED_FUNCTIONS_
#undef SHMEM_AMO_FUNCTIONS_
#undef SHMEM_AMO_BIT_FUNCTIONS_

/* --- Waiting --- */
#define SHMEM_WAIT_FUNCTIONS_(A, N, T)                                    \
  SHMEM_FUNCTION_(void, N##_wait_until, (T * ivar, int cmp, T cmp_value)) \
  SHMEM_FUNCTION_(int, N##_test, (T * ivar, int cmp, T cmp_value))
#define SHMEM_WAIT_SET_FUNCTIONS_(A, N, T)                                                     \
  SHMEM_FUNCTION_(void, N##_wait_until_all,                                                    \
                  (T * ivars, size_t nelems, const int* status, int cmp, T cmp_value))         \
  SHMEM_FUNCTION_(size_t, N##_wait_until_any,                                                  \
                  (T * ivars, size_t nelems, const int* status, int cmp, T cmp_value))         \
  SHMEM_FUNCTION_(                                                                             \
      size_t, N##_wait_until_some,                                                             \
      (T * ivars, size_t nelems, size_t* indices, const int* status, int cmp, T cmp_value))    \
  SHMEM_FUNCTION_(int, N##_test_all,                                                           \
                  (T * ivars, size_t nelems, const int* status, int cmp, T cmp_value))         \
  SHMEM_FUNCTION_(size_t, N##_test_any,                                                        \
                  (T * ivars, size_t nelems, const int* status, int cmp, T cmp_value))         \
  SHMEM_FUNCTION_(                                                                             \
      size_t, N##_test_some,                                                                   \
      (T * ivars, size_t nelems, size_t* indices, const int* status, int cmp, T cmp_value))    \
  SHMEM_FUNCTION_(void, N##_wait_until_all_vector,                                             \
                  (T * ivars, size_t nelems, const int* status, int cmp, const T* cmp_values)) \
  SHMEM_FUNCTION_(size_t, N##_wait_until_any_vector,                                           \
                  (T * ivars, size_t nelems, const int* status, int cmp, const T* cmp_values)) \
  SHMEM_FUNCTION_(size_t, N##_wait_until_some_vector,                                          \
                  (T * ivars, size_t nelems, size_t* indices, const int* status, int cmp,      \
                   const T* cmp_values))                                                       \
  SHMEM_FUNCTION_(int, N##_test_all_vector,                                                    \
                  (T * ivars, size_t nelems, const int* status, int cmp, const T* cmp_values)) \
  SHMEM_FUNCTION_(size_t, N##_test_any_vector,                                                 \
                  (T * ivars, size_t nelems, const int* status, int cmp, const T* cmp_values)) \
  SHMEM_FUNCTION_(size_t, N##_test_some_vector,                                                \
                  (T * ivars, size_t nelems, size_t* indices, const int* status, int cmp,      \
                   const T* cmp_values))
#define SHMEM_PLAIN_WAIT_FUNCTIONS_(A, N, T) \
  SHMEM_FUNCTION_(void, N##_wait, (T * ivar, T cmp_value))
SHMEM_LIST_AMO_(SHMEM_WAIT_FUNCTIONS_, )
SHMEM_LIST_AMO_(SHMEM_WAIT_SET_FUNCTIONS_, )
SHMEM_LIST_SHORT_WAITS_(SHMEM_WAIT_SET_FUNCTIONS_, )
SHMEM_LIST_SHORT_WAITS_(SHMEM_WAIT_FUNCTIONS_, )
SHMEM_LIST_AMO_(SHMEM_PLAIN_WAIT_FUNCTIONS_, )
SHMEM_LIST_SHORT_WAITS_(SHMEM_PLAIN_WAIT_FUNCTIONS_, )
SHMEM_FUNCTION_(uint64_t, signal_wait_until, (uint64_t* sig_addr, int cmp, uint64_t cmp_value))
#undef SHMEM_WAIT_FUNCTIONS_
#undef SHMEM_WAIT_SET_FUNCTIONS_
#undef SHMEM_PLAIN_WAIT_FUNCTIONS_

/* --- Collective calls of a team --- */
#define SHMEM_TYPED_TEAM_FUNCTIONS_(A, N, T)                                                       \
  SHMEM_FUNCTION_(int, N##_broadcast,                                                              \
                  (shmem_team_t team, T * dest, const T* source, size_t nelems, int PE_root))      \
  SHMEM_FUNCTION_(int, N##_collect, (shmem_team_t team, T * dest, const T* source, size_t nelems)) \
  SHMEM_FUNCTION_(int, N##_fcollect,                                                               \
                  (shmem_team_t team, T * dest, const T* source, size_t nelems))                   \
  SHMEM_FUNCTION_(int, N##_alltoall,                                                               \
                  (shmem_team_t team, T * dest, const T* source, size_t nelems))                   \
  SHMEM_FUNCTION_(                                                                                 \
      int, N##_alltoalls,                                                                          \
      (shmem_team_t team, T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems))
SHMEM_LIST_RMA_(SHMEM_TYPED_TEAM_FUNCTIONS_, )
SHMEM_FUNCTION_(int, broadcastmem,
                (shmem_team_t team, void* dest, const void* source, size_t nelems, int PE_root))
SHMEM_FUNCTION_(int, collectmem, (shmem_team_t team, void* dest, const void* source, size_t nelems))
SHMEM_FUNCTION_(int, fcollectmem,
                (shmem_team_t team, void* dest, const void* source, size_t nelems))
SHMEM_FUNCTION_(int, alltoallmem,
                (shmem_team_t team, void* dest, const void* source, size_t nelems))
SHMEM_FUNCTION_(int, alltoallsmem,
                (shmem_team_t team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                 size_t nelems))
#define SHMEM_REDUCE_FUNCTIONS_(OP, N, T) \
  SHMEM_FUNCTION_(int, N##_##OP##_reduce, \
                  (shmem_team_t team, T * dest, const T* source, size_t nreduce))
SHMEM_LIST_INTEGERS_(SHMEM_REDUCE_FUNCTIONS_, and)
SHMEM_LIST_INTEGERS_(SHMEM_REDUCE_FUNCTIONS_, or)
SHMEM_LIST_INTEGERS_(SHMEM_REDUCE_FUNCTIONS_, xor)
SHMEM_LIST_RMA_(SHMEM_REDUCE_FUNCTIONS_, max)
SHMEM_LIST_RMA_(SHMEM_REDUCE_FUNCTIONS_, min)
SHMEM_LIST_RMA_(SHMEM_REDUCE_FUNCTIONS_, sum)
SHMEM_LIST_RMA_(SHMEM_REDUCE_FUNCTIONS_, prod)
SHMEM_LIST_COMPLEX_(SHMEM_REDUCE_FUNCTIONS_, sum)
SHMEM_LIST_COMPLEX_(SHMEM_REDUCE_FUNCTIONS_, prod)
#define SHMEM_SCAN_FUNCTIONS_(A, N, T)                                           \
  SHMEM_FUNCTION_(int, N##_sum_inscan,                                           \
                  (shmem_team_t team, T * dest, const T* source, size_t nelems)) \
  SHMEM_FUNCTION_(int, N##_sum_exscan,                                           \
                  (shmem_team_t team, T * dest, const T* source, size_t nelems))
SHMEM_LIST_RMA_(SHMEM_SCAN_FUNCTIONS_, )
SHMEM_LIST_COMPLEX_(SHMEM_SCAN_FUNCTIONS_, )
SHMEM_FUNCTION_(void, barrier_all, (void))
SHMEM_FUNCTION_(void, sync_all, (void))
SHMEM_FUNCTION_(int, team_sync, (shmem_team_t team))
#undef SHMEM_TYPED_TEAM_FUNCTIONS_
#undef SHMEM_REDUCE_FUNCTIONS_
#undef SHMEM_SCAN_FUNCTIONS_

/* --- Collective calls of an active set (deprecated) --- */
#define SHMEM_SET_PARAMETERS_ int PE_start, int logPE_stride, int PE_size, long *pSync
#define SHMEM_SET_FUNCTIONS_(BITS)                                                              \
  SHMEM_FUNCTION_(                                                                              \
      void, broadcast##BITS,                                                                    \
      (void* dest, const void* source, size_t nelems, int PE_root, SHMEM_SET_PARAMETERS_))      \
  SHMEM_FUNCTION_(void, collect##BITS,                                                          \
                  (void* dest, const void* source, size_t nelems, SHMEM_SET_PARAMETERS_))       \
  SHMEM_FUNCTION_(void, fcollect##BITS,                                                         \
                  (void* dest, const void* source, size_t nelems, SHMEM_SET_PARAMETERS_))       \
  SHMEM_FUNCTION_(void, alltoall##BITS,                                                         \
                  (void* dest, const void* source, size_t nelems, SHMEM_SET_PARAMETERS_))       \
  SHMEM_FUNCTION_(void, alltoalls##BITS,                                                        \
                  (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, \
                   SHMEM_SET_PARAMETERS_))
SHMEM_SET_FUNCTIONS_(32)
SHMEM_SET_FUNCTIONS_(64)
#define SHMEM_TO_ALL_FUNCTIONS_(OP, N, T)                                                  \
  SHMEM_FUNCTION_(void, N##_##OP##_to_all,                                                 \
                  (T * dest, const T* source, int nreduce, int PE_start, int logPE_stride, \
                   int PE_size, T* pWrk, long* pSync))
SHMEM_LIST_TO_ALL_BITS_(SHMEM_TO_ALL_FUNCTIONS_, and)
SHMEM_LIST_TO_ALL_BITS_(SHMEM_TO_ALL_FUNCTIONS_, or)
SHMEM_LIST_TO_ALL_BITS_(SHMEM_TO_ALL_FUNCTIONS_, xor)
SHMEM_LIST_TO_ALL_(SHMEM_TO_ALL_FUNCTIONS_, max)
SHMEM_LIST_TO_ALL_(SHMEM_TO_ALL_FUNCTIONS_, min)
SHMEM_LIST_TO_ALL_(SHMEM_TO_ALL_FUNCTIONS_, sum)
SHMEM_LIST_TO_ALL_(SHMEM_TO_ALL_FUNCTIONS_, prod)
SHMEM_LIST_COMPLEX_(SHMEM_TO_ALL_FUNCTIONS_, sum)
SHMEM_LIST_COMPLEX_(SHMEM_TO_ALL_FUNCTIONS_, prod)
SHMEM_FUNCTION_(void, barrier, (SHMEM_SET_PARAMETERS_))
SHMEM_FUNCTION_(void, sync, (SHMEM_SET_PARAMETERS_))
#undef SHMEM_SET_PARAMETERS_
#undef SHMEM_SET_FUNCTIONS_
#undef SHMEM_TO_ALL_FUNCTIONS_

/* --- Locks, and what is deprecated --- */
SHMEM_FUNCTION_(void, set_lock, (long* lock))
SHMEM_FUNCTION_(void, clear_lock, (long* lock))
SHMEM_FUNCTION_(int, test_lock, (long* lock))
SHMEM_FUNCTION_(void, clear_cache_inv, (void))
SHMEM_FUNCTION_(void, set_cache_inv, (void))
SHMEM_FUNCTION_(void, clear_cache_line_inv, (void* dest))
SHMEM_FUNCTION_(void, set_cache_line_inv, (void* dest))
SHMEM_FUNCTION_(void, udcflush, (void))
SHMEM_FUNCTION_(void, udcflush_line, (void* dest))

/* clang-format on */
