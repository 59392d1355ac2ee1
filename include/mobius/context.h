/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_CONTEXT_H
#define MOBIUS_CONTEXT_H

/**
 * @file
 * Contexts: which operations a flush waits for.
 *
 * Every thread uses one context at a time, at first the default one, which all threads share. A
 * flush covers the operations started in the context of the calling thread, by whatever thread:
 * threads with contexts of their own do not wait for each other's.
 *
 * So does all else that completes or orders what the calling thread started: mob_fence(), barriers,
 * mob_notify(), and giving back locks and access. What it started in a context that it does not use
 * any more these neither complete nor order. Only the end of an epoch (mob_epoch_complete(),
 * mob_epoch_fence()) completes what was put in any context.
 *
 * Compare OpenSHMEM 1.5 §9.5.
 */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A context. Owned by the library from mob_context_create() to mob_context_free(). */
typedef struct mob_context* mob_context_t;

/** The context that threads use at first. */
#ifdef __cplusplus
#define MOB_CONTEXT_DEFAULT (static_cast<mob_context_t>(nullptr))
#else
#define MOB_CONTEXT_DEFAULT ((mob_context_t)0)
#endif

/**
 * Makes a context.
 *
 * @param context  out: owned by the caller until mob_context_free()
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (null), MOB_ERR_MEMORY
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_context_create(mob_context_t* context);

/**
 * Completes what was started in a context, then frees it.
 *
 * @param context  used by no thread any more, or by the calling thread alone, which then uses the
 *                 default; MOB_CONTEXT_DEFAULT does nothing
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (not live), or the error of an operation that
 *         was started in it; the context is freed then, too
 *
 * Blocks as mob_flush_all(). Thread safety: per context.
 */
MOB_API mob_status_t mob_context_free(mob_context_t context);

/**
 * Makes the calling thread use a context from now on.
 *
 * @param context  a live context, or MOB_CONTEXT_DEFAULT
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (not live; the thread's context is as before)
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_context_use(mob_context_t context);

/** @return the context that the calling thread uses. Thread safety: any. Callable at any time. */
MOB_API mob_context_t mob_context_current(void);

#ifdef __cplusplus
}
#endif
#endif
