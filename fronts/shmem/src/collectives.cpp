// SPDX-License-Identifier: BSD-3-Clause

// Collective calls of teams and, deprecated, of active sets.

#include <cstring>
#include <type_traits>
#include <vector>

#include "active_sets.h"
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

// With SHMEM_DEBUG: all members must pass the same numbers, and symmetric buffers.
void compare(mob_team_t team, uint64_t bytes, uint64_t root, const char* call) {
  const uint64_t mine[] = {bytes, ~bytes, root, ~root};
  uint64_t most[4];
  check(mob_allreduce(team, MOB_MAX, MOB_UINT64, mine, most, 4), call);
  // The greatest complement is that of the least number.
  const auto compare_one = [&](const char* what, uint64_t here, uint64_t greatest, uint64_t least) {
    if (greatest == least) return;
    die(call,
        "the PEs of the team pass different arguments: %s is %llu here; the least is %llu, the "
        "greatest %llu",
        what, static_cast<unsigned long long>(here), static_cast<unsigned long long>(least),
        static_cast<unsigned long long>(greatest));
  };
  compare_one("the number of bytes", bytes, most[0], ~most[1]);
  compare_one("PE_root", root, most[2], ~most[3]);
}

void check_buffers(mob_team_t team, const void* dest, const void* source, size_t bytes, int root,
                   bool same_size, const char* call) {
  if (!debugs()) return;
  if (bytes != 0) {
    offset_of(dest, call, "dest");
    offset_of(source, call, "source");
  }
  if (same_size) compare(team, bytes, static_cast<uint64_t>(root), call);
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
    check_buffers(engine, dest, source, nelems * (BYTES), PE_root, true, kCall);             \
    broadcast(engine, dest, source, nelems * (BYTES), PE_root, true, kCall);                 \
    return 0;                                                                                \
  }                                                                                          \
  SHMEM_TWIN(int, COLLECT, (shmem_team_t team, T * dest, const T* source, size_t nelems)) {  \
    constexpr const char* kCall = "shmem_" #COLLECT;                                         \
    const mob_team_t engine = engine_of(team, kCall);                                        \
    check_buffers(engine, dest, source, nelems * (BYTES), 0, false, kCall);                  \
    collect(engine, dest, source, nelems * (BYTES), kCall);                                  \
    return 0;                                                                                \
  }                                                                                          \
  SHMEM_TWIN(int, FCOLLECT, (shmem_team_t team, T * dest, const T* source, size_t nelems)) { \
    constexpr const char* kCall = "shmem_" #FCOLLECT;                                        \
    const mob_team_t engine = engine_of(team, kCall);                                        \
    check_buffers(engine, dest, source, nelems * (BYTES), 0, true, kCall);                   \
    fcollect(engine, dest, source, nelems * (BYTES), kCall);                                 \
    return 0;                                                                                \
  }                                                                                          \
  SHMEM_TWIN(int, ALLTOALL, (shmem_team_t team, T * dest, const T* source, size_t nelems)) { \
    constexpr const char* kCall = "shmem_" #ALLTOALL;                                        \
    const mob_team_t engine = engine_of(team, kCall);                                        \
    check_buffers(engine, dest, source, nelems * (BYTES), 0, true, kCall);                   \
    alltoall(engine, dest, source, nelems * (BYTES), kCall);                                 \
    return 0;                                                                                \
  }                                                                                          \
  SHMEM_TWIN(int, ALLTOALLS,                                                                 \
             (shmem_team_t team, T * dest, const T* source, ptrdiff_t dst, ptrdiff_t sst,    \
              size_t nelems)) {                                                              \
    constexpr const char* kCall = "shmem_" #ALLTOALLS;                                       \
    const mob_team_t engine = engine_of(team, kCall);                                        \
    check_buffers(engine, dest, source, nelems * (BYTES), 0, true, kCall);                   \
    alltoalls(engine, dest, source, dst, sst, nelems, BYTES, kCall);                         \
    return 0;                                                                                \
  }
#define DEFINE_TYPED(A, N, T)                                                              \
  DEFINE_OF_TEAM(N##_broadcast, N##_collect, N##_fcollect, N##_alltoall, N##_alltoalls, T, \
                 sizeof(T))
SHMEM_LIST_RMA_(DEFINE_TYPED, )
DEFINE_OF_TEAM(broadcastmem, collectmem, fcollectmem, alltoallmem, alltoallsmem, void, 1)

#define DEFINE_REDUCE(OP, WHAT, N, T)                                          \
  SHMEM_TWIN(int, N##_##OP##_reduce,                                           \
             (shmem_team_t team, T * dest, const T* source, size_t nreduce)) { \
    constexpr const char* kCall = "shmem_" #N "_" #OP "_reduce";               \
    const mob_team_t engine = engine_of(team, kCall);                          \
    check_buffers(engine, dest, source, nreduce * sizeof(T), 0, true, kCall);  \
    reduce<WHAT>(engine, dest, source, nreduce, kCall);                        \
    return 0;                                                                  \
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
    check_buffers(engine, dest, source, nelems * sizeof(T), 0, true, kCall);                       \
    inscan(engine, dest, source, nelems, kCall);                                                   \
    return 0;                                                                                      \
  }                                                                                                \
  SHMEM_TWIN(int, N##_sum_exscan, (shmem_team_t team, T * dest, const T* source, size_t nelems)) { \
    constexpr const char* kCall = "shmem_" #N "_sum_exscan";                                       \
    const mob_team_t engine = engine_of(team, kCall);                                              \
    check_buffers(engine, dest, source, nelems * sizeof(T), 0, true, kCall);                       \
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
  check(mob_barrier(), "shmem_barrier_all");
}
SHMEM_TWIN(void, sync_all, (void)) {
  check_started("shmem_sync_all");
  check(mob_barrier(), "shmem_sync_all");
}
SHMEM_TWIN(int, team_sync, (shmem_team_t team)) {
  check(mob_team_barrier(engine_of(team, "shmem_team_sync")), "shmem_team_sync");
  return 0;
}

// --- Active sets ---

#define SET_PARAMETERS int PE_start, int logPE_stride, int PE_size, long *pSync
#define SET_TEAM team_of_active_set(PE_start, logPE_stride, PE_size, pSync, kCall)
#define DEFINE_SET(BITS, BYTES)                                                              \
  SHMEM_TWIN(void, broadcast##BITS,                                                          \
             (void* dest, const void* source, size_t nelems, int PE_root, SET_PARAMETERS)) { \
    constexpr const char* kCall = "shmem_broadcast" #BITS;                                   \
    const mob_team_t engine = SET_TEAM;                                                      \
    check_root(engine, PE_root, kCall);                                                      \
    broadcast(engine, dest, source, nelems * BYTES, PE_root, false, kCall);                  \
  }                                                                                          \
  SHMEM_TWIN(void, collect##BITS,                                                            \
             (void* dest, const void* source, size_t nelems, SET_PARAMETERS)) {              \
    constexpr const char* kCall = "shmem_collect" #BITS;                                     \
    collect(SET_TEAM, dest, source, nelems * BYTES, kCall);                                  \
  }                                                                                          \
  SHMEM_TWIN(void, fcollect##BITS,                                                           \
             (void* dest, const void* source, size_t nelems, SET_PARAMETERS)) {              \
    constexpr const char* kCall = "shmem_fcollect" #BITS;                                    \
    fcollect(SET_TEAM, dest, source, nelems * BYTES, kCall);                                 \
  }                                                                                          \
  SHMEM_TWIN(void, alltoall##BITS,                                                           \
             (void* dest, const void* source, size_t nelems, SET_PARAMETERS)) {              \
    constexpr const char* kCall = "shmem_alltoall" #BITS;                                    \
    alltoall(SET_TEAM, dest, source, nelems * BYTES, kCall);                                 \
  }                                                                                          \
  SHMEM_TWIN(void, alltoalls##BITS,                                                          \
             (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,   \
              SET_PARAMETERS)) {                                                             \
    constexpr const char* kCall = "shmem_alltoalls" #BITS;                                   \
    alltoalls(SET_TEAM, dest, source, dst, sst, nelems, BYTES, kCall);                       \
  }
DEFINE_SET(32, 4)
DEFINE_SET(64, 8)

#define DEFINE_TO_ALL(OP, WHAT, N, T)                                                              \
  SHMEM_TWIN(void, N##_##OP##_to_all,                                                              \
             (T * dest, const T* source, int nreduce, int PE_start, int logPE_stride, int PE_size, \
              T*, long* pSync)) {                                                                  \
    constexpr const char* kCall = "shmem_" #N "_" #OP "_to_all";                                   \
    if (nreduce < 0) die(kCall, "nreduce is %d", nreduce);                                         \
    reduce<WHAT>(SET_TEAM, dest, source, static_cast<size_t>(nreduce), kCall);                     \
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
  check(mob_team_barrier(SET_TEAM), kCall);
}
SHMEM_TWIN(void, sync, (SET_PARAMETERS)) {
  constexpr const char* kCall = "shmem_sync";
  check(mob_team_barrier(SET_TEAM), kCall);
}
