/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_PLATFORM_H
#define MOBIUS_PLATFORM_H

/**
 * @file
 * Compiler-specific macros of the public headers: GCC and Clang, C99 or C++20, 64-bit Linux. */

#include <stddef.h>
#include <stdint.h>

#if !defined(__GNUC__) || !defined(__linux__) || !defined(__LP64__)
#error "Moebius needs GCC or Clang on 64-bit Linux"
#endif

/** An exported function or object of libmobius. */
#define MOB_API __attribute__((visibility("default")))

/**
 * A function defined in a header and inlined into its caller. This definition emits no symbol
 * (gnu_inline). The library compiles the same text once into a symbol of the same name, for callers
 * that cannot inline: other languages, dlsym(), code that takes the address.
 */
#ifdef MOB_EMIT_SYMBOLS
#define MOB_INLINE MOB_API
#else
#define MOB_INLINE \
  extern inline __attribute__((visibility("default"), always_inline, gnu_inline, unused))
#endif

/** A helper of such functions. It has no symbol, and no code takes its address. */
#ifdef MOB_EMIT_SYMBOLS
#define MOB_INLINE_PART_ static inline __attribute__((always_inline, unused))
#else
#define MOB_INLINE_PART_ extern inline __attribute__((always_inline, gnu_inline, unused))
#endif

#define MOB_LIKELY(condition) (__builtin_expect(!!(condition), 1) != 0)
#define MOB_UNLIKELY(condition) (__builtin_expect(!!(condition), 0) != 0)

#endif
