/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_ARMCI_BLOCKS_H
#define SUITE_ARMCI_BLOCKS_H

/**
 * @file
 * Shared code of the blocks for ARMCI, with the features that both this project's libarmci and
 * ARMCI-MPI have. ARMCI-MPI includes mpi.h, and needs MPI initialised first.
 */

#include <armci.h>
#include <message.h>

#include "../suite.h"

/** Our own errors, besides those of calls. */
enum { SUITE_ARMCI_OK, SUITE_ARMCI_NO_MEMORY = 1000, SUITE_ARMCI_NO_SUM, SUITE_ARMCI_NO_LONG };

#define TRY(call)                   \
  do {                              \
    int error_ = (call);            \
    if (error_ != 0) return error_; \
  } while (0)

static inline void* armci_place(const suite_window_t* window, int to, size_t offset) {
  return (void*)(uintptr_t)(window->bases[to] + offset);
}

/** Whether there was a put since the last fence; gets need no fence. */
typedef struct armci_window {
  int pending;
} armci_window_t;

static inline armci_window_t* armci_window_of(const suite_window_t* window) {
  return window->state;
}

#endif
