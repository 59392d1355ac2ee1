/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UPC_ATOMIC_H
#define UPC_ATOMIC_H

/**
 * @file
 * UPC 1.3 optional library, §7.1: atomic operations on shared memory.
 *
 * A domain names a type and the operations on it; its operations are atomic against each other, and
 * here against those of all domains. Types: UPC_INT, UPC_UINT, UPC_LONG, UPC_ULONG, UPC_INT32,
 * UPC_UINT32, UPC_INT64, UPC_UINT64, UPC_FLOAT, UPC_DOUBLE, UPC_PTS. Operations: UPC_GET, UPC_SET,
 * UPC_CSWAP on all; on numbers UPC_ADD, UPC_SUB, UPC_MULT, UPC_INC, UPC_DEC, UPC_MIN, UPC_MAX; on
 * integers UPC_AND, UPC_OR, UPC_XOR. Those on pointers to shared memory (UPC_PTS) take a mutex.
 *
 * Errors end the job with a message. */

#include <mobius_upc/faces.h>
#include <upc_types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UPC_GET 0x10000ul
#define UPC_SET 0x20000ul
#define UPC_CSWAP 0x40000ul
#define UPC_SUB 0x80000ul
#define UPC_INC 0x100000ul
#define UPC_DEC 0x200000ul

/** What a domain should be good at. All are alike here. */
typedef int upc_atomichint_t;
#define UPC_ATOMIC_HINT_DEFAULT 0
#define UPC_ATOMIC_HINT_LATENCY 1
#define UPC_ATOMIC_HINT_THROUGHPUT 2

#ifdef __UPC__
/** A domain: an object that only pointers name. */
typedef shared struct upc_atomicdomain_struct upc_atomicdomain_t;
#define MOB_UPC_DOMAIN_ upc_atomicdomain_t*
#else
#define MOB_UPC_DOMAIN_ mob_upc_ptr_t
#endif

/**
 * Makes a domain. Collective, with the same arguments.
 *
 * @param type   type of the elements
 * @param ops    the operations, combined by `|`
 * @param hints  UPC_ATOMIC_HINT_*
 * @return the domain, the same in all threads
 */
MOB_UPC_API MOB_UPC_DOMAIN_ upc_all_atomicdomain_alloc(upc_type_t type, upc_op_t ops,
                                                       upc_atomichint_t hints);
/** Frees a domain, when all threads have called it. Collective; null does nothing. */
MOB_UPC_API void upc_all_atomicdomain_free(MOB_UPC_DOMAIN_ ptr);

/**
 * Updates an element atomically, as a relaxed reference.
 *
 * @param domain     the domain
 * @param fetch_ptr  out: the element before the update; may be null, except with UPC_GET
 * @param op         one operation of the domain
 * @param target     the element
 * @param operand1   the operand; with UPC_CSWAP the value that the element must have; null with
 *                   UPC_GET, UPC_INC and UPC_DEC
 * @param operand2   with UPC_CSWAP the new value; otherwise null
 *
 * Blocks until it is done. Pointers to shared memory are compared without their phases.
 */
MOB_UPC_API void upc_atomic_relaxed(MOB_UPC_DOMAIN_ domain, void* fetch_ptr, upc_op_t op,
                                    MOB_UPC_SHARED_(void) target, const void* operand1,
                                    const void* operand2);
/** Updates an element as upc_atomic_relaxed(), as a strict reference. */
MOB_UPC_API void upc_atomic_strict(MOB_UPC_DOMAIN_ domain, void* fetch_ptr, upc_op_t op,
                                   MOB_UPC_SHARED_(void) target, const void* operand1,
                                   const void* operand2);
/** @return 1 if the operations are done by atomic instructions of the caller, else 0. */
MOB_UPC_API int upc_atomic_isfast(upc_type_t type, upc_op_t ops, MOB_UPC_SHARED_(void) addr);

#ifdef __cplusplus
}
#endif
#endif
