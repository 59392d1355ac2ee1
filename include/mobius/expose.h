/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_EXPOSE_H
#define MOBIUS_EXPOSE_H

/**
 * @file
 * Ordinary memory as a target: heap, stack and static variables.
 *
 * While memory is exposed, every call of rma.h, strided.h, atomic.h and transfer.h reaches it at
 * its address in its owner, like an allocation; only mob_ptr() does not. The owner takes no part:
 * puts and gets are copied by the kernel (cross-memory attach), and what the kernel cannot do
 * (atomic updates, boxes of many small runs; everything, where it refuses) is done by the owner's
 * progress thread, also while the program computes (with MOBIUS_PROGRESS=poll: when the program
 * calls the library).
 *
 * An allocation (memory.h) is far faster: some nanoseconds instead of half a microsecond for a
 * small put, and several for an atomic update. Atomicity and completion are those of rma.h and
 * atomic.h, but mob_put8() … mob_get1() of exposed memory are atomic against each other only when
 * aligned, and not against atomic.h. A put that fails because exposed memory is not mapped may have
 * been done in part.
 *
 * Compare LAPI (any address is a target, paper 1, §2) and MPI_Win_create.
 */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Some exposed memory. Owned by the library from mob_expose() to mob_withdraw(). */
typedef struct mob_exposed* mob_exposed_t;

/**
 * Makes memory of the caller a target. May overlap what is exposed already.
 *
 * @param address  first byte: heap, stack, static, or anything else that is mapped
 * @param bytes    how many, at least 1
 * @param flags    0
 * @param exposed  out: for mob_withdraw()
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (null, 0 bytes, unknown flags),
 *         MOB_ERR_RANGE (`address + bytes` leaves the address space), MOB_ERR_MEMORY
 *
 * Local, does not block. The memory stays the caller's, who keeps it mapped until it is withdrawn.
 * Others may use it once they know its address (mob_put8() it to them, or an exchange). Thread
 * safety: any.
 */
MOB_API mob_status_t mob_expose(void* address, size_t bytes, unsigned flags,
                                mob_exposed_t* exposed);

/** As mob_expose(), for everything that is or will be mapped in the calling process. */
MOB_API mob_status_t mob_expose_all(mob_exposed_t* exposed);

/**
 * Ends what mob_expose() began. Bytes that are exposed a second time stay so.
 *
 * @param exposed  live; null does nothing
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (withdrawn before, or never exposed)
 *
 * Local, does not block. Transfers that others started before may still be under way: synchronise
 * with them first. Thread safety: any.
 */
MOB_API mob_status_t mob_withdraw(mob_exposed_t exposed);

#ifdef __cplusplus
}
#endif
#endif
