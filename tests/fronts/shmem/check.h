/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                    \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      fprintf(stderr, "PE %d: %s:%d: %s\n", shmem_my_pe(), __FILE__, __LINE__, #condition); \
      shmem_global_exit(1);                                                                 \
    }                                                                                       \
  } while (0)

/* The neighbours in a ring of all PEs. */
static inline int right_pe(void) { return (shmem_my_pe() + 1) % shmem_n_pes(); }
static inline int left_pe(void) { return (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes(); }
