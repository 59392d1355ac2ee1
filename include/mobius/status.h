/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_STATUS_H
#define MOBIUS_STATUS_H

/**
 * @file
 * Results of calls. Every function that can fail returns a ::mob_status_t; outputs are written only
 * on MOB_OK, and a failed call leaves the job as it was unless its own text says otherwise.
 */

#include <mobius/platform.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Result of a call: 0 is success, every negative value an error. */
typedef enum mob_status {
  MOB_OK = 0,
  MOB_ERR_STATE = -1,    /**< Called before mob_init() or after mob_finalize(). */
  MOB_ERR_ARGUMENT = -2, /**< A null pointer or a value outside its documented set. */
  MOB_ERR_RANK = -3,     /**< The rank is not one of this job. */
  MOB_ERR_RANGE =
      -4, /**< Bytes outside every allocation of the target, or a size that overflows. */
  MOB_ERR_HANDLE = -5,  /**< Not a live allocation (freed already, or never allocated). */
  MOB_ERR_MEMORY = -6,  /**< The host or this process cannot provide the memory. */
  MOB_ERR_SETTING = -7, /**< A MOBIUS_* setting is malformed or contradicts another. */
  MOB_ERR_SYSTEM = -8,  /**< The operating system refused something Möbius needs. */
  MOB_ERR_PEER = -9 /**< Another process of the job ended, or failed in the same collective call. */
} mob_status_t;

/**
 * Name of a status, for example "MOB_ERR_RANGE".
 *
 * @param status  any value; unknown ones give "MOB_ERR_UNKNOWN"
 * @return static text, never null, never freed
 *
 * Thread safety: any. Callable at any time.
 */
MOB_API const char* mob_status_name(mob_status_t status);

/**
 * What went wrong in the last failed call of the calling thread: what, where and how to fix it.
 *
 * @return text owned by the library, valid until the next failed call of this thread; "" when none
 *         failed. A call that succeeds leaves the text alone, so read it only after a failure; so
 *         do handlers that run in a call of this thread: their errors are told in the handler.
 *
 * Thread safety: any; each thread has its own text. Callable at any time.
 */
MOB_API const char* mob_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
