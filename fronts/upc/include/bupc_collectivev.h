/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BUPC_COLLECTIVEV_H
#define BUPC_COLLECTIVEV_H

/**
 * @file
 * Collective calls of single values, as Berkeley UPC has them: macros whose first argument is a
 * type. All threads call them with the same type, root and operation. `value` is an lvalue of that
 * type.
 *
 * Root -1 of bupc_allv_gather() and bupc_allv_reduce() is all threads. Results of threads that are
 * no root are 0. Operations: UPC_ADD … UPC_MAX, on integers of 1 to 8 bytes, float, double and
 * long double. */

#include <upc_collective.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BUPC_COLLECTIVEV_VERSION_MAJOR 1
#define BUPC_COLLECTIVEV_VERSION_MINOR 2

/** Copies a value of the root. @return where it is; valid until the next call */
MOB_UPC_API void* mob_upc_value_broadcast(const void* value, size_t bytes, int root);
/** Collects the values in the root's array `all`, or everybody's with root -1. @return `all` */
MOB_UPC_API void* mob_upc_value_gather(const void* value, size_t bytes, int root, void* all);
/** Gives each thread its element of the root's array. @return where it is */
MOB_UPC_API void* mob_upc_value_scatter(const void* all, size_t bytes, int root);
/** Gives the value to another thread. @return where the caller's is, which a thread gave it */
MOB_UPC_API void* mob_upc_value_permute(const void* value, size_t bytes, int to);
/**
 * Combines the values. `kind`: 0 unsigned, 1 signed, 2 floating point.
 *
 * @return where the result is
 */
MOB_UPC_API void* mob_upc_value_reduce(const void* value, size_t bytes, int root, upc_op_t op,
                                       int kind);
/** Combines the values of threads up to the caller; as mob_upc_value_reduce(). */
MOB_UPC_API void* mob_upc_value_prefix_reduce(const void* value, size_t bytes, upc_op_t op,
                                              int kind);

#define MOB_UPC_KIND_(T) (((T)0.5f) == ((T)0) ? (((T) - 1) < ((T)0) ? 1 : 0) : 2)
#define bupc_allv_broadcast(T, value, root) \
  (*(T*)mob_upc_value_broadcast(&(value), sizeof(T), (root)))
#define bupc_allv_gather(T, value, root, all) \
  ((T*)mob_upc_value_gather(&(value), sizeof(T), (root), (all)))
#define bupc_allv_gather_all(T, value, all) \
  ((T*)mob_upc_value_gather(&(value), sizeof(T), -1, (all)))
#define bupc_allv_scatter(T, root, all) (*(T*)mob_upc_value_scatter((all), sizeof(T), (root)))
#define bupc_allv_permute(T, value, to) (*(T*)mob_upc_value_permute(&(value), sizeof(T), (to)))
#define bupc_allv_reduce(T, value, root, op) \
  (*(T*)mob_upc_value_reduce(&(value), sizeof(T), (root), (op), MOB_UPC_KIND_(T)))
#define bupc_allv_reduce_all(T, value, op) \
  (*(T*)mob_upc_value_reduce(&(value), sizeof(T), -1, (op), MOB_UPC_KIND_(T)))
#define bupc_allv_prefix_reduce(T, value, op) \
  (*(T*)mob_upc_value_prefix_reduce(&(value), sizeof(T), (op), MOB_UPC_KIND_(T)))

#ifdef __cplusplus
}
#endif
#endif
