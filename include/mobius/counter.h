/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_COUNTER_H
#define MOBIUS_COUNTER_H

/**
 * @file
 * Completion counters: words that transfers and messages count up, at the origin or at the target.
 *
 * A counter belongs to the process that made it and lies in memory that its local peers can access.
 * Its handle names its place in its owner. The owner may pass the handle to another process, as a
 * value in a message or a put; that process names it as the target counter of transfers to the
 * owner.
 *
 * Compare LAPI_Setcntr, LAPI_Getcntr, LAPI_Waitcntr (paper 1, §2). */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A completion counter. Null names none. */
typedef struct mob_counter* mob_counter_t;

/**
 * Makes a counter that holds 0.
 *
 * @param counter  out: the caller owns it until mob_counter_free()
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (null), MOB_ERR_MEMORY
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_counter_create(mob_counter_t* counter);

/**
 * Frees a counter. No operation may still count it, and no thread may wait for it.
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
 * @param value    out: its value. The caller sees the data of every operation that is counted in
 *                 it.
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (`value` null)
 *
 * Local, does not block; makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_counter_get(mob_counter_t counter, uint64_t* value);

/**
 * Sets a counter of this process and wakes the threads that wait for it.
 *
 * @param counter  made by this process
 * @param value    its new value
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_counter_set(mob_counter_t counter, uint64_t value);

/**
 * Waits until a counter of this process holds at least `value`, then subtracts `value`. Both happen
 * atomically: several waiting threads continue as far as the counter suffices for each of them.
 *
 * @param counter  made by this process
 * @param value    the value to wait for and subtract
 * @param left     out: the value after the subtraction; may be null
 * @return MOB_OK; MOB_ERR_STATE (also in a handler, if it would have to wait); MOB_ERR_HANDLE;
 *         MOB_ERR_PEER (any rank of the job died, and the wait has lasted at least 100 ms; nothing
 *         was subtracted, and a caller that knows that the dead rank was not to count waits again)
 *
 * Blocks: spins briefly, then sleeps; makes progress. Thread safety: any.
 */
MOB_API mob_status_t mob_counter_wait(mob_counter_t counter, uint64_t value, uint64_t* left);

#ifdef __cplusplus
}
#endif
#endif
