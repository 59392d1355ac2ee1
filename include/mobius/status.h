/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_STATUS_H
#define MOBIUS_STATUS_H

/**
 * @file
 * Results of calls. Every function that can fail returns a ::mob_status_t.
 *
 * A call writes its outputs only when it returns MOB_OK. A call that fails leaves the job as it
 * was, unless its own documentation says otherwise. */

#include <mobius/platform.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Result of a call: 0 is success, every negative value an error. */
typedef enum mob_status {
  MOB_OK = 0,
  /**
   * The call was made before mob_init() or after mob_finalize(), or is not allowed here (for
   * example in a message handler).
   */
  MOB_ERR_STATE = -1,
  MOB_ERR_ARGUMENT = -2, /**< A null pointer or a value outside its documented set. */
  MOB_ERR_RANK = -3,     /**< The rank is not one of this job. */
  MOB_ERR_RANGE =
      -4, /**< The bytes lie outside every allocation of the target, or a size overflows. */
  MOB_ERR_HANDLE = -5,  /**< The handle is not live: its object was freed, or never existed. */
  MOB_ERR_MEMORY = -6,  /**< The host or this process cannot provide the memory. */
  MOB_ERR_SETTING = -7, /**< A MOBIUS_* setting is malformed or contradicts another. */
  MOB_ERR_SYSTEM = -8,  /**< The operating system refused something that Möbius needs. */
  MOB_ERR_PEER = -9 /**< Another process of the job ended, or failed in the same collective call. */
} mob_status_t;

/**
 * Returns the name of a status, for example "MOB_ERR_RANGE".
 *
 * @param status  any value; an unknown one gives "MOB_ERR_UNKNOWN"
 * @return static text, never null; the caller does not free it
 *
 * Does not block. Thread safety: any. May be called at any time.
 */
MOB_API const char* mob_status_name(mob_status_t status);

/**
 * Returns the text of the last error of the calling thread: what failed, where, and how to fix it.
 *
 * @return text that the library owns, valid until the next call of this thread fails; "" if none
 *         has failed. A successful call does not change the text, so read it only after a failure.
 *         Handlers that run inside a call of this thread do not change it either: the handler
 *         itself sees their errors.
 *
 * Does not block. Thread safety: any; each thread has its own text. May be called at any time.
 */
MOB_API const char* mob_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
