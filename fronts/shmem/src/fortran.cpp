// SPDX-License-Identifier: BSD-3-Clause

// The Fortran bindings of OpenSHMEM 1.4 (shmem.fh and the module shmem, which
// fortran/make_bindings.py makes). Every argument is passed by reference. The functions call those
// of C by their names, so that a tool that intercepts these sees the calls of Fortran, too.

#define SHMEM_NO_INLINE

#include <algorithm>
#include <cstring>

#include "active_sets.h"
#include "front.h"
#include "locks.h"
#include "symmetric.h"

using namespace mobius::shmem;  // NOLINT(google-build-using-namespace): this is the Fortran face

namespace {

using Integer = const int*;

size_t count_of(Integer nelems, const char* call) {
  if (*nelems < 0) die(call, "nelems is %d", *nelems);
  return static_cast<size_t>(*nelems);
}

// pSync has default integers, and need not be at a multiple of 8 bytes.
long* sync_of(int* psync) {
  return reinterpret_cast<long*>((reinterpret_cast<uintptr_t>(psync) + 7) & ~uintptr_t{7});
}

}  // namespace

// Declares a function before it defines it, because no header does.
#define FORTRAN(result, name, parameters)       \
  extern "C" MOB_API result name##_ parameters; \
  extern "C" result name##_ parameters

// --- Set-up, and questions ---

FORTRAN(void, shmem_init, (void)) { shmem_init(); }
FORTRAN(void, shmem_finalize, (void)) { shmem_finalize(); }
FORTRAN(void, start_pes, (Integer npes)) { start_pes(*npes); }
FORTRAN(void, shmem_global_exit, (Integer status)) { shmem_global_exit(*status); }
FORTRAN(int, shmem_my_pe, (void)) { return shmem_my_pe(); }
FORTRAN(int, shmem_n_pes, (void)) { return shmem_n_pes(); }
FORTRAN(int, my_pe, (void)) { return shmem_my_pe(); }
FORTRAN(int, num_pes, (void)) { return shmem_n_pes(); }
FORTRAN(int, shmem_pe_accessible, (Integer pe)) { return shmem_pe_accessible(*pe); }
FORTRAN(int, shmem_addr_accessible, (const void* addr, Integer pe)) {
  return shmem_addr_accessible(addr, *pe);
}
FORTRAN(void*, shmem_ptr, (const void* dest, Integer pe)) { return shmem_ptr(dest, *pe); }
FORTRAN(void, shmem_info_get_version, (int* major, int* minor)) {
  shmem_info_get_version(major, minor);
}
// Fills the string with blanks, as Fortran's are.
FORTRAN(void, shmem_info_get_name, (char* name, size_t length)) {
  char text[SHMEM_MAX_NAME_LEN];
  shmem_info_get_name(text);
  std::memset(name, ' ', length);
  std::memcpy(name, text, std::min(length, std::strlen(text)));
}

// Handles for the module, since Fortran has no addresses of objects of C.
FORTRAN(shmem_team_t, shmem_team_world_handle, (void)) { return SHMEM_TEAM_WORLD; }
FORTRAN(shmem_team_t, shmem_team_shared_handle, (void)) { return SHMEM_TEAM_SHARED; }

// --- Symmetric heap: lengths are in words of 4 bytes ---

namespace {

constexpr int kBadLength = -1;
constexpr int kNoMemory = -2;
constexpr int kOutside = -3;
constexpr int kNoBlock = -5;
constexpr size_t kWordBytes = 4;

void give_code(int* out, int code, Integer abort, const char* call, const char* text) {
  if (code < 0 && *abort != 0) die(call, "%s", text);
  *out = code;
}

bool is_in_heap(const void* block, const char* call) {
  check_started(call);
  size_t offset = 0;
  return offset_in_heap(block, &offset);
}

int code_of(mob_status_t status) {
  if (status == MOB_OK) return 0;
  return status == MOB_ERR_MEMORY ? kNoMemory : kNoBlock;
}

const char* text_of(int code) {
  if (code == kBadLength) return "the length is not above 0";
  if (code == kNoMemory) return "no room in the symmetric heap (SHMEM_SYMMETRIC_SIZE)";
  if (code == kOutside) return "the address is outside the symmetric heap";
  return "the address is not that of a block";
}

}  // namespace

FORTRAN(void, shpalloc, (void** addr, Integer length, int* errcode, Integer abort)) {
  constexpr const char* kCall = "shpalloc";
  int code = *length > 0 ? 0 : kBadLength;
  if (code == 0) {
    *addr = shmem_malloc(static_cast<size_t>(*length) * kWordBytes);
    if (*addr == nullptr) code = kNoMemory;
  }
  give_code(errcode, code, abort, kCall, text_of(code));
}

FORTRAN(void, shpdeallc, (void** addr, int* errcode, Integer abort)) {
  constexpr const char* kCall = "shpdeallc";
  const int code = is_in_heap(*addr, kCall) ? code_of(free_block(*addr)) : kOutside;
  give_code(errcode, code, abort, kCall, text_of(code));
}

FORTRAN(void, shpclmove, (void** addr, Integer length, int* status, Integer abort)) {
  constexpr const char* kCall = "shpclmove";
  int code = is_in_heap(*addr, kCall) ? 0 : kOutside;
  if (*length <= 0) code = kBadLength;
  if (code == 0) {
    void* const before = *addr;
    const auto bytes = static_cast<size_t>(*length) * kWordBytes;
    code = code_of(resize_block(before, bytes, addr));
    if (code == 0 && *addr != before) code = 1;
  }
  give_code(status, code, abort, kCall, text_of(code));
}

// --- Put and get ---

#define FORTRAN_MOVE(NAME, C_NAME)                                                    \
  FORTRAN(void, NAME, (void* dest, const void* source, Integer nelems, Integer pe)) { \
    C_NAME(dest, source, count_of(nelems, #NAME), *pe);                               \
  }
#define FORTRAN_STRIDED(NAME, C_NAME)                                                           \
  FORTRAN(                                                                                      \
      void, NAME,                                                                               \
      (void* dest, const void* source, Integer dst, Integer sst, Integer nelems, Integer pe)) { \
    C_NAME(dest, source, *dst, *sst, count_of(nelems, #NAME), *pe);                             \
  }
#define FORTRAN_MOVES(PUT, GET, C_PUT, C_GET) \
  FORTRAN_MOVE(PUT, C_PUT)                    \
  FORTRAN_MOVE(GET, C_GET)                    \
  FORTRAN_MOVE(PUT##_nbi, C_PUT##_nbi)        \
  FORTRAN_MOVE(GET##_nbi, C_GET##_nbi)
#define FORTRAN_TYPE(NAME, BITS)                                                          \
  FORTRAN_MOVES(shmem_##NAME##_put, shmem_##NAME##_get, shmem_put##BITS, shmem_get##BITS) \
  FORTRAN_STRIDED(shmem_##NAME##_iput, shmem_iput##BITS)                                  \
  FORTRAN_STRIDED(shmem_##NAME##_iget, shmem_iget##BITS)
#define FORTRAN_SIZE(SIZE, BITS)                                                    \
  FORTRAN_MOVES(shmem_put##SIZE, shmem_get##SIZE, shmem_put##BITS, shmem_get##BITS) \
  FORTRAN_STRIDED(shmem_iput##SIZE, shmem_iput##BITS)                               \
  FORTRAN_STRIDED(shmem_iget##SIZE, shmem_iget##BITS)
FORTRAN_MOVES(shmem_character_put, shmem_character_get, shmem_putmem, shmem_getmem)
FORTRAN_MOVES(shmem_putmem, shmem_getmem, shmem_putmem, shmem_getmem)
FORTRAN_TYPE(complex, 64)
FORTRAN_TYPE(double, 64)
FORTRAN_TYPE(integer, 32)
FORTRAN_TYPE(logical, 32)
FORTRAN_TYPE(real, 32)
FORTRAN_SIZE(4, 32)
FORTRAN_SIZE(8, 64)
FORTRAN_SIZE(32, 32)
FORTRAN_SIZE(64, 64)
FORTRAN_SIZE(128, 128)
// Deprecated before all others: elements of 8 bytes.
FORTRAN_MOVE(shmem_put, shmem_put64)
FORTRAN_MOVE(shmem_get, shmem_get64)
FORTRAN_STRIDED(shmem_iput, shmem_iput64)
FORTRAN_STRIDED(shmem_iget, shmem_iget64)

FORTRAN(void, shmem_fence, (void)) { shmem_fence(); }
FORTRAN(void, shmem_quiet, (void)) { shmem_quiet(); }

// --- Atomic operations and waits ---

#define FORTRAN_EXTENDED(NAME, C_NAME, T)                                     \
  FORTRAN(T, shmem_##NAME##_swap, (T * dest, const T* value, Integer pe)) {   \
    return shmem_##C_NAME##_atomic_swap(dest, *value, *pe);                   \
  }                                                                           \
  FORTRAN(void, shmem_##NAME##_set, (T * dest, const T* value, Integer pe)) { \
    shmem_##C_NAME##_atomic_set(dest, *value, *pe);                           \
  }                                                                           \
  FORTRAN(T, shmem_##NAME##_fetch, (const T* source, Integer pe)) {           \
    return shmem_##C_NAME##_atomic_fetch(source, *pe);                        \
  }
#define FORTRAN_ATOMIC(NAME, C_NAME, T)                                                     \
  FORTRAN_EXTENDED(NAME, C_NAME, T)                                                         \
  FORTRAN(T, shmem_##NAME##_cswap, (T * dest, const T* cond, const T* value, Integer pe)) { \
    return shmem_##C_NAME##_atomic_compare_swap(dest, *cond, *value, *pe);                  \
  }                                                                                         \
  FORTRAN(T, shmem_##NAME##_fadd, (T * dest, const T* value, Integer pe)) {                 \
    return shmem_##C_NAME##_atomic_fetch_add(dest, *value, *pe);                            \
  }                                                                                         \
  FORTRAN(T, shmem_##NAME##_finc, (T * dest, Integer pe)) {                                 \
    return shmem_##C_NAME##_atomic_fetch_inc(dest, *pe);                                    \
  }                                                                                         \
  FORTRAN(void, shmem_##NAME##_add, (T * dest, const T* value, Integer pe)) {               \
    shmem_##C_NAME##_atomic_add(dest, *value, *pe);                                         \
  }                                                                                         \
  FORTRAN(void, shmem_##NAME##_inc, (T * dest, Integer pe)) {                               \
    shmem_##C_NAME##_atomic_inc(dest, *pe);                                                 \
  }
#define FORTRAN_WAIT(NAME, C_NAME, T)                                                    \
  FORTRAN(void, shmem_##NAME##wait, (T * ivar, const T* cmp_value)) {                    \
    shmem_##C_NAME##_wait_until(ivar, SHMEM_CMP_NE, *cmp_value);                         \
  }                                                                                      \
  FORTRAN(void, shmem_##NAME##wait_until, (T * ivar, Integer cmp, const T* cmp_value)) { \
    shmem_##C_NAME##_wait_until(ivar, *cmp, *cmp_value);                                 \
  }
FORTRAN_ATOMIC(int4, int32, int32_t)
FORTRAN_ATOMIC(int8, int64, int64_t)
FORTRAN_EXTENDED(real4, float, float)
FORTRAN_EXTENDED(real8, double, double)
FORTRAN(int, shmem_swap, (int* dest, Integer value, Integer pe)) {
  return shmem_int_atomic_swap(dest, *value, *pe);
}
FORTRAN_WAIT(int4_, int32, int32_t)
FORTRAN_WAIT(int8_, int64, int64_t)
FORTRAN_WAIT(, int, int)

// --- Locks: words of 4 bytes ---

FORTRAN(void, shmem_set_lock, (uint32_t* lock)) { set_lock(lock, "shmem_set_lock"); }
FORTRAN(void, shmem_clear_lock, (uint32_t* lock)) { clear_lock(lock, "shmem_clear_lock"); }
FORTRAN(int, shmem_test_lock, (uint32_t* lock)) { return test_lock(lock, "shmem_test_lock"); }

// --- Collective calls of active sets ---

FORTRAN(void, shmem_barrier_all, (void)) { shmem_barrier_all(); }

#define SET_PARAMETERS Integer pe_start, Integer logpe_stride, Integer pe_size, int *psync
#define SET_ARGUMENTS *pe_start, *logpe_stride, *pe_size, sync_of(psync)
FORTRAN(void, shmem_barrier, (SET_PARAMETERS)) { shmem_barrier(SET_ARGUMENTS); }

#define FORTRAN_BLOCKS(SIZE, BITS)                                                               \
  FORTRAN(void, shmem_broadcast##SIZE,                                                           \
          (void* dest, const void* source, Integer nelems, Integer pe_root, SET_PARAMETERS)) {   \
    shmem_broadcast##BITS(dest, source, count_of(nelems, "shmem_broadcast" #SIZE), *pe_root,     \
                          SET_ARGUMENTS);                                                        \
  }                                                                                              \
  FORTRAN(void, shmem_collect##SIZE,                                                             \
          (void* dest, const void* source, Integer nelems, SET_PARAMETERS)) {                    \
    shmem_collect##BITS(dest, source, count_of(nelems, "shmem_collect" #SIZE), SET_ARGUMENTS);   \
  }                                                                                              \
  FORTRAN(void, shmem_fcollect##SIZE,                                                            \
          (void* dest, const void* source, Integer nelems, SET_PARAMETERS)) {                    \
    shmem_fcollect##BITS(dest, source, count_of(nelems, "shmem_fcollect" #SIZE), SET_ARGUMENTS); \
  }
#define FORTRAN_EXCHANGE(BITS)                                                                   \
  FORTRAN(void, shmem_alltoall##BITS,                                                            \
          (void* dest, const void* source, Integer nelems, SET_PARAMETERS)) {                    \
    shmem_alltoall##BITS(dest, source, count_of(nelems, "shmem_alltoall" #BITS), SET_ARGUMENTS); \
  }                                                                                              \
  FORTRAN(void, shmem_alltoalls##BITS,                                                           \
          (void* dest, const void* source, Integer dst, Integer sst, Integer nelems,             \
           SET_PARAMETERS)) {                                                                    \
    shmem_alltoalls##BITS(dest, source, *dst, *sst, count_of(nelems, "shmem_alltoalls" #BITS),   \
                          SET_ARGUMENTS);                                                        \
  }
FORTRAN_BLOCKS(4, 32)
FORTRAN_BLOCKS(8, 64)
FORTRAN_BLOCKS(32, 32)
FORTRAN_BLOCKS(64, 64)
FORTRAN_EXCHANGE(32)
FORTRAN_EXCHANGE(64)

#define FORTRAN_TO_ALL(NAME, C_NAME, T, OP)                                                    \
  FORTRAN(void, shmem_##NAME##_##OP##_to_all,                                                  \
          (T * dest, const T* source, Integer nreduce, Integer pe_start, Integer logpe_stride, \
           Integer pe_size, T* pwrk, int* psync)) {                                            \
    shmem_##C_NAME##_##OP##_to_all(dest, source, *nreduce, *pe_start, *logpe_stride, *pe_size, \
                                   pwrk, sync_of(psync));                                      \
  }
#define FORTRAN_SUMS(NAME, C_NAME, T)  \
  FORTRAN_TO_ALL(NAME, C_NAME, T, sum) \
  FORTRAN_TO_ALL(NAME, C_NAME, T, prod)
#define FORTRAN_NUMBERS(NAME, C_NAME, T) \
  FORTRAN_SUMS(NAME, C_NAME, T)          \
  FORTRAN_TO_ALL(NAME, C_NAME, T, max)   \
  FORTRAN_TO_ALL(NAME, C_NAME, T, min)
#define FORTRAN_INTEGERS(NAME, C_NAME, T) \
  FORTRAN_NUMBERS(NAME, C_NAME, T)        \
  FORTRAN_TO_ALL(NAME, C_NAME, T, and)    \
  FORTRAN_TO_ALL(NAME, C_NAME, T, or)     \
  FORTRAN_TO_ALL(NAME, C_NAME, T, xor)
FORTRAN_INTEGERS(int2, short, short)
FORTRAN_INTEGERS(int4, int, int)
FORTRAN_INTEGERS(int8, long, long)
FORTRAN_NUMBERS(real4, float, float)
FORTRAN_NUMBERS(real8, double, double)
FORTRAN_SUMS(comp4, complexf, shmem_complex_float_t_)
FORTRAN_SUMS(comp8, complexd, shmem_complex_double_t_)

// --- real16, a type that C's functions do not have ---

namespace {

#ifdef __SIZEOF_FLOAT128__
__extension__ using Quad = __float128;
#else
using Quad = long double;
#endif
static_assert(sizeof(Quad) == 16);

template <mob_op_t op>
void combine(void* accumulated, const void* in, size_t count, void*) {
  // The engine's buffers need not be at multiples of 16 bytes.
  for (size_t i = 0; i < count; ++i) {
    char* const place = static_cast<char*>(accumulated) + i * sizeof(Quad);
    Quad to;
    Quad from;
    std::memcpy(&to, place, sizeof to);
    std::memcpy(&from, static_cast<const char*>(in) + i * sizeof from, sizeof from);
    if constexpr (op == MOB_SUM) to += from;
    if constexpr (op == MOB_PROD) to *= from;
    if constexpr (op == MOB_MIN) to = from < to ? from : to;
    if constexpr (op == MOB_MAX) to = from > to ? from : to;
    std::memcpy(place, &to, sizeof to);
  }
}

template <mob_op_t op>
void reduce_quads(void* dest, const void* source, Integer nreduce, SET_PARAMETERS,
                  const char* call) {
  mob_user_op_t user_op = {};
  user_op.combine = combine<op>;
  user_op.element_bytes = sizeof(Quad);
  user_op.commutative = 1;
  const mob_team_t team =
      team_of_active_set(*pe_start, *logpe_stride, *pe_size, sync_of(psync), call);
  check(mob_allreduce_user(team, &user_op, source, dest, count_of(nreduce, call)), call);
}

}  // namespace

#define FORTRAN_QUADS(OP, WHAT)                                                       \
  FORTRAN(void, shmem_real16_##OP##_to_all,                                           \
          (void* dest, const void* source, Integer nreduce, Integer pe_start,         \
           Integer logpe_stride, Integer pe_size, void*, int* psync)) {               \
    reduce_quads<WHAT>(dest, source, nreduce, pe_start, logpe_stride, pe_size, psync, \
                       "shmem_real16_" #OP "_to_all");                                \
  }
FORTRAN_QUADS(sum, MOB_SUM)
FORTRAN_QUADS(prod, MOB_PROD)
FORTRAN_QUADS(max, MOB_MAX)
FORTRAN_QUADS(min, MOB_MIN)

// --- Caches: nothing to do ---

FORTRAN(void, shmem_clear_cache_inv, (void)) {}
FORTRAN(void, shmem_set_cache_inv, (void)) {}
FORTRAN(void, shmem_set_cache_line_inv, (void*)) {}
FORTRAN(void, shmem_clear_cache_line_inv, (void*)) {}
FORTRAN(void, shmem_udcflush, (void)) {}
FORTRAN(void, shmem_udcflush_line, (void*)) {}
