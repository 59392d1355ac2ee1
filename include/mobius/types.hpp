/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_TYPES_HPP
#define MOBIUS_TYPES_HPP

/**
 * @file
 * Concepts: which C++ types can be transferred, combined and updated atomically. */

#include <mobius/error.hpp>
#include <mobius/types.h>

#include <complex>
#include <concepts>
#include <ranges>
#include <span>
#include <type_traits>

namespace mob {

/**
 * Types that can be moved byte by byte. Plain pointers are excluded, because they mean nothing in
 * other processes (mob::Pointer does); pointers and references inside objects mean nothing there
 * either.
 */
template <typename T>
concept Transferable =
    std::is_trivially_copyable_v<T> && std::is_object_v<T> && !std::is_array_v<T> &&
    !std::is_pointer_v<T> && std::same_as<T, std::remove_cv_t<T>>;

namespace detail {

template <typename T>
[[nodiscard]] consteval int find_type() {
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    switch (sizeof(T)) {
      case 1:
        return std::is_signed_v<T> ? MOB_INT8 : MOB_UINT8;
      case 2:
        return std::is_signed_v<T> ? MOB_INT16 : MOB_UINT16;
      case 4:
        return std::is_signed_v<T> ? MOB_INT32 : MOB_UINT32;
      case 8:
        return std::is_signed_v<T> ? MOB_INT64 : MOB_UINT64;
      default:
        return -1;
    }
  } else if constexpr (std::same_as<T, float>) {
    return MOB_FLOAT;
  } else if constexpr (std::same_as<T, double>) {
    return MOB_DOUBLE;
  } else if constexpr (std::same_as<T, std::complex<float>>) {
    return MOB_COMPLEX_FLOAT;
  } else if constexpr (std::same_as<T, std::complex<double>>) {
    return MOB_COMPLEX_DOUBLE;
  } else {
    return -1;
  }
}

}  // namespace detail

/**
 * Types that a mob_type_t names: integers of 1, 2, 4 and 8 bytes (whatever their name; not bool),
 * float, double, and std::complex of these.
 */
template <typename T>
concept Reducible = Transferable<T> && detail::find_type<T>() >= 0;

/** The mob_type_t of a type. */
template <Reducible T>
inline constexpr mob_type_t type_of = static_cast<mob_type_t>(detail::find_type<T>());

/** Types of atomic calls and waits: integers of 4 and 8 bytes. */
template <typename T>
concept Word = Reducible<T> && std::integral<T> && (sizeof(T) == 4 || sizeof(T) == 8);

/** Contiguous transferable elements to read: a std::vector, std::array, std::span, an array … */
template <typename R>
concept Buffer = std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
                 Transferable<std::ranges::range_value_t<R>>;

/** Contiguous transferable elements to write. */
template <typename R>
concept WritableBuffer =
    Buffer<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/** The type of a buffer's elements. */
template <Buffer R>
using Element = std::ranges::range_value_t<R>;

}  // namespace mob

#endif
