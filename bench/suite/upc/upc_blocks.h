/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SUITE_UPC_BLOCKS_H
#define SUITE_UPC_BLOCKS_H

/**
 * @file
 * Shared code of the blocks in UPC. Calls of UPC return nothing: one that fails ends the job, or
 * shows in the data.
 */

#include <upc_relaxed.h>

#include "../suite.h"

/** Our own errors; UPC has none. */
enum { SUITE_UPC_OK, SUITE_UPC_NO_MEMORY };

/** The part of a thread: a block without phase, so its arithmetic is that of plain pointers. */
// clang-format off
typedef shared [] unsigned char* upc_part_t;
// clang-format on

/** What a window has. */
typedef struct upc_window {
  shared void* memory;
  upc_part_t* parts; /* of each thread */
} upc_window_t;

static inline upc_part_t upc_place(const suite_window_t* window, int thread, size_t offset) {
  return ((const upc_window_t*)window->state)->parts[thread] + window->bases[thread] + offset;
}

#endif
