/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_SHMEMX_H
#define MOBIUS_SHMEMX_H

/**
 * @file
 * Names with "shmemx" that other implementations gave to functions which OpenSHMEM 1.6 has, and a
 * clock. */

#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @return seconds since some moment of the past. Does not block. Thread safety: any. */
MOB_API double shmemx_wtime(void);

#ifdef __cplusplus
}
#endif

#define shmemx_signal_add shmem_signal_add
#define shmemx_signal_set shmem_signal_set
#define shmemx_ctx_signal_add shmem_ctx_signal_add
#define shmemx_ctx_signal_set shmem_ctx_signal_set
#define shmemx_pe_quiet shmem_pe_quiet
#define shmemx_ctx_pe_quiet shmem_ctx_pe_quiet
#define shmemx_team_ptr shmem_team_ptr
#define shmemx_ibput shmem_ibput
#define shmemx_ibget shmem_ibget
#define shmemx_sum_inscan shmem_sum_inscan
#define shmemx_sum_exscan shmem_sum_exscan

#endif
