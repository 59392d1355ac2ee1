// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Operations on two values, shared by the plain and the atomic loops. Internal linkage and no C++
// library; kernels_body.h gives the reason.

#include <mobius/types.h>

#include <cstddef>
#include <cstdint>

namespace mobius::transport {
namespace {

// A value at any address, in memory that other code accesses as another type.
template <typename T>
struct [[gnu::packed, gnu::may_alias]] Loose {
  T value;
};

template <typename T>
struct Complex {
  T real;
  T imaginary;
};

template <typename T>
constexpr bool kIsComplex = false;
template <typename T>
constexpr bool kIsComplex<Complex<T>> = true;
template <typename T>
constexpr bool kIsReal = false;
template <>
constexpr bool kIsReal<float> = true;
template <>
constexpr bool kIsReal<double> = true;

// The unsigned integer in which integers of N bytes wrap. At least as wide as int: the language
// would promote narrower ones to int, whose products overflow.
template <size_t N>
struct WrapOf {
  using Type = uint32_t;
};
template <>
struct WrapOf<8> {
  using Type = uint64_t;
};

// The integer of N bytes for operations that ignore the sign.
template <size_t N>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using Type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using Type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using Type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using Type = uint64_t;
};

// The type whose loop does the work: only MIN and MAX depend on the sign.
template <mob_op_t kOp, typename T>
struct WorkOf {
  using Type = T;
};
template <mob_op_t kOp, typename T>
  requires(kOp != MOB_MIN && kOp != MOB_MAX && !kIsReal<T> && !kIsComplex<T>)
struct WorkOf<kOp, T> {
  using Type = typename UnsignedOf<sizeof(T)>::Type;
};

template <typename T>
[[gnu::always_inline]] inline T sum(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return {a.real + b.real, a.imaginary + b.imaginary};
  } else if constexpr (kIsReal<T>) {
    return a + b;
  } else {
    using Wrap = typename WrapOf<sizeof(T)>::Type;
    return static_cast<T>(static_cast<Wrap>(a) + static_cast<Wrap>(b));
  }
}

template <typename T>
[[gnu::always_inline]] inline T product(T a, T b) {
  if constexpr (kIsComplex<T>) {
    return {a.real * b.real - a.imaginary * b.imaginary,
            a.real * b.imaginary + a.imaginary * b.real};
  } else if constexpr (kIsReal<T>) {
    return a * b;
  } else {
    using Wrap = typename WrapOf<sizeof(T)>::Type;
    return static_cast<T>(static_cast<Wrap>(a) * static_cast<Wrap>(b));
  }
}

// MIN and MAX of a NaN and a number give the number.
template <typename T>
[[gnu::always_inline]] inline T minimum(T a, T b) {
  if constexpr (kIsReal<T>) return ((b < a) | (a != a)) != 0 ? b : a;
  return b < a ? b : a;
}

template <typename T>
[[gnu::always_inline]] inline T maximum(T a, T b) {
  if constexpr (kIsReal<T>) return ((b > a) | (a != a)) != 0 ? b : a;
  return b > a ? b : a;
}

// Not for MOB_NO_OP. The operation must be defined on T.
template <mob_op_t kOp, typename T>
[[gnu::always_inline]] inline T apply(T a, T b) {
  if constexpr (kOp == MOB_SUM) return sum(a, b);
  if constexpr (kOp == MOB_PROD) return product(a, b);
  if constexpr (kOp == MOB_MIN) return minimum(a, b);
  if constexpr (kOp == MOB_MAX) return maximum(a, b);
  if constexpr (kOp == MOB_LAND) return static_cast<T>((a != 0) & (b != 0));
  if constexpr (kOp == MOB_LOR) return static_cast<T>((a != 0) | (b != 0));
  if constexpr (kOp == MOB_LXOR) return static_cast<T>((a != 0) ^ (b != 0));
  if constexpr (kOp == MOB_BAND) return static_cast<T>(a & b);
  if constexpr (kOp == MOB_BOR) return static_cast<T>(a | b);
  if constexpr (kOp == MOB_BXOR) return static_cast<T>(a ^ b);
  if constexpr (kOp == MOB_REPLACE) return b;
}

}  // namespace
}  // namespace mobius::transport
