/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_TYPES_H
#define MOBIUS_TYPES_H

/**
 * @file
 * Element types, and the operations on them for accumulates, read-modify-write calls and
 * reductions. */

#include <mobius/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The type of an element. The name gives its size; a complex type is two reals, the real part
 * first.
 */
typedef enum mob_type {
  MOB_INT8,
  MOB_INT16,
  MOB_INT32,
  MOB_INT64,
  MOB_UINT8,
  MOB_UINT16,
  MOB_UINT32,
  MOB_UINT64,
  MOB_FLOAT,
  MOB_DOUBLE,
  MOB_COMPLEX_FLOAT, /**< 8 bytes, aligned to 4 */
  MOB_COMPLEX_DOUBLE /**< 16 bytes, aligned to 8 */
} mob_type_t;

enum { MOB_TYPE_COUNT = MOB_COMPLEX_DOUBLE + 1 /**< how many types there are */ };

/**
 * An operation that combines an element of the target (or of a partial result) with one of the
 * origin.
 *
 * Integer sums and products wrap. Logical operations read 0 as false and give 0 or 1. MIN and MAX
 * of a NaN and a number give the number.
 */
typedef enum mob_op {
  MOB_SUM,
  MOB_PROD,
  MOB_MIN,  /**< not for complex types */
  MOB_MAX,  /**< not for complex types */
  MOB_LAND, /**< integer types only, as all below except REPLACE and NO_OP */
  MOB_LOR,
  MOB_LXOR,
  MOB_BAND,
  MOB_BOR,
  MOB_BXOR,
  MOB_REPLACE, /**< gives the origin's element: an element-wise atomic put */
  MOB_NO_OP    /**< keeps the target's element: with a fetch, an element-wise atomic get */
} mob_op_t;

enum { MOB_OP_COUNT = MOB_NO_OP + 1 /**< how many operations there are */ };

/**
 * @return the size of an element in bytes; 0 if `type` is unknown. Thread safety: any. May be
 *         called at any time.
 */
MOB_API size_t mob_type_bytes(mob_type_t type);

/**
 * @return 1 if `op` is defined on `type` as listed above, else 0. Thread safety: any. May be called
 *         at any time.
 */
MOB_API int mob_op_is_defined(mob_op_t op, mob_type_t type);

#ifdef __cplusplus
}
#endif
#endif
