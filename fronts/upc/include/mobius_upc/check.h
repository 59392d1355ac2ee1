/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_UPC_CHECK_H
#define MOBIUS_UPC_CHECK_H

/**
 * @file
 * Checks of accesses, for programs that are compiled with -fsanitize=shared. Each returns its first
 * argument, so that it can be put around an operand. A failed check ends the job with a message
 * that begins with `where` ("file:line"). Local, do not block. Thread safety: one thread of the
 * process at a time. */

#include <mobius_upc/pointer.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Checks a pointer before an access: not null, a thread of the job, and all bytes in static shared
 * objects or in one live block of shared memory as far as the calling thread can know.
 *
 * @param p      the pointer
 * @param bytes  bytes that are read or written
 * @param where  place in the program
 */
MOB_UPC_API mob_upc_ptr_t mob_upc_checked(mob_upc_ptr_t p, uint64_t bytes, const char* where);

/**
 * Checks an index of an array before the element is computed.
 *
 * @param index  the index
 * @param count  elements of the array (of this dimension)
 * @param name   the array, for the message
 * @param where  place in the program
 */
MOB_UPC_API int64_t mob_upc_checked_index(int64_t index, uint64_t count, const char* name,
                                          const char* where);

/** Checks a pointer before a cast to a private one: null, or affinity to the calling thread. */
MOB_UPC_API mob_upc_ptr_t mob_upc_checked_cast(mob_upc_ptr_t p, const char* where);

#ifdef __cplusplus
}
#endif
#endif
