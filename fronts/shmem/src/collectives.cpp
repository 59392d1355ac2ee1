// SPDX-License-Identifier: BSD-3-Clause

// Collective calls of teams and, deprecated, of active sets.

#include <cstring>
#include <type_traits>
#include <vector>

#include "active_sets.h"
#include "collective_checks.h"
#include "front.h"

namespace mobius::shmem {
namespace {

mob_team_t engine_of(shmem_team_t team, const char* call) {
  check_team(team, call);
  return team->engine;
}

void broadcast(mob_team_t team, void* dest, const void* source, size_t bytes, int root,
               bool writes_root, const char* call) {
  const bool is_root = mob_team_rank(team) == root;
  check(mob_broadcast(team, root, is_root ? const_cast<void*>(source) : dest, bytes), call);
  if (is_root && writes_root && dest != source) std::memcpy(dest, source, bytes);
}

void collect(mob_team_t team, void* dest, const void* source, size_t bytes, const char* call) {
  const auto size = static_cast<size_t>(mob_team_size(team));
  std::vector<size_t> counts(size);
  std::vector<size_t> places(size);
  check(mob_allgather(team, &bytes, counts.data(), sizeof bytes), call);
  size_t place = 0;
  for (size_t i = 0; i < size; ++i) {
    places[i] = place;
    place += counts[i];
  }
  check(mob_allgatherv(team, source, dest, counts.data(), places.data()), call);
}

void fcollect(mob_team_t team, void* dest, const void* source, size_t bytes, const char* call) {
  check(mob_allgather(team, source, dest, bytes), call);
}

void alltoall(mob_team_t team, void* dest, const void* source, size_t bytes, const char* call) {
  check(mob_alltoall(team, source, dest, bytes), call);
}

// Blocks of `nelems` elements at strides: packed, exchanged and unpacked.
void alltoalls(mob_team_t team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
               size_t nelems, size_t element, const char* call) {
  const size_t elements = nelems * static_cast<size_t>(mob_team_size(team));
  std::vector<char> out(elements * element);
  std::vector<char> in(elements * element);
  const auto move = [&](size_t i, ptrdiff_t stride) {
    return static_cast<ptrdiff_t>(i * element) * stride;
  };
  for (size_t i = 0; i < elements; ++i) {
    std::memcpy(&out[i * element], static_cast<const char*>(source) + move(i, sst), element);
  }
  check(mob_alltoall(team, out.data(), in.data(), nelems * element), call);
  for (size_t i = 0; i < elements; ++i) {
    std::memcpy(static_cast<char*>(dest) + move(i, dst), &in[i * element], element);
  }
}

template <typename T>
constexpr mob_type_t type_of() {
  if constexpr (std::is_same_v<T, float>) return MOB_FLOAT;
  if constexpr (std::is_same_v<T, double>) return MOB_DOUBLE;
  if constexpr (std::is_same_v<T, shmem_complex_float_t_>) return MOB_COMPLEX_FLOAT;
  if constexpr (std::is_same_v<T, shmem_complex_double_t_>) return MOB_COMPLEX_DOUBLE;
  if constexpr (std::is_integral_v<T>) {
    constexpr bool kSigned = std::is_signed_v<T>;
    switch (sizeof(T)) {
      case 1:
        return kSigned ? MOB_INT8 : MOB_UINT8;
      case 2:
        return kSigned ? MOB_INT16 : MOB_UINT16;
      case 4:
        return kSigned ? MOB_INT32 : MOB_UINT32;
      default:
        return kSigned ? MOB_INT64 : MOB_UINT64;
    }
  }
}

// Möbius has no long double.
template <mob_op_t op>
void combine(void* accumulated, const void* in, size_t count, void*) {
  auto* const to = static_cast<long double*>(accumulated);
  const auto* const from = static_cast<const long double*>(in);
  for (size_t i = 0; i < count; ++i) {
    if constexpr (op == MOB_SUM) to[i] += from[i];
    if constexpr (op == MOB_PROD) to[i] *= from[i];
    if constexpr (op == MOB_MIN) to[i] = from[i] < to[i] ? from[i] : to[i];
    if constexpr (op == MOB_MAX) to[i] = from[i] > to[i] ? from[i] : to[i];
  }
}

template <mob_op_t op>
mob_user_op_t user_op() {
  mob_user_op_t made = {};
  made.combine = combine<op>;
  made.element_bytes = sizeof(long double);
  made.commutative = 1;
  return made;
}

template <mob_op_t op, typename T>
void reduce(mob_team_t team, T* dest, const T* source, size_t count, const char* call) {
  if constexpr (std::is_same_v<T, long double>) {
    const mob_user_op_t own = user_op<op>();
    check(mob_allreduce_user(team, &own, source, dest, count), call);
  } else {
    check(mob_allreduce(team, op, type_of<T>(), source, dest, count), call);
  }
}

template <typename T>
void inscan(mob_team_t team, T* dest, const T* source, size_t count, const char* call) {
  if constexpr (std::is_same_v<T, long double>) {
    const mob_user_op_t own = user_op<MOB_SUM>();
    check(mob_scan_user(team, &own, source, dest, count), call);
  } else {
    check(mob_scan(team, MOB_SUM, type_of<T>(), source, dest, count), call);
  }
}

template <typename T>
void exscan(mob_team_t team, T* dest, const T* source, size_t count, const char* call) {
  if constexpr (std::is_same_v<T, long double>) {
    const mob_user_op_t own = user_op<MOB_SUM>();
    check(mob_exscan_user(team, &own, source, dest, count), call);
  } else {
    check(mob_exscan(team, MOB_SUM, type_of<T>(), source, dest, count), call);
  }
  if (mob_team_rank(team) == 0) std::fill_n(dest, count, T{});
}

CollectiveCall with_buffers(const char* name, const void* dest, size_t dest_bytes,
                            const void* source, size_t source_bytes) {
  return {.name = name,
          .dest = dest,
          .source = source,
          .dest_bytes = dest_bytes,
          .source_bytes = source_bytes,
          .bytes = source_bytes};
}

// Calls by their buffers, each with `bytes` for one PE.
CollectiveCall one_block(const char* name, const void* dest, const void* source, size_t bytes) {
  return with_buffers(name, dest, bytes, source, bytes);
}

CollectiveCall rooted(const char* name, const void* dest, const void* source, size_t bytes,
                      int root) {
  CollectiveCall call = one_block(name, dest, source, bytes);
  call.root = root;
  return call;
}

// The PEs may give different numbers of bytes.
CollectiveCall collecting(const char* name, const void* dest, const void* source, size_t bytes) {
  CollectiveCall call = one_block(name, dest, source, bytes);
  call.bytes = 0;
  return call;
}

CollectiveCall gathering(const char* name, mob_team_t team, const void* dest, const void* source,
                         size_t bytes) {
  const auto size = static_cast<size_t>(mob_team_size(team));
  return with_buffers(name, dest, bytes * size, source, bytes);
}

CollectiveCall exchanging(const char* name, mob_team_t team, const void* dest, const void* source,
                          size_t bytes) {
  const auto size = static_cast<size_t>(mob_team_size(team));
  return with_buffers(name, dest, bytes * size, source, bytes * size);
}

// Blocks at strides may lie between each other: only their first bytes are looked at.
CollectiveCall exchanging_strided(const char* name, const void* dest, const void* source,
                                  size_t bytes) {
  const size_t first = bytes != 0 ? 1 : 0;
  CollectiveCall call = with_buffers(name, dest, first, source, first);
  call.bytes = bytes;
  return call;
}

void check_root(mob_team_t team, int root, const char* call) {
  if (root < 0 || root >= mob_team_size(team)) {
    die(call, "PE_root is %d; the team has PEs 0 to %d", root, mob_team_size(team) - 1);
  }
}

}  // namespace
}  // namespace mobius::shmem

using namespace mobius::shmem;  // NOLINT(google-build-using-namespace): this is the C face of it

#define DEFINE_OF_TEAM(BROADCAST, COLLECT, FCOLLECT, ALLTOALL, ALLTOALLS, T, BYTES)          \
  SHMEM_TWIN(int, BROADCAST,                                                                 \
             (shmem_team_t team, T * dest, const T* source, size_t nelems, int PE_root)) {   \
    constexpr const char* kCall = "shmem_" #BROADCAST;                                       \
    const mob_team_t engine = engine_of(team, kCall);                                        \
    check_root(engine, PE_root, kCall);                                                      \
    check_collective(engine, rooted(kCall, dest, source, nelems * (BYTES), PE_root));        \
    broadcast(engine, dest, source, nelems * (BYTES), PE_root, true, kCall);                 \
    return 0;                                                                                \
  }                                                                                          \
  SHMEM_TWIN(int, COLLECT, (shmem_team_t team, T * dest, const T* source, size_t nelems)) {  \
    constexpr const char* kCall = "shmem_" #COLLECT;                                         \
    const mob_team_t engine = engine_of(team, kCall);                                        \
    check_collective(engine, collecting(kCall, dest, source, nelems * (BYTES)));             \
    collect(engine, dest, source, nelems * (BYTES), kCall);                                  \
    return 0;                                                                                \
  }                                                                                          \
  SHMEM_TWIN(int, FCOLLECT, (shmem_team_t team, T * dest, const T* source, size_t nelems)) { \
    constexpr const char* kCall = "shmem_" #FCOLLECT;                                        \
    const mob_team_t engine = engine_of(team, kCall);                                        \
    check_collective(engine, gathering(kCall, engine, dest, source, nelems * (BYTES)));      \
    fcollect(engine, dest, source, nelems * (BYTES), kCall);                                 \
    return 0;                                                                                \
  }                                                                                          \
  SHMEM_TWIN(int, ALLTOALL, (shmem_team_t team, T * dest, const T* source, size_t nelems)) { \
    constexpr const char* kCall = "shmem_" #ALLTOALL;                                        \
    const mob_team_t engine = engine_of(team, kCall);                                        \
    check_collective(engine, exchanging(kCall, engine, dest, source, nelems * (BYTES)));     \
    alltoall(engine, dest, source, nelems * (BYTES), kCall);                                 \
    return 0;                                                                                \
  }                                                                                          \
  SHMEM_TWIN(int, ALLTOALLS,                                                                 \
             (shmem_team_t team, T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,    \
              size_t nelems)) {                                                              \
    constexpr const char* kCall = "shmem_" #ALLTOALLS;                                       \
    const mob_team_t engine = engine_of(team, kCall);                                        \
    check_collective(engine, exchanging_strided(kCall, dest, source, nelems * (BYTES)));     \
    alltoalls(engine, dest, source, dst, sst, nelems, BYTES, kCall);                         \
    return 0;                                                                                \
  }
#define DEFINE_TYPED(A, N, T)                                                              \
  DEFINE_OF_TEAM(N##_broadcast, N##_collect, N##_fcollect, N##_alltoall, N##_alltoalls, T, \
                 sizeof(T))
SHMEM_LIST_RMA_(DEFINE_TYPED, )
DEFINE_OF_TEAM(broadcastmem, collectmem, fcollectmem, alltoallmem, alltoallsmem, void, 1)

#define DEFINE_REDUCE(OP, WHAT, N, T)                                              \
  SHMEM_TWIN(int, N##_##OP##_reduce,                                               \
             (shmem_team_t team, T * dest, const T* source, size_t nreduce)) {     \
    constexpr const char* kCall = "shmem_" #N "_" #OP "_reduce";                   \
    const mob_team_t engine = engine_of(team, kCall);                              \
    check_collective(engine, one_block(kCall, dest, source, nreduce * sizeof(T))); \
    reduce<WHAT>(engine, dest, source, nreduce, kCall);                            \
    return 0;                                                                      \
  }
#define DEFINE_AND(A, N, T) DEFINE_REDUCE(and, MOB_BAND, N, T)
#define DEFINE_OR(A, N, T) DEFINE_REDUCE(or, MOB_BOR, N, T)
#define DEFINE_XOR(A, N, T) DEFINE_REDUCE(xor, MOB_BXOR, N, T)
#define DEFINE_MAX(A, N, T) DEFINE_REDUCE(max, MOB_MAX, N, T)
#define DEFINE_MIN(A, N, T) DEFINE_REDUCE(min, MOB_MIN, N, T)
#define DEFINE_SUM(A, N, T)                                                                        \
  DEFINE_REDUCE(sum, MOB_SUM, N, T)                                                                \
  DEFINE_REDUCE(prod, MOB_PROD, N, T)                                                              \
  SHMEM_TWIN(int, N##_sum_inscan, (shmem_team_t team, T * dest, const T* source, size_t nelems)) { \
    constexpr const char* kCall = "shmem_" #N "_sum_inscan";                                       \
    const mob_team_t engine = engine_of(team, kCall);                                              \
    check_collective(engine, one_block(kCall, dest, source, nelems * sizeof(T)));                  \
    inscan(engine, dest, source, nelems, kCall);                                                   \
    return 0;                                                                                      \
  }                                                                                                \
  SHMEM_TWIN(int, N##_sum_exscan, (shmem_team_t team, T * dest, const T* source, size_t nelems)) { \
    constexpr const char* kCall = "shmem_" #N "_sum_exscan";                                       \
    const mob_team_t engine = engine_of(team, kCall);                                              \
    check_collective(engine, one_block(kCall, dest, source, nelems * sizeof(T)));                  \
    exscan(engine, dest, source, nelems, kCall);                                                   \
    return 0;                                                                                      \
  }
SHMEM_LIST_INTEGERS_(DEFINE_AND, )
SHMEM_LIST_INTEGERS_(DEFINE_OR, )
SHMEM_LIST_INTEGERS_(DEFINE_XOR, )
SHMEM_LIST_RMA_(DEFINE_MAX, )
SHMEM_LIST_RMA_(DEFINE_MIN, )
SHMEM_LIST_RMA_(DEFINE_SUM, )
SHMEM_LIST_COMPLEX_(DEFINE_SUM, )

SHMEM_TWIN(void, barrier_all, (void)) {
  check_started("shmem_barrier_all");
  check_collective(MOB_TEAM_WORLD, {.name = "shmem_barrier_all"});
  check(mob_barrier(), "shmem_barrier_all");
}
SHMEM_TWIN(void, sync_all, (void)) {
  check_started("shmem_sync_all");
  check_collective(MOB_TEAM_WORLD, {.name = "shmem_sync_all"});
  check(mob_barrier(), "shmem_sync_all");
}
SHMEM_TWIN(int, team_sync, (shmem_team_t team)) {
  constexpr const char* kCall = "shmem_team_sync";
  const mob_team_t engine = engine_of(team, kCall);
  check_collective(engine, {.name = kCall});
  check(mob_team_barrier(engine), kCall);
  return 0;
}

// --- Active sets ---

#define SET_PARAMETERS int PE_start, int logPE_stride, int PE_size, long *pSync
#define SET_TEAM team_of_active_set(PE_start, logPE_stride, PE_size, pSync, kCall)
#define DEFINE_SET(BITS, BYTES)                                                                  \
  SHMEM_TWIN(void, broadcast##BITS,                                                              \
             (void* dest, const void* source, size_t nelems, int PE_root, SET_PARAMETERS)) {     \
    constexpr const char* kCall = "shmem_broadcast" #BITS;                                       \
    const mob_team_t engine = SET_TEAM;                                                          \
    check_root(engine, PE_root, kCall);                                                          \
    check_of_active_set(engine, pSync, rooted(kCall, dest, source, nelems * BYTES, PE_root));    \
    broadcast(engine, dest, source, nelems * BYTES, PE_root, false, kCall);                      \
  }                                                                                              \
  SHMEM_TWIN(void, collect##BITS,                                                                \
             (void* dest, const void* source, size_t nelems, SET_PARAMETERS)) {                  \
    constexpr const char* kCall = "shmem_collect" #BITS;                                         \
    const mob_team_t engine = SET_TEAM;                                                          \
    check_of_active_set(engine, pSync, collecting(kCall, dest, source, nelems * BYTES));         \
    collect(engine, dest, source, nelems * BYTES, kCall);                                        \
  }                                                                                              \
  SHMEM_TWIN(void, fcollect##BITS,                                                               \
             (void* dest, const void* source, size_t nelems, SET_PARAMETERS)) {                  \
    constexpr const char* kCall = "shmem_fcollect" #BITS;                                        \
    const mob_team_t engine = SET_TEAM;                                                          \
    check_of_active_set(engine, pSync, gathering(kCall, engine, dest, source, nelems * BYTES));  \
    fcollect(engine, dest, source, nelems * BYTES, kCall);                                       \
  }                                                                                              \
  SHMEM_TWIN(void, alltoall##BITS,                                                               \
             (void* dest, const void* source, size_t nelems, SET_PARAMETERS)) {                  \
    constexpr const char* kCall = "shmem_alltoall" #BITS;                                        \
    const mob_team_t engine = SET_TEAM;                                                          \
    check_of_active_set(engine, pSync, exchanging(kCall, engine, dest, source, nelems * BYTES)); \
    alltoall(engine, dest, source, nelems * BYTES, kCall);                                       \
  }                                                                                              \
  SHMEM_TWIN(void, alltoalls##BITS,                                                              \
             (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,       \
              SET_PARAMETERS)) {                                                                 \
    constexpr const char* kCall = "shmem_alltoalls" #BITS;                                       \
    const mob_team_t engine = SET_TEAM;                                                          \
    check_of_active_set(engine, pSync, exchanging_strided(kCall, dest, source, nelems * BYTES)); \
    alltoalls(engine, dest, source, dst, sst, nelems, BYTES, kCall);                             \
  }
DEFINE_SET(32, 4)
DEFINE_SET(64, 8)

#define DEFINE_TO_ALL(OP, WHAT, N, T)                                                              \
  SHMEM_TWIN(void, N##_##OP##_to_all,                                                              \
             (T * dest, const T* source, int nreduce, int PE_start, int logPE_stride, int PE_size, \
              T*, long* pSync)) {                                                                  \
    constexpr const char* kCall = "shmem_" #N "_" #OP "_to_all";                                   \
    if (nreduce < 0) die(kCall, "nreduce is %d", nreduce);                                         \
    const auto count = static_cast<size_t>(nreduce);                                               \
    const mob_team_t engine = SET_TEAM;                                                            \
    check_of_active_set(engine, pSync, one_block(kCall, dest, source, count * sizeof(T)));         \
    reduce<WHAT>(engine, dest, source, count, kCall);                                              \
  }
#define DEFINE_TO_ALL_BITS(A, N, T)  \
  DEFINE_TO_ALL(and, MOB_BAND, N, T) \
  DEFINE_TO_ALL(or, MOB_BOR, N, T)   \
  DEFINE_TO_ALL(xor, MOB_BXOR, N, T)
#define DEFINE_TO_ALL_ORDER(A, N, T) \
  DEFINE_TO_ALL(max, MOB_MAX, N, T)  \
  DEFINE_TO_ALL(min, MOB_MIN, N, T)
#define DEFINE_TO_ALL_SUM(A, N, T)  \
  DEFINE_TO_ALL(sum, MOB_SUM, N, T) \
  DEFINE_TO_ALL(prod, MOB_PROD, N, T)
SHMEM_LIST_TO_ALL_BITS_(DEFINE_TO_ALL_BITS, )
SHMEM_LIST_TO_ALL_(DEFINE_TO_ALL_ORDER, )
SHMEM_LIST_TO_ALL_(DEFINE_TO_ALL_SUM, )
SHMEM_LIST_COMPLEX_(DEFINE_TO_ALL_SUM, )

SHMEM_TWIN(void, barrier, (SET_PARAMETERS)) {
  constexpr const char* kCall = "shmem_barrier";
  const mob_team_t engine = SET_TEAM;
  check_of_active_set(engine, pSync, {.name = kCall});
  check(mob_team_barrier(engine), kCall);
}
SHMEM_TWIN(void, sync, (SET_PARAMETERS)) {
  constexpr const char* kCall = "shmem_sync";
  const mob_team_t engine = SET_TEAM;
  check_of_active_set(engine, pSync, {.name = kCall});
  check(mob_team_barrier(engine), kCall);
}
