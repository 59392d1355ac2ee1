/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_SHMEM_TYPES_H
#define MOBIUS_SHMEM_TYPES_H

/* The types of OpenSHMEM and the lists of them (tables 3 to 10 of OpenSHMEM 1.6). Not an interface:
 * programs include shmem.h.
 *
 * A list calls X(A, NAME, TYPE) for each type; A is passed on unchanged. Lists that end in
 * DISTINCT_ have each type of the language once, as _Generic and C++ overloads need it; the others
 * also have the types of stdint.h and stddef.h under their own names. */

#include <mobius/atomic.h>
#include <mobius/rma.h>
#include <mobius/wait.h>

#define SHMEM_LIST_INTEGERS_DISTINCT_(X, A) \
  X(A, char, char)                          \
  X(A, schar, signed char)                  \
  X(A, short, short)                        \
  X(A, int, int)                            \
  X(A, long, long)                          \
  X(A, longlong, long long)                 \
  X(A, uchar, unsigned char)                \
  X(A, ushort, unsigned short)              \
  X(A, uint, unsigned int)                  \
  X(A, ulong, unsigned long)                \
  X(A, ulonglong, unsigned long long)

#define SHMEM_LIST_INTEGERS_(X, A)    \
  SHMEM_LIST_INTEGERS_DISTINCT_(X, A) \
  X(A, int8, int8_t)                  \
  X(A, int16, int16_t)                \
  X(A, int32, int32_t)                \
  X(A, int64, int64_t)                \
  X(A, uint8, uint8_t)                \
  X(A, uint16, uint16_t)              \
  X(A, uint32, uint32_t)              \
  X(A, uint64, uint64_t)              \
  X(A, size, size_t)                  \
  X(A, ptrdiff, ptrdiff_t)

#define SHMEM_LIST_REALS_(X, A) \
  X(A, float, float)            \
  X(A, double, double)          \
  X(A, longdouble, long double)

#define SHMEM_LIST_COMPLEX_(X, A)      \
  X(A, complexf, SHMEM_COMPLEX_FLOAT_) \
  X(A, complexd, SHMEM_COMPLEX_DOUBLE_)

/* Standard RMA types. */
#define SHMEM_LIST_RMA_DISTINCT_(X, A) \
  SHMEM_LIST_REALS_(X, A)              \
  SHMEM_LIST_INTEGERS_DISTINCT_(X, A)
#define SHMEM_LIST_RMA_(X, A) \
  SHMEM_LIST_REALS_(X, A)     \
  SHMEM_LIST_INTEGERS_(X, A)

/* Standard types of atomic operations, and the extended and bitwise ones. */
#define SHMEM_LIST_AMO_DISTINCT_(X, A) \
  X(A, int, int)                       \
  X(A, long, long)                     \
  X(A, longlong, long long)            \
  X(A, uint, unsigned int)             \
  X(A, ulong, unsigned long)           \
  X(A, ulonglong, unsigned long long)
#define SHMEM_LIST_AMO_(X, A)    \
  SHMEM_LIST_AMO_DISTINCT_(X, A) \
  X(A, int32, int32_t)           \
  X(A, int64, int64_t)           \
  X(A, uint32, uint32_t)         \
  X(A, uint64, uint64_t)         \
  X(A, size, size_t)             \
  X(A, ptrdiff, ptrdiff_t)
#define SHMEM_LIST_AMO_REALS_(X, A) \
  X(A, float, float)                \
  X(A, double, double)
#define SHMEM_LIST_AMO_BITS_DISTINCT_(X, A) \
  X(A, int32, int)                          \
  X(A, int64, long)                         \
  X(A, uint, unsigned int)                  \
  X(A, ulong, unsigned long)                \
  X(A, ulonglong, unsigned long long)
#define SHMEM_LIST_AMO_BITS_(X, A)    \
  X(A, uint, unsigned int)            \
  X(A, ulong, unsigned long)          \
  X(A, ulonglong, unsigned long long) \
  X(A, int32, int32_t)                \
  X(A, int64, int64_t)                \
  X(A, uint32, uint32_t)              \
  X(A, uint64, uint64_t)

/* Types that only deprecated forms have. */
#define SHMEM_LIST_SHORT_WAITS_(X, A) \
  X(A, short, short)                  \
  X(A, ushort, unsigned short)
#define SHMEM_LIST_TO_ALL_BITS_(X, A) \
  X(A, short, short)                  \
  X(A, int, int)                      \
  X(A, long, long)                    \
  X(A, longlong, long long)
#define SHMEM_LIST_TO_ALL_(X, A) \
  SHMEM_LIST_TO_ALL_BITS_(X, A)  \
  SHMEM_LIST_REALS_(X, A)

/* Elements of 8 to 128 bits. */
#define SHMEM_LIST_SIZES_(X, A) \
  X(A, 8, 1)                    \
  X(A, 16, 2)                   \
  X(A, 32, 4)                   \
  X(A, 64, 8)                   \
  X(A, 128, 16)

__extension__ typedef float _Complex shmem_complex_float_t_;
__extension__ typedef double _Complex shmem_complex_double_t_;
#define SHMEM_COMPLEX_FLOAT_ shmem_complex_float_t_
#define SHMEM_COMPLEX_DOUBLE_ shmem_complex_double_t_

/* The part of a context that the inlined calls read. */
struct shmem_context_ {
  int n_pes;  /* PEs of its team; 0 if the team has no stride, so that only the library can tell */
  int start;  /* PE in the world of its first PE */
  int stride; /* from PE to PE */
  void* more; /* the other part, which belongs to the library */
};

/** A context: a set of operations that one shmem_ctx_quiet() waits for. */
typedef struct shmem_context_* shmem_ctx_t;

/** A team of PEs. */
typedef struct shmem_team_* shmem_team_t;

/** The properties of a team that its creator asks for (shmem_team_split_strided()). */
typedef struct {
  int num_contexts; /**< contexts that the program will make of the team at a time */
} shmem_team_config_t;

/** The hints that a program gives for a session (shmem_ctx_session_start()). */
typedef struct {
  size_t total_ops; /**< calls that the program expects to make in it */
} shmem_ctx_session_config_t;

#endif
