// SPDX-License-Identifier: BSD-3-Clause

// Atomic operations, where shmem/inline.h does not do them, and the non-blocking ones.

#include <bit>
#include <type_traits>

#include "front.h"

namespace mobius::shmem {
namespace {

template <typename Word, auto kAdd, auto kAnd, auto kOr, auto kXor, auto kSwap, auto kCompareSwap>
mob_status_t update(shmem_amo_t_ what, int rank, void* place, Word value, Word expected,
                    Word* old) {
  switch (what) {
    case SHMEM_AMO_ADD_:
      return kAdd(rank, place, value, old);
    case SHMEM_AMO_AND_:
      return kAnd(rank, place, value, old);
    case SHMEM_AMO_OR_:
      return kOr(rank, place, value, old);
    case SHMEM_AMO_XOR_:
      return kXor(rank, place, value, old);
    case SHMEM_AMO_SWAP_:
      return kSwap(rank, place, value, old);
    default:
      return kCompareSwap(rank, place, expected, value, old);
  }
}

constexpr auto update8 = update<uint64_t, mob_fetch_add8, mob_fetch_and8, mob_fetch_or8,
                                mob_fetch_xor8, mob_swap8, mob_compare_swap8>;
constexpr auto update4 = update<uint32_t, mob_fetch_add4, mob_fetch_and4, mob_fetch_or4,
                                mob_fetch_xor4, mob_swap4, mob_compare_swap4>;

uint64_t update_at(shmem_amo_t_ what, int rank, void* place, uint64_t value, uint64_t expected,
                   unsigned bytes, const char* call) {
  if (bytes == 8) {
    uint64_t old = 0;
    check(update8(what, rank, place, value, expected, &old), call);
    return old;
  }
  uint32_t old = 0;
  check(update4(what, rank, place, static_cast<uint32_t>(value), static_cast<uint32_t>(expected),
                &old),
        call);
  return old;
}

mob_op_t op_of(shmem_amo_t_ what) {
  switch (what) {
    case SHMEM_AMO_ADD_:
      return MOB_SUM;
    case SHMEM_AMO_AND_:
      return MOB_BAND;
    case SHMEM_AMO_OR_:
      return MOB_BOR;
    case SHMEM_AMO_SWAP_:
      return MOB_REPLACE;
    default:
      return MOB_BXOR;
  }
}

template <typename T>
uint64_t to_word(T value) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<uint32_t>(value);
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<uint64_t>(value);
  return static_cast<uint64_t>(value);
}

template <typename T>
T from_word(uint64_t word) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<T>(static_cast<uint32_t>(word));
  if constexpr (std::is_same_v<T, double>) return std::bit_cast<T>(word);
  return static_cast<T>(word);
}

// The non-blocking forms may complete at once, and do.
template <typename T>
void fetch_now(shmem_ctx_t ctx, shmem_amo_t_ what, T* fetch, T* dest, T value, T cond, int pe,
               const char* call) {
  *fetch = from_word<T>(
      shmem_amo_slow_(ctx, what, dest, to_word(value), to_word(cond), sizeof(T), pe, call));
}

// Replaces the bits of `mask`.
template <typename T>
T swap_bits(T* dest, T mask, T value, int pe, const char* call) {
  auto old = from_word<T>(shmem_fetch_slow_(SHMEM_CTX_DEFAULT, dest, sizeof(T), pe, call));
  for (;;) {
    const T wanted = (old & ~mask) | (value & mask);
    const auto seen =
        from_word<T>(shmem_amo_slow_(SHMEM_CTX_DEFAULT, SHMEM_AMO_COMPARE_SWAP_, dest,
                                     to_word(wanted), to_word(old), sizeof(T), pe, call));
    if (seen == old) return old;
    old = seen;
  }
}

}  // namespace
}  // namespace mobius::shmem

using namespace mobius::shmem;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

uint64_t shmem_amo_slow_(shmem_ctx_t ctx, shmem_amo_t_ what, void* dest, uint64_t value,
                         uint64_t expected, unsigned bytes, int pe, const char* call) {
  const int rank = world_pe(ctx, pe, call);
  char* const place = place_in(dest, rank, call, "dest");
  const InContext in(ctx);
  return update_at(what, rank, place, value, expected, bytes, call);
}

uint64_t shmem_fetch_slow_(shmem_ctx_t ctx, const void* source, unsigned bytes, int pe,
                           const char* call) {
  const int rank = world_pe(ctx, pe, call);
  const char* const place = place_in(source, rank, call, "source");
  const InContext in(ctx);
  if (bytes == 8) {
    uint64_t value = 0;
    check(mob_get8(rank, place, &value), call);
    return value;
  }
  uint32_t value = 0;
  check(mob_get4(rank, place, &value), call);
  return value;
}

// To another host it is an accumulate, which shares a message with others and needs no answer.
void shmem_update_slow_(shmem_ctx_t ctx, shmem_amo_t_ what, void* dest, uint64_t value,
                        unsigned bytes, int pe, const char* call) {
  const int rank = world_pe(ctx, pe, call);
  char* const place = place_in(dest, rank, call, "dest");
  const InContext in(ctx);
  if (mob_is_host_mate(rank) == 1) {
    update_at(what, rank, place, value, 0, bytes, call);
    return;
  }
  const auto narrow = static_cast<uint32_t>(value);
  const void* const operand = bytes == 8 ? static_cast<const void*>(&value) : &narrow;
  check(mob_accumulate(rank, place, operand, 1, bytes == 8 ? MOB_UINT64 : MOB_UINT32, op_of(what)),
        call);
}

}  // extern "C"

#define DEFINE_BOTH(name, parameters, ctx_parameters, body) \
  SHMEM_TWIN(void, name, parameters) {                      \
    const shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;              \
    const char* const call = "shmem_" #name;                \
    body;                                                   \
  }                                                         \
  SHMEM_TWIN(void, ctx_##name, ctx_parameters) {            \
    const char* const call = "shmem_ctx_" #name;            \
    body;                                                   \
  }
#define DEFINE_FETCH(N, T, NAME, WHAT)                                         \
  DEFINE_BOTH(N##_atomic_##NAME##_nbi, (T * fetch, T * dest, T value, int pe), \
              (shmem_ctx_t ctx, T * fetch, T * dest, T value, int pe),         \
              fetch_now(ctx, WHAT, fetch, dest, value, static_cast<T>(0), pe, call))
#define DEFINE_EXTENDED(A, N, T)                                          \
  DEFINE_FETCH(N, T, swap, SHMEM_AMO_SWAP_)                               \
  DEFINE_BOTH(N##_atomic_fetch_nbi, (T * fetch, const T* source, int pe), \
              (shmem_ctx_t ctx, T * fetch, const T* source, int pe),      \
              *fetch = from_word<T>(shmem_fetch_slow_(ctx, source, sizeof(T), pe, call)))
#define DEFINE_AMO(A, N, T)                                                                        \
  DEFINE_EXTENDED(A, N, T)                                                                         \
  DEFINE_FETCH(N, T, fetch_add, SHMEM_AMO_ADD_)                                                    \
  DEFINE_BOTH(                                                                                     \
      N##_atomic_fetch_inc_nbi, (T * fetch, T * dest, int pe),                                     \
      (shmem_ctx_t ctx, T * fetch, T * dest, int pe),                                              \
      fetch_now(ctx, SHMEM_AMO_ADD_, fetch, dest, static_cast<T>(1), static_cast<T>(0), pe, call)) \
  DEFINE_BOTH(N##_atomic_compare_swap_nbi, (T * fetch, T * dest, T cond, T value, int pe),         \
              (shmem_ctx_t ctx, T * fetch, T * dest, T cond, T value, int pe),                     \
              fetch_now(ctx, SHMEM_AMO_COMPARE_SWAP_, fetch, dest, value, cond, pe, call))
#define DEFINE_BITS(A, N, T)                    \
  DEFINE_FETCH(N, T, fetch_and, SHMEM_AMO_AND_) \
  DEFINE_FETCH(N, T, fetch_or, SHMEM_AMO_OR_)   \
  DEFINE_FETCH(N, T, fetch_xor, SHMEM_AMO_XOR_)
SHMEM_LIST_AMO_(DEFINE_AMO, )
SHMEM_LIST_AMO_REALS_(DEFINE_EXTENDED, )
SHMEM_LIST_AMO_BITS_(DEFINE_BITS, )

SHMEM_TWIN(int, int_mswap, (int* dest, int mask, int value, int pe)) {
  return swap_bits(dest, mask, value, pe, "shmem_int_mswap");
}
SHMEM_TWIN(long, long_mswap, (long* dest, long mask, long value, int pe)) {
  return swap_bits(dest, mask, value, pe, "shmem_long_mswap");
}
