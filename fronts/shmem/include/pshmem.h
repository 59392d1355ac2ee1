/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_PSHMEM_H
#define MOBIUS_PSHMEM_H

/**
 * @file
 * The profiling twins of OpenSHMEM: pshmem_NAME does what shmem_NAME does. A tool defines
 * shmem_NAME itself and calls the twin. Programs that it observes are compiled with
 * -DSHMEM_NO_INLINE; otherwise the calls that are inlined pass it by. */

#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMEM_FUNCTION_(result, name, parameters) MOB_API result pshmem_##name parameters;
#include <shmem/functions.h>
#undef SHMEM_FUNCTION_
MOB_API void pshmem_wait(long* ivar, long cmp_value);
MOB_API void pshmem_wait_until(long* ivar, int cmp, long cmp_value);

#ifdef __cplusplus
}
#endif
#endif
