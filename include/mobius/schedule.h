/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_SCHEDULE_H
#define MOBIUS_SCHEDULE_H

/**
 * @file
 * Hints about how operations on other hosts' memory may be scheduled before they are sent: in which
 * order, merged, and many in one message.
 *
 * Without a hint the setting MOBIUS_SCHEDULE decides for the job. A hint of an allocation takes
 * precedence over the setting, a hint of a context over both, and a hint of an epoch or of an
 * object for access over all of them. Hints change when and how operations travel, never their
 * result: every promise of order and completion holds under each hint. A hint applies to the
 * operations of the calling process, and every process may give its own. Within a host, hints have
 * no effect.
 *
 * Compare W. Huang et al., "Scheduling of MPI-2 One Sided Operations over InfiniBand" (paper 2). */

#include <mobius/access.h>
#include <mobius/context.h>
#include <mobius/epoch.h>
#include <mobius/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The permitted schedules; the choices of MOBIUS_SCHEDULE. */
typedef enum mob_schedule {
  MOB_SCHEDULE_DEFAULT,  /**< no hint */
  MOB_SCHEDULE_ADAPTIVE, /**< the library chooses the schedule that pays */
  MOB_SCHEDULE_FIFO,     /**< sends each operation at once, as a message of its own */
  /** Alternates gets with other operations, so that both directions of the link work. */
  MOB_SCHEDULE_INTERLEAVE,
  MOB_SCHEDULE_GETS_FIRST, /**< sends gets before puts */
  MOB_SCHEDULE_AGGREGATE   /**< sends many operations in one message, and merges neighbours */
} mob_schedule_t;

/**
 * Sets the schedule of the caller's operations on an allocation, on all its parts.
 *
 * @param mem       a live allocation
 * @param schedule  applies from the next operation on; MOB_SCHEDULE_DEFAULT removes the hint
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (`schedule`)
 *
 * Does not block. Operations with different hints keep their order. Thread safety: any.
 */
MOB_API mob_status_t mob_mem_schedule(mob_mem_t mem, mob_schedule_t schedule);

/**
 * Sets the schedule of the caller's transfers in access epochs of an object, from the next
 * mob_epoch_start() on, whatever memory they access.
 *
 * @param epoch     a live object, in no access epoch
 * @param schedule  MOB_SCHEDULE_DEFAULT removes the hint
 * @return MOB_OK, MOB_ERR_STATE (also in an access epoch), MOB_ERR_HANDLE, MOB_ERR_ARGUMENT
 *         (`schedule`)
 *
 * If several threads have epochs to one target, the hint of the last one applies until all have
 * ended. Does not block. Thread safety: per object.
 */
MOB_API mob_status_t mob_epoch_schedule(mob_epoch_t epoch, mob_schedule_t schedule);

/**
 * Sets the schedule of the caller's transfers to a member while it has access through an object,
 * exclusive or shared, from the next mob_access_lock(), mob_access_trylock() or
 * mob_access_lock_all() on, whatever memory they access.
 *
 * @param access    a live object
 * @param schedule  MOB_SCHEDULE_DEFAULT removes the hint
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (`schedule`)
 *
 * If the process has access to one target more than once, or also an epoch to it, the hint of the
 * last one applies until all have ended. Does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_access_schedule(mob_access_t access, mob_schedule_t schedule);

/**
 * Sets the schedule of the operations that any thread starts in a context.
 *
 * @param context   a live context, or MOB_CONTEXT_DEFAULT for threads that use no other
 * @param schedule  applies from the next operation on; MOB_SCHEDULE_DEFAULT removes the hint
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (`schedule`)
 *
 * Does not block. Operations with different hints keep their order. Thread safety: any.
 */
MOB_API mob_status_t mob_context_schedule(mob_context_t context, mob_schedule_t schedule);

#ifdef __cplusplus
}
#endif
#endif
