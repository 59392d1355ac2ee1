// SPDX-License-Identifier: BSD-3-Clause
// Part of kernels_body.h: non-atomic loops that combine elements.
#pragma once

#include <mobius/rma.h>
#include <mobius/types.h>

#include <cstddef>
#include <cstdint>

#include "transport/shm/kernels/element_ops.h"
#include "transport/shm/kernels/kernels.h"

// The iterations are independent: where origin and target overlap, they are identical.
#ifdef __clang__
#define MOB_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MOB_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace mobius::transport {
namespace {

template <mob_op_t kOp, typename T>
void combine_each(Loose<T>* target, const Loose<T>* origin, size_t count) {
  MOB_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    target[i].value = apply<kOp>(target[i].value, origin[i].value);
  }
}

// One store. As in copy_word() (copy.h), the store may inform a waiter that earlier puts are
// visible.
template <typename T>
[[gnu::always_inline]] inline void store_element(Loose<T>* target, T value) {
  if constexpr (MOB_PUT_ORDER_ == __ATOMIC_RELEASE && !kIsReal<T> && !kIsComplex<T>) {
    if (reinterpret_cast<uintptr_t>(target) % sizeof value == 0) {
      return __atomic_store_n(reinterpret_cast<T*>(target), value, MOB_PUT_ORDER_);
    }
  }
  target->value = value;
}

template <typename T>
void add_scaled(Loose<T>* target, const Loose<T>* origin, size_t count, T scale) {
  MOB_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    target[i].value = sum(target[i].value, product(scale, origin[i].value));
  }
}

template <mob_op_t kOp, typename T>
[[gnu::always_inline]] inline void combine_run(char* target, const char* origin, size_t count,
                                               const void* scale) {
  if constexpr (kOp == MOB_REPLACE) {
    if (target != origin) __builtin_memcpy(target, origin, count * sizeof(T));
  } else if constexpr (kOp != MOB_NO_OP) {
    auto* to = reinterpret_cast<Loose<T>*>(target);
    const auto* from = reinterpret_cast<const Loose<T>*>(origin);
    if (count == 1 && scale == nullptr) {  // the set-up for wide registers costs more than this
      return store_element<T>(to, apply<kOp>(to->value, from->value));
    }
    if constexpr (kOp == MOB_SUM) {
      if (scale != nullptr) {
        return add_scaled<T>(to, from, count, static_cast<const Loose<T>*>(scale)->value);
      }
    }
    combine_each<kOp, T>(to, from, count);
  }
}

// Fetches old values in blocks that are still in the nearest cache when they are combined.
template <mob_op_t kOp, typename T>
void combine_and_fetch(char* to, const char* from, size_t count, const void* scale, char* old) {
  constexpr size_t kBlock = 4096 / sizeof(T);
  while (count != 0) {
    const size_t part = count < kBlock ? count : kBlock;
    __builtin_memcpy(old, to, part * sizeof(T));
    combine_run<kOp, T>(to, from, part, scale);
    to += part * sizeof(T);
    if constexpr (kOp != MOB_NO_OP) from += part * sizeof(T);
    old += part * sizeof(T);
    count -= part;
  }
}

template <mob_op_t kOp, typename T>
void combine(const Rows& rows, size_t count, const void* scale, void* fetched) {
  auto* old = static_cast<char*>(fetched);
  char* to = rows.to;
  const char* from = rows.from;
  if (rows.count == 1 && old == nullptr) return combine_run<kOp, T>(to, from, count, scale);
  for (size_t row = 0; row < rows.count; ++row) {
    if (old == nullptr) {
      combine_run<kOp, T>(to, from, count, scale);
    } else {
      combine_and_fetch<kOp, T>(to, from, count, scale, old);
      old += count * sizeof(T);
    }
    to += rows.to_stride;
    if constexpr (kOp != MOB_NO_OP) from += rows.from_stride;
  }
}

using CombineTable = Combine[MOB_OP_COUNT][MOB_TYPE_COUNT];

template <typename T, mob_op_t... kOps>
constexpr void fill_type(CombineTable& table, mob_type_t type) {
  ((table[kOps][type] = &combine<kOps, typename WorkOf<kOps, T>::Type>), ...);
}

template <typename T>
constexpr void fill_integer(CombineTable& table, mob_type_t type) {
  fill_type<T, MOB_SUM, MOB_PROD, MOB_MIN, MOB_MAX, MOB_LAND, MOB_LOR, MOB_LXOR, MOB_BAND, MOB_BOR,
            MOB_BXOR, MOB_REPLACE, MOB_NO_OP>(table, type);
}

template <typename T>
constexpr void fill_real(CombineTable& table, mob_type_t type) {
  fill_type<T, MOB_SUM, MOB_PROD, MOB_MIN, MOB_MAX, MOB_REPLACE, MOB_NO_OP>(table, type);
}

template <typename T>
constexpr void fill_complex(CombineTable& table, mob_type_t type) {
  fill_type<Complex<T>, MOB_SUM, MOB_PROD, MOB_REPLACE, MOB_NO_OP>(table, type);
}

constexpr void fill_combine(CombineTable& table) {
  fill_integer<int8_t>(table, MOB_INT8);
  fill_integer<int16_t>(table, MOB_INT16);
  fill_integer<int32_t>(table, MOB_INT32);
  fill_integer<int64_t>(table, MOB_INT64);
  fill_integer<uint8_t>(table, MOB_UINT8);
  fill_integer<uint16_t>(table, MOB_UINT16);
  fill_integer<uint32_t>(table, MOB_UINT32);
  fill_integer<uint64_t>(table, MOB_UINT64);
  fill_real<float>(table, MOB_FLOAT);
  fill_real<double>(table, MOB_DOUBLE);
  fill_complex<float>(table, MOB_COMPLEX_FLOAT);
  fill_complex<double>(table, MOB_COMPLEX_DOUBLE);
}

#undef MOB_INDEPENDENT

}  // namespace
}  // namespace mobius::transport
