/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* The tables of types of OpenSHMEM 1.6, written anew: X(A, NAME, TYPE). */

#include <stddef.h>
#include <stdint.h>

#define ALL_INTEGERS(X, A)     \
  X(A, char, char)             \
  X(A, schar, signed char)     \
  X(A, short, short)           \
  X(A, int, int)               \
  X(A, long, long)             \
  X(A, longlong, long long)    \
  X(A, uchar, unsigned char)   \
  X(A, ushort, unsigned short) \
  X(A, uint, unsigned int)     \
  X(A, ulong, unsigned long)   \
  X(A, ulonglong, unsigned long long)
#define ALL_SIZED(X, A)  \
  X(A, int8, int8_t)     \
  X(A, int16, int16_t)   \
  X(A, int32, int32_t)   \
  X(A, int64, int64_t)   \
  X(A, uint8, uint8_t)   \
  X(A, uint16, uint16_t) \
  X(A, uint32, uint32_t) \
  X(A, uint64, uint64_t) \
  X(A, size, size_t)     \
  X(A, ptrdiff, ptrdiff_t)
#define ALL_REALS(X, A) \
  X(A, float, float)    \
  X(A, double, double)  \
  X(A, longdouble, long double)
#define ALL_WORDS(X, A)      \
  X(A, int, int)             \
  X(A, long, long)           \
  X(A, longlong, long long)  \
  X(A, uint, unsigned int)   \
  X(A, ulong, unsigned long) \
  X(A, ulonglong, unsigned long long)
#define ALL_SIZED_WORDS(X, A) \
  X(A, int32, int32_t)        \
  X(A, int64, int64_t)        \
  X(A, uint32, uint32_t)      \
  X(A, uint64, uint64_t)      \
  X(A, size, size_t)          \
  X(A, ptrdiff, ptrdiff_t)
#define ALL_AMO_REALS(X, A) \
  X(A, float, float)        \
  X(A, double, double)
#define ALL_BITS(X, A)                \
  X(A, uint, unsigned int)            \
  X(A, ulong, unsigned long)          \
  X(A, ulonglong, unsigned long long) \
  X(A, int32, int32_t)                \
  X(A, int64, int64_t)
#define ALL_SIZED_BITS(X, A) \
  X(A, uint32, uint32_t)     \
  X(A, uint64, uint64_t)
#define ALL_SHORTS(X, A) \
  X(A, short, short)     \
  X(A, ushort, unsigned short)
#define ALL_SIZES(X, A) \
  X(A, 8, 1)            \
  X(A, 16, 2)           \
  X(A, 32, 4)           \
  X(A, 64, 8)           \
  X(A, 128, 16)
