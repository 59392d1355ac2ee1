/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_COUNTER_H
#define MOBIUS_COUNTER_H

/**
 * @file
 * Completion counters: words that transfers and messages count up, at the origin or at the target.
 *
 * A counter is owned by the process that made it and lies in memory that host-mates reach. Its
 * handle names its place in its owner: hand it to another process (as a value in a message or a
 * put), which names it as the target counter of transfers to its owner.
 *
 * Compare LAPI_Setcntr, LAPI_Getcntr, LAPI_Waitcntr (paper 1, §2).
 */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A completion counter. Null names none. */
typedef struct mob_counter* mob_counter_t;

/**
 * Makes a counter that holds 0.
 *
 * @param counter  out: owned by the caller until mob_counter_free()
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (null), MOB_ERR_MEMORY
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_counter_create(mob_counter_t* counter);

/**
 * Gives a counter back. Nothing may still count it and nobody wait for it.
 *
 * @param counter  made by this process; null does nothing
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (not a counter of this process, or freed before)
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_counter_free(mob_counter_t counter);

/**
 * Reads a counter of this process.
 *
 * @param counter  made by this process
 * @param value    out: what it holds; what was counted happened before, and its data is visible
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (`value` null)
 *
 * Local, does not block; makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_counter_get(mob_counter_t counter, uint64_t* value);

/**
 * Sets a counter of this process and wakes who waits for it.
 *
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_counter_set(mob_counter_t counter, uint64_t value);

/**
 * Waits until a counter of this process holds at least `value`, then subtracts `value` (both at
 * once: of several threads that wait, as many go on as the counter has room for).
 *
 * @param counter  made by this process
 * @param value    how much
 * @param left     out: what it holds after; may be null
 * @return MOB_OK; MOB_ERR_STATE (also in a handler, if it would have to wait); MOB_ERR_HANDLE;
 *         MOB_ERR_PEER (at the earliest after 100 ms, if any rank of the job died: nothing was
 *         subtracted, and who knows that it was not to count waits again)
 *
 * Blocks: spins briefly, then sleeps; makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_counter_wait(mob_counter_t counter, uint64_t value, uint64_t* left);

#ifdef __cplusplus
}
#endif
#endif
