// SPDX-License-Identifier: BSD-3-Clause
#include "model/elements.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <type_traits>

namespace mobius_test {
namespace {

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// Calls visit(T{}) with the C++ type of `type`.
template <typename Visit>
auto with_type(mob_type_t type, Visit visit) {
  switch (type) {
    case MOB_INT8:
      return visit(int8_t{});
    case MOB_INT16:
      return visit(int16_t{});
    case MOB_INT32:
      return visit(int32_t{});
    case MOB_INT64:
      return visit(int64_t{});
    case MOB_UINT8:
      return visit(uint8_t{});
    case MOB_UINT16:
      return visit(uint16_t{});
    case MOB_UINT32:
      return visit(uint32_t{});
    case MOB_UINT64:
      return visit(uint64_t{});
    case MOB_FLOAT:
      return visit(float{});
    case MOB_DOUBLE:
      return visit(double{});
    case MOB_COMPLEX_FLOAT:
      return visit(std::complex<float>{});
    case MOB_COMPLEX_DOUBLE:
      break;
  }
  return visit(std::complex<double>{});
}

template <typename T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
T product(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

template <typename T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <typename T>
T combined(mob_op_t op, T a, T b) {
  if (op == MOB_SUM) return sum(a, b);
  if (op == MOB_PROD) return product(a, b);
  if (op == MOB_REPLACE) return b;
  if constexpr (std::is_floating_point_v<T>) {
    if (op == MOB_MIN) return std::fmin(a, b);
    if (op == MOB_MAX) return std::fmax(a, b);
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == MOB_MIN) return a < b ? a : b;
    if (op == MOB_MAX) return a > b ? a : b;
    if (op == MOB_LAND) return static_cast<T>(a != 0 && b != 0);
    if (op == MOB_LOR) return static_cast<T>(a != 0 || b != 0);
    if (op == MOB_LXOR) return static_cast<T>((a != 0) != (b != 0));
    if (op == MOB_BAND) return static_cast<T>(a & b);
    if (op == MOB_BOR) return static_cast<T>(a | b);
    if (op == MOB_BXOR) return static_cast<T>(a ^ b);
  }
  return a;
}

}  // namespace

size_t bytes_of(mob_type_t type) {
  return with_type(type, [](auto element) { return sizeof element; });
}

size_t alignment_of(mob_type_t type) {
  return with_type(type, [](auto element) { return alignof(decltype(element)); });
}

bool is_real_or_complex(mob_type_t type) { return type >= MOB_FLOAT; }

bool is_defined(mob_op_t op, mob_type_t type) {
  if (op == MOB_SUM || op == MOB_PROD || op == MOB_REPLACE || op == MOB_NO_OP) return true;
  if (op == MOB_MIN || op == MOB_MAX) return type < MOB_COMPLEX_FLOAT;
  return type < MOB_FLOAT;
}

void combine(mob_type_t type, mob_op_t op, void* target, const void* origin, const void* scale) {
  if (op == MOB_NO_OP) return;
  with_type(type, [&](auto element) {
    using T = decltype(element);
    T value = load<T>(origin);
    if (scale != nullptr) value = product(load<T>(scale), value);
    const T result = combined(op, load<T>(target), value);
    std::memcpy(target, &result, sizeof result);
  });
}

void write_exact(Random& random, mob_type_t type, void* element) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    T value;
    if constexpr (kIsComplex<T>) {
      const T units[] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {2, 0}, {1, 1}};
      value = units[random.below(6)];
    } else if constexpr (std::is_floating_point_v<T>) {
      const T values[] = {1, -1, 2, -2, T{0.5}, 3};
      value = values[random.below(6)];
    } else {
      value = static_cast<T>(random.next() | 1);
    }
    std::memcpy(element, &value, sizeof value);
  });
}

bool equal(mob_type_t type, const unsigned char* a, const unsigned char* b, size_t bytes) {
  return with_type(type, [&](auto element) {
    const size_t count = bytes / sizeof element;
    for (size_t i = 0; i < count; ++i) {
      const size_t at = i * sizeof element;
      if (load<decltype(element)>(a + at) != load<decltype(element)>(b + at)) return false;
    }
    return true;
  });
}

const char* name_of(mob_type_t type) {
  constexpr const char* kNames[MOB_TYPE_COUNT] = {
      "int8",   "int16",  "int32", "int64",  "uint8",         "uint16",
      "uint32", "uint64", "float", "double", "complex float", "complex double"};
  return kNames[type];
}

const char* name_of(mob_op_t op) {
  constexpr const char* kNames[MOB_OP_COUNT] = {"sum",  "prod", "min", "max",  "land",    "lor",
                                                "lxor", "band", "bor", "bxor", "replace", "no-op"};
  return kNames[op];
}

const char* name_of(mob_kind_t kind) {
  constexpr const char* kNames[] = {"put", "get", "accumulate", "fetch-accumulate"};
  return kNames[kind];
}

const char* name_of(mob_shape_t shape) {
  constexpr const char* kNames[] = {"contiguous", "strided", "pieces", "spans"};
  return kNames[shape];
}

}  // namespace mobius_test
