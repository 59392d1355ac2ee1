// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/element.h"

#include <array>
#include <cstdint>
#include <utility>

#include "transport/shm/kernels/element_ops.h"

namespace mobius::transport {
namespace {

struct TypeInfo {
  uint8_t bytes;
  uint8_t alignment;
};

constexpr const char* kTypeNames[MOB_TYPE_COUNT] = {
    "MOB_INT8",  "MOB_INT16",  "MOB_INT32",         "MOB_INT64",
    "MOB_UINT8", "MOB_UINT16", "MOB_UINT32",        "MOB_UINT64",
    "MOB_FLOAT", "MOB_DOUBLE", "MOB_COMPLEX_FLOAT", "MOB_COMPLEX_DOUBLE"};
constexpr const char* kOpNames[MOB_OP_COUNT] = {"MOB_SUM",  "MOB_PROD", "MOB_MIN",     "MOB_MAX",
                                                "MOB_LAND", "MOB_LOR",  "MOB_LXOR",    "MOB_BAND",
                                                "MOB_BOR",  "MOB_BXOR", "MOB_REPLACE", "MOB_NO_OP"};

constexpr TypeInfo kTypes[MOB_TYPE_COUNT] = {
    {1, 1}, {2, 2},  {4, 4}, {8, 8},  // int8 … int64
    {1, 1}, {2, 2},  {4, 4}, {8, 8},  // uint8 … uint64
    {4, 4}, {8, 8},                   // float, double
    {8, 4}, {16, 8},                  // complex of both
};

// C callers may pass any value.
bool is_type(mob_type_t type) { return static_cast<unsigned>(type) < unsigned{MOB_TYPE_COUNT}; }
bool is_op(mob_op_t op) { return static_cast<unsigned>(op) < unsigned{MOB_OP_COUNT}; }

// Combines one element atomically; returns the old value if `kFetches`. The release pairs with the
// acquire of a thread that waits for the word (engine/progress/word_wait.h): the waiter sees
// everything that the origin had ordered before, also where a thread that serves other hosts wrote
// it. The acquire of a fetched value pairs with the release, fence or flush before the old value
// was stored.
template <mob_op_t kOp, bool kFetches, typename T>
[[gnu::always_inline]] inline T update(T* target, T value) {
  constexpr int kOrder = kFetches ? __ATOMIC_ACQ_REL : __ATOMIC_RELEASE;
  if constexpr (kOp == MOB_NO_OP) {
    return __atomic_load_n(target, __ATOMIC_ACQUIRE);
  } else if constexpr (kOp == MOB_REPLACE) {
    if constexpr (kFetches) {
      return __atomic_exchange_n(target, value, kOrder);
    } else {
      __atomic_store_n(target, value, kOrder);
      return value;
    }
  } else if constexpr (kOp == MOB_SUM) {
    return __atomic_fetch_add(target, value, kOrder);
  } else if constexpr (kOp == MOB_BAND) {
    return __atomic_fetch_and(target, value, kOrder);
  } else if constexpr (kOp == MOB_BOR) {
    return __atomic_fetch_or(target, value, kOrder);
  } else if constexpr (kOp == MOB_BXOR) {
    return __atomic_fetch_xor(target, value, kOrder);
  } else {
    T old = __atomic_load_n(target, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(target, &old, apply<kOp>(old, value), true, kOrder,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
  }
}

template <mob_op_t kOp, bool kFetches, typename T>
void update_each(char* target, const char* origin, size_t count, T scale, char* fetched) {
  auto* to = reinterpret_cast<T*>(target);
  const auto* from = reinterpret_cast<const Loose<T>*>(origin);
  auto* old = reinterpret_cast<Loose<T>*>(fetched);
  for (size_t i = 0; i < count; ++i) {
    T value = 0;
    if constexpr (kOp != MOB_NO_OP) value = from[i].value;
    if constexpr (kOp == MOB_SUM) value = product(scale, value);
    const T before = update<kOp, kFetches>(to + i, value);
    if constexpr (kFetches) old[i].value = before;
  }
}

template <mob_op_t kOp, typename T>
void combine_atomically(const Rows& rows, size_t count, const void* scale, void* fetched) {
  const T factor = scale == nullptr ? T{1} : static_cast<const Loose<T>*>(scale)->value;
  auto* old = static_cast<char*>(fetched);
  char* to = rows.to;
  const char* from = rows.from;
  for (size_t row = 0; row < rows.count; ++row) {
    if (old != nullptr) {
      update_each<kOp, true, T>(to, from, count, factor, old);
      old += count * sizeof(T);
    } else if constexpr (kOp != MOB_NO_OP) {
      update_each<kOp, false, T>(to, from, count, factor, nullptr);
    }
    to += rows.to_stride;
    if constexpr (kOp != MOB_NO_OP) from += rows.from_stride;
  }
}

using KernelTable = std::array<std::array<Combine, MOB_TYPE_COUNT>, MOB_OP_COUNT>;

// All operations are defined for integers.
template <typename T, int... kOps>
constexpr void fill_atomic(KernelTable& table, mob_type_t type,
                           std::integer_sequence<int, kOps...> /* all operations */) {
  ((table[kOps][type] = &combine_atomically<static_cast<mob_op_t>(kOps),
                                            typename WorkOf<static_cast<mob_op_t>(kOps), T>::Type>),
   ...);
}

constexpr KernelTable kAtomic = [] {
  KernelTable table{};
  constexpr auto kAll = std::make_integer_sequence<int, MOB_OP_COUNT>();
  fill_atomic<int8_t>(table, MOB_INT8, kAll);
  fill_atomic<int16_t>(table, MOB_INT16, kAll);
  fill_atomic<int32_t>(table, MOB_INT32, kAll);
  fill_atomic<int64_t>(table, MOB_INT64, kAll);
  fill_atomic<uint8_t>(table, MOB_UINT8, kAll);
  fill_atomic<uint16_t>(table, MOB_UINT16, kAll);
  fill_atomic<uint32_t>(table, MOB_UINT32, kAll);
  fill_atomic<uint64_t>(table, MOB_UINT64, kAll);
  return table;
}();

}  // namespace

size_t element_bytes(mob_type_t type) { return is_type(type) ? kTypes[type].bytes : 0; }

size_t element_alignment(mob_type_t type) { return is_type(type) ? kTypes[type].alignment : 0; }

bool is_integer(mob_type_t type) { return type >= MOB_INT8 && type <= MOB_UINT64; }

const char* type_name(mob_type_t type) {
  return is_type(type) ? kTypeNames[type] : "nothing known";
}

const char* op_name(mob_op_t op) { return is_op(op) ? kOpNames[op] : "nothing known"; }

bool op_is_defined(mob_op_t op, mob_type_t type) { return plain_kernel(op, type) != nullptr; }

Combine plain_kernel(mob_op_t op, mob_type_t type) {
  return is_op(op) && is_type(type) ? kernels().combine[op][type] : nullptr;
}

Combine atomic_kernel(mob_op_t op, mob_type_t type) {
  return is_op(op) && is_type(type) ? kAtomic[op][type] : nullptr;
}

bool find_element_op(mob_op_t op, mob_type_t type, ElementOp* found) {
  if (!is_op(op) || !is_type(type)) return false;
  *found = {kernels().combine[op][type], kAtomic[op][type], kTypes[type].bytes,
            kTypes[type].alignment};
  return found->plain != nullptr;
}

}  // namespace mobius::transport
