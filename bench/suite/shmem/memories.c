/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory of OpenSHMEM: the symmetric heap, and symmetric static memory. */

#include "shmem_blocks.h"

enum { kStaticBytes = 64 << 20 };
static unsigned char static_memory[kStaticBytes] __attribute__((aligned(4096)));

static int publish(suite_window_t* window, void* memory) {
  window->base = memory;
  if (memory == NULL) return SUITE_SHMEM_NO_MEMORY;
  for (int rank = 0; rank < window->comm->size; rank++)
    window->bases[rank] = (uint64_t)(uintptr_t)memory;
  return SUITE_SHMEM_OK;
}

static int allocate_open(suite_window_t* window) {
  return publish(window, shmem_align(4096, window->bytes));
}

static int allocate_close(suite_window_t* window) {
  shmem_barrier_all();
  shmem_free(window->base);
  return SUITE_SHMEM_OK;
}

static int static_open(suite_window_t* window) {
  if (window->bytes > kStaticBytes) return SUITE_SHMEM_STATIC_FULL;
  return publish(window, static_memory);
}

static int static_close(suite_window_t* window) {
  (void)window;
  shmem_barrier_all();
  return SUITE_SHMEM_OK;
}

static suite_memory_block_t allocate = {
    {SUITE_MEMORY, "allocate", "shmem_align", NULL}, allocate_open, allocate_close};
static suite_memory_block_t static_block = {
    {SUITE_MEMORY, "static", "symmetric static memory", NULL}, static_open, static_close};
SUITE_REGISTER(allocate)
SUITE_REGISTER(static_block)
