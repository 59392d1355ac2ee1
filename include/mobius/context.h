/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_CONTEXT_H
#define MOBIUS_CONTEXT_H

/**
 * @file
 * Contexts: sets of operations that one flush waits for.
 *
 * Every thread uses one context at a time, at first the default context, which all threads share. A
 * flush covers the operations started in the calling thread's context, by any thread. Threads with
 * contexts of their own do not wait for each other's operations.
 *
 * All other calls that complete or order operations of the calling thread also cover its current
 * context only: mob_fence(), barriers, mob_notify(), and giving back locks and access. They neither
 * complete nor order operations that the thread started in a context that it no longer uses. Only
 * the end of an epoch (mob_epoch_complete(), mob_epoch_fence()) completes puts of any context.
 *
 * Compare OpenSHMEM 1.5 §9.5. */

#include <mobius/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A context. The library owns it from mob_context_create() to mob_context_free(). */
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
 * @param context  out: live until mob_context_free()
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_ARGUMENT (null), MOB_ERR_MEMORY
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_context_create(mob_context_t* context);

/**
 * Completes the operations that were started in a context, then frees it.
 *
 * @param context  used by no thread any more, or by the calling thread alone, which then returns to
 *                 the default context; MOB_CONTEXT_DEFAULT does nothing
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (not live), or the error of an operation that was
 *         started in it; the context is freed in that case too
 *
 * Blocks as mob_flush_all(). Thread safety: per context.
 */
MOB_API mob_status_t mob_context_free(mob_context_t context);

/**
 * Makes the calling thread use a context from now on.
 *
 * @param context  a live context, or MOB_CONTEXT_DEFAULT
 * @return MOB_OK, MOB_ERR_STATE, MOB_ERR_HANDLE (not live; the thread keeps its context)
 *
 * Local, does not block. Thread safety: any.
 */
MOB_API mob_status_t mob_context_use(mob_context_t context);

/**
 * @return the context that the calling thread uses. Does not block. Thread safety: any. May be
 *         called at any time.
 */
MOB_API mob_context_t mob_context_current(void);

#ifdef __cplusplus
}
#endif
#endif
