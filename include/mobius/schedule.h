/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_SCHEDULE_H
#define MOBIUS_SCHEDULE_H

/**
 * @file
 * Hints about what may be done with operations on other hosts' memory before they are issued: in
 * which order, merged, many in one message.
 *
 * Without any, the setting MOBIUS_SCHEDULE decides for the job. A hint of an allocation comes
 * before it, one of a context before both, and one of an epoch, or of an object for access, before
 * all of them. Hints change when and how operations travel, never what they do: every promise of
 * order and completion holds under each of them. They are of the calling process' operations, and
 * each may have its own. Within a host they
 * are of no effect.
 *
 * Compare W. Huang et al., "Scheduling of MPI-2 One Sided Operations over InfiniBand" (paper 2).
 */

#include <mobius/access.h>
#include <mobius/context.h>
#include <mobius/epoch.h>
#include <mobius/memory.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What may be done; as the choices of MOBIUS_SCHEDULE. */
typedef enum mob_schedule {
  MOB_SCHEDULE_DEFAULT,    /**< no hint */
  MOB_SCHEDULE_ADAPTIVE,   /**< what of the following pays */
  MOB_SCHEDULE_FIFO,       /**< each operation is a message of its own, at once */
  MOB_SCHEDULE_INTERLEAVE, /**< gets and the others alternate, so that both directions work */
  MOB_SCHEDULE_GETS_FIRST, /**< a get does not wait behind puts */
  MOB_SCHEDULE_AGGREGATE   /**< many operations share a message, neighbours are merged */
} mob_schedule_t;

/**
 * Says what may be done with the caller's operations on an allocation, wherever its parts are.
 *
 * @param mem       a live allocation
 * @param schedule  from the next operation on; MOB_SCHEDULE_DEFAULT takes the hint back
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (`schedule`)
 *
 * Does not block. Operations between which the hint differs keep their order. Thread safety: any.
 */
MOB_API mob_status_t mob_mem_schedule(mob_mem_t mem, mob_schedule_t schedule);

/**
 * Says what may be done with what the caller transfers in access epochs of an object, from the next
 * mob_epoch_start() on, whichever memory it is.
 *
 * @param epoch     a live object, in no access epoch
 * @param schedule  MOB_SCHEDULE_DEFAULT takes the hint back
 * @return MOB_OK, MOB_ERR_STATE (also in an access epoch), MOB_ERR_HANDLE, MOB_ERR_ARGUMENT
 *         (`schedule`)
 *
 * Where several threads have epochs to one target open, the hint of the last one holds until all of
 * them have ended. Does not block. Thread safety: per object.
 */
MOB_API mob_status_t mob_epoch_schedule(mob_epoch_t epoch, mob_schedule_t schedule);

/**
 * Says what may be done with what the caller transfers to a member while it has access to it by an
 * object, exclusive or shared, from the next mob_access_lock(), mob_access_trylock() or
 * mob_access_lock_all() on, whichever memory it is.
 *
 * @param access    a live object
 * @param schedule  MOB_SCHEDULE_DEFAULT takes the hint back
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (`schedule`)
 *
 * Where the process has access to one target more than once, or an epoch to it besides, the hint of
 * the last one holds until all of them have ended. Does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_access_schedule(mob_access_t access, mob_schedule_t schedule);

/**
 * Says what may be done with what is started in a context, by whatever thread.
 *
 * @param context   a live context, or MOB_CONTEXT_DEFAULT: what threads start that use no other
 * @param schedule  from the next operation on; MOB_SCHEDULE_DEFAULT takes the hint back
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE, MOB_ERR_ARGUMENT (`schedule`)
 *
 * Does not block. Operations between which the hint differs keep their order. Thread safety: any.
 */
MOB_API mob_status_t mob_context_schedule(mob_context_t context, mob_schedule_t schedule);

#ifdef __cplusplus
}
#endif
#endif
