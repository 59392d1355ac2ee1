// SPDX-License-Identifier: BSD-3-Clause

// Reductions. Each thread combines each of its own blocks; all exchange what they have, and combine
// that in the order of the blocks. Where the operation commutes, and no thread needs the values in
// between, a thread first combines its blocks into one.

#include <algorithm>
#include <cstring>
#include <vector>

#include "collectives.h"
#include "front.h"

namespace mobius::upc {
namespace {

template <typename T>
struct Operation {
  upc_op_t op;
  T (*func)(T, T);
  const char* call;

  T operator()(T a, T b) const {
    if ((op & (UPC_FUNC | UPC_NONCOMM_FUNC)) != 0) return func(a, b);
    if (!combine(op, &a, b)) {
      die(call,
          "op 0x%lx is not defined for this type: give one of UPC_ADD, UPC_MULT, UPC_MIN, "
          "UPC_MAX, UPC_LOGAND, UPC_LOGOR, for integers also UPC_AND, UPC_OR, UPC_XOR, or "
          "UPC_FUNC or UPC_NONCOMM_FUNC with a function",
          op);
    }
    return a;
  }
};

// The layout of an array as a collective call has it: blocks that go round over the threads, the
// first perhaps begun in its middle.
struct Blocks {
  mob_upc_ptr_t start;
  uint64_t elements;
  uint64_t block;  // elements in a block; 0: all in one
  uint64_t bytes;  // of an element

  uint64_t first() const {  // elements in the first block
    return block == 0 ? elements : std::min(elements, block - start.phase);
  }
  uint64_t count() const { return block == 0 ? 1 : 1 + (elements - first() + block - 1) / block; }
  uint64_t length(uint64_t i) const {
    if (i == 0) return first();
    return std::min(block, elements - first() - (i - 1) * block);
  }
  uint64_t position(uint64_t i) const {  // of the first element of block i
    return i == 0 ? 0 : first() + (i - 1) * block;
  }
  mob_upc_ptr_t at(uint64_t i) const {
    if (i == 0) return start;
    const auto all = static_cast<uint64_t>(threads());
    const uint64_t thread = start.thread + i;
    return mob_upc_pointer(start.offset + (thread / all * block - start.phase) * bytes,
                           static_cast<uint32_t>(thread % all), 0);
  }
  // The first block of the caller.
  uint64_t first_of_caller() const {
    const auto all = static_cast<uint64_t>(threads());
    return (static_cast<uint64_t>(mythread()) + all - start.thread) % all;
  }
};

Blocks blocks_of(mob_upc_ptr_t p, size_t elements, size_t block, size_t bytes, const char* call,
                 const char* argument) {
  check_pointer(p, call, argument);
  if (block <= 1) p.phase = 0;
  if (block > 1 && p.phase >= block) {
    die(call, "%s has phase %u, which no block of %zu elements has", argument, p.phase, block);
  }
  return {p, elements, block, bytes};
}

template <typename T>
void check_operation(const Operation<T>& operation) {
  if ((operation.op & (UPC_FUNC | UPC_NONCOMM_FUNC)) != 0) {
    if (operation.func == nullptr) die(operation.call, "op asks for a function, but func is null");
  } else {
    static_cast<void>(operation(T{}, T{}));
  }
}

template <typename T>
T total(const T* values, uint64_t count, const Operation<T>& operation) {
  T sum = values[0];
  for (uint64_t i = 1; i < count; ++i) sum = operation(sum, values[i]);
  return sum;
}

// The combination of each block, of all threads: block i is all[i / threads of i's row].
template <typename T>
std::vector<T> totals_of_blocks(const Blocks& from, const Operation<T>& operation) {
  const auto all = static_cast<uint64_t>(threads());
  const uint64_t rows = (from.count() + all - 1) / all;
  std::vector<T> mine(rows);
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t i = row * all + from.first_of_caller();
    if (i >= from.count()) break;
    const auto* const values = static_cast<const T*>(mob_upc_local(from.at(i).offset));
    mine[row] = total(values, from.length(i), operation);
  }
  std::vector<T> gathered(rows * all);
  check(mob_allgather(MOB_TEAM_WORLD, mine.data(), gathered.data(), rows * sizeof(T)),
        operation.call);
  std::vector<T> ordered(from.count());
  for (uint64_t i = 0; i < from.count(); ++i) {
    const uint64_t thread = (from.start.thread + i) % all;
    ordered[i] = gathered[thread * rows + i / all];
  }
  return ordered;
}

// Everything combined, at all threads.
template <typename T>
T reduce_all(const Blocks& from, const Operation<T>& operation) {
  const auto all = static_cast<uint64_t>(threads());
  if (operation.op == UPC_NONCOMM_FUNC) {
    const std::vector<T> totals = totals_of_blocks(from, operation);
    return total(totals.data(), totals.size(), operation);
  }
  struct Part {
    T value;
    int has;
  };
  Part mine = {};
  for (uint64_t i = from.first_of_caller(); i < from.count(); i += all) {
    const auto* const values = static_cast<const T*>(mob_upc_local(from.at(i).offset));
    const T sum = total(values, from.length(i), operation);
    mine.value = mine.has != 0 ? operation(mine.value, sum) : sum;
    mine.has = 1;
  }
  std::vector<Part> parts(all);
  check(mob_allgather(MOB_TEAM_WORLD, &mine, parts.data(), sizeof mine), operation.call);
  Part result = {};
  for (const Part& each : parts) {
    if (each.has == 0) continue;
    result.value = result.has != 0 ? operation(result.value, each.value) : each.value;
    result.has = 1;
  }
  return result.value;
}

enum class Target { kOne, kAll };

// So few elements one thread reads faster than all threads exchange what they have.
constexpr uint64_t kFewElements = 256;

// Everything combined by one thread, which reads the memory of all.
template <typename T>
T total_of_near(const Blocks& from, const Operation<T>& operation) {
  T sum = {};
  for (uint64_t i = 0; i < from.count(); ++i) {
    const mob_upc_ptr_t at = from.at(i);
    const auto* const values = reinterpret_cast<const T*>(mob_upc_bases_[at.thread] + at.offset);
    const T part = total(values, from.length(i), operation);
    sum = i == 0 ? part : operation(sum, part);
  }
  return sum;
}

// Whether each thread may begin with its own elements before others have entered.
bool begins_alone(upc_flag_t flags) { return (flags & (UPC_IN_MYSYNC | UPC_IN_NOSYNC)) != 0; }
// Whether each thread may return when its own elements are read and its result is written.
bool returns_alone(upc_flag_t flags) { return (flags & (UPC_OUT_MYSYNC | UPC_OUT_NOSYNC)) != 0; }

template <typename T>
void reduce(mob_upc_ptr_t dst, mob_upc_ptr_t src, size_t nelems, size_t block,
            const Operation<T>& operation, upc_flag_t flags, Target target) {
  check_flags(flags, operation.call);
  check_operation(operation);
  check_pointer(dst, operation.call, "dst");
  if (target == Target::kAll) check_blocks(dst, operation.call, "dst");
  const Blocks from =
      nelems != 0 ? blocks_of(src, nelems, block, sizeof(T), operation.call, "src") : Blocks{};
  const bool is_synchronous = !begins_alone(flags) && !returns_alone(flags);
  if (target == Target::kOne && is_synchronous && nelems != 0 && nelems <= kFewElements &&
      can_meet()) {
    if (!meet(dst.thread, operation.call)) return;
    const T result = total_of_near(from, operation);
    std::memcpy(mob_upc_local(dst.offset), &result, sizeof(T));
    return end_meeting(operation.call);
  }
  if (!begins_alone(flags)) library_barrier(operation.call);
  if (nelems != 0) {
    const T result = reduce_all(from, operation);
    if (target == Target::kAll || mob_upc_is_mine(dst)) {
      std::memcpy(mob_upc_local(dst.offset), &result, sizeof(T));
    }
  }
  if (!returns_alone(flags)) library_barrier(operation.call);
}

template <typename T>
void prefix_reduce(mob_upc_ptr_t dst, mob_upc_ptr_t src, size_t nelems, size_t block,
                   const Operation<T>& operation, upc_flag_t flags) {
  enter(flags, operation.call);
  check_operation(operation);
  if (nelems != 0) {
    const Blocks from = blocks_of(src, nelems, block, sizeof(T), operation.call, "src");
    const Blocks to = blocks_of(dst, nelems, block, sizeof(T), operation.call, "dst");
    const std::vector<T> totals = totals_of_blocks(from, operation);
    const bool is_alike = from.start.thread == to.start.thread && from.first() == to.first();
    T before = {};
    const auto all = static_cast<uint64_t>(threads());
    for (uint64_t i = 0; i < from.count(); ++i) {
      if ((from.start.thread + i) % all == static_cast<uint64_t>(mythread())) {
        const auto* const values = static_cast<const T*>(mob_upc_local(from.at(i).offset));
        T sum = before;
        for (uint64_t k = 0; k < from.length(i); ++k) {
          sum = i == 0 && k == 0 ? values[0] : operation(sum, values[k]);
          // An array of another start has this element in another place.
          const mob_upc_ptr_t place =
              is_alike ? mob_upc_member(to.at(i), k * sizeof(T))
              : block == 0
                  ? mob_upc_member(to.start, k * sizeof(T))
                  : mob_upc_add_blocked(to.start, static_cast<int64_t>(from.position(i) + k),
                                        sizeof(T), block);
          mob_upc_put_bytes(place, &sum, sizeof(T));
        }
      }
      before = i == 0 ? totals[0] : operation(before, totals[i]);
    }
  }
  leave(flags, operation.call);
}

}  // namespace
}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

#define DEFINE_REDUCES(suffix, T)                                                               \
  void upc_all_reduce##suffix(mob_upc_ptr_t dst, mob_upc_ptr_t src, upc_op_t op, size_t nelems, \
                              size_t blk_size, T (*func)(T, T), upc_flag_t flags) {             \
    reduce<T>(dst, src, nelems, blk_size, {op, func, "upc_all_reduce" #suffix}, flags,          \
              Target::kOne);                                                                    \
  }                                                                                             \
  void bupc_all_reduce_all##suffix(mob_upc_ptr_t dst, mob_upc_ptr_t src, upc_op_t op,           \
                                   size_t nelems, size_t blk_size, T (*func)(T, T),             \
                                   upc_flag_t flags) {                                          \
    reduce<T>(dst, src, nelems, blk_size, {op, func, "bupc_all_reduce_all" #suffix}, flags,     \
              Target::kAll);                                                                    \
  }                                                                                             \
  void upc_all_prefix_reduce##suffix(mob_upc_ptr_t dst, mob_upc_ptr_t src, upc_op_t op,         \
                                     size_t nelems, size_t blk_size, T (*func)(T, T),           \
                                     upc_flag_t flags) {                                        \
    prefix_reduce<T>(dst, src, nelems, blk_size, {op, func, "upc_all_prefix_reduce" #suffix},   \
                     flags);                                                                    \
  }

extern "C" {

DEFINE_REDUCES(C, signed char)
DEFINE_REDUCES(UC, unsigned char)
DEFINE_REDUCES(S, short)
DEFINE_REDUCES(US, unsigned short)
DEFINE_REDUCES(I, int)
DEFINE_REDUCES(UI, unsigned int)
DEFINE_REDUCES(L, long)
DEFINE_REDUCES(UL, unsigned long)
DEFINE_REDUCES(F, float)
DEFINE_REDUCES(D, double)
DEFINE_REDUCES(LD, long double)

}  // extern "C"
