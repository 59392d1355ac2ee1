/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UPC_TICK_H
#define UPC_TICK_H

/**
 * @file
 * UPC 1.3, §7.5: a clock. Ticks are nanoseconds of the host's monotonic clock; those of different
 * hosts cannot be compared. Local, does not block. */

#include <mobius_upc/faces.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A number of ticks. */
typedef uint64_t upc_tick_t;
#define UPC_TICK_MAX ((upc_tick_t) - 1)
#define UPC_TICK_MIN ((upc_tick_t)0)

/** @return the time now. */
MOB_UPC_API upc_tick_t upc_ticks_now(void);
/** @return `ticks` in nanoseconds. */
MOB_UPC_API uint64_t upc_ticks_to_ns(upc_tick_t ticks);

#ifdef __cplusplus
}
#endif
#endif
