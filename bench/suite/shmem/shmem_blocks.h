/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_SHMEM_BLOCKS_H
#define SUITE_SHMEM_BLOCKS_H

/**
 * @file
 * Shared code of the blocks for OpenSHMEM, with the part of version 1.4 that all implementations
 * have, without teams and contexts, so that any oshcc compiles them. Calls return nothing: a
 * failing one ends the job, or shows in the data.
 */

#include <shmem.h>

#include "../suite.h"

/** Our own errors; OpenSHMEM has none. */
enum { SUITE_SHMEM_OK, SUITE_SHMEM_NO_MEMORY, SUITE_SHMEM_STATIC_FULL, SUITE_SHMEM_TOO_MANY };

#define TRY(call)                   \
  do {                              \
    int error_ = (call);            \
    if (error_ != 0) return error_; \
  } while (0)

/** A place of `rank`'s window, by the address that it has in this process. */
static inline void* shmem_place(const suite_window_t* window, int rank, size_t offset) {
  return (void*)(uintptr_t)(window->bases[rank] + offset);
}

#endif
