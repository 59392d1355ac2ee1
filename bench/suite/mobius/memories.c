/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory of Möbius: allocated collectively or by one rank, exposed memory of the program, and
 * memory that messages reach. */

#include <stdlib.h>

#include "mobius_blocks.h"

enum { kStaticBytes = 96 << 20 };
static unsigned char static_memory[kStaticBytes] __attribute__((aligned(4096)));

static int begin(suite_window_t* window) {
  mobius_window_t* state = calloc(1, sizeof *state);
  if (state == NULL) return MOB_ERR_MEMORY;
  window->state = state;
  return MOB_OK;
}

static int publish(suite_window_t* window) {
  return mob_publish(mobius_comm_of(window->comm)->team, window->base, (void**)window->bases);
}

static int end(suite_window_t* window) {
  TRY(mob_team_barrier(mobius_comm_of(window->comm)->team));
  free(window->state);
  window->state = NULL;
  return MOB_OK;
}

static int allocate_open(suite_window_t* window) {
  TRY(begin(window));
  mobius_window_t* state = mobius_window_of(window);
  TRY(mob_team_alloc(mobius_comm_of(window->comm)->team, window->bytes, 0, &state->mem));
  window->base = mob_mem_local(state->mem);
  return publish(window);
}

static int allocate_close(suite_window_t* window) {
  TRY(mob_mem_free(mobius_window_of(window)->mem));
  return end(window);
}

static int alone_open(suite_window_t* window) {
  void* pointer = NULL;
  TRY(begin(window));
  TRY(mob_local_alloc(window->bytes, 4096, &pointer));
  window->base = pointer;
  return publish(window);
}

static int alone_close(suite_window_t* window) {
  void* pointer = window->base;
  TRY(end(window));
  return mob_local_free(pointer);
}

static int expose(suite_window_t* window, void* memory, unsigned flags) {
  TRY(begin(window));
  window->base = memory;
  if (memory == NULL) return MOB_ERR_MEMORY;
  TRY(mob_expose(memory, window->bytes, flags, &mobius_window_of(window)->exposed));
  return publish(window);
}

static int withdraw(suite_window_t* window) {
  mob_exposed_t exposed = mobius_window_of(window)->exposed;
  TRY(end(window));
  return mob_withdraw(exposed);
}

static int create_open(suite_window_t* window) {
  return expose(window, suite_pages(window->bytes), 0);
}

static int remap_open(suite_window_t* window) {
  return expose(window, suite_pages(window->bytes), MOB_EXPOSE_REMAP);
}

static int create_close(suite_window_t* window) {
  TRY(withdraw(window));
  free(window->base);
  return MOB_OK;
}

static int static_open(suite_window_t* window) {
  return expose(window, window->bytes <= kStaticBytes ? static_memory : NULL, 0);
}

static int local_open(suite_window_t* window) {
  TRY(begin(window));
  window->base = suite_pages(window->bytes);
  if (window->base == NULL) return MOB_ERR_MEMORY;
  return publish(window);
}

static int local_close(suite_window_t* window) {
  TRY(end(window));
  free(window->base);
  return MOB_OK;
}

#define MEMORY(identifier, name, summary, open, close)                                         \
  static suite_memory_block_t identifier = {{SUITE_MEMORY, name, summary, NULL}, open, close}; \
  SUITE_REGISTER(identifier)
MEMORY(allocate, "allocate", "mob_team_alloc", allocate_open, allocate_close)
MEMORY(alone, "alloc_mem", "mob_local_alloc, by each rank alone", alone_open, alone_close)
MEMORY(create_block, "create", "malloc memory in mob_expose", create_open, create_close)
MEMORY(remap, "remap", "malloc memory in mob_expose, its pages moved", remap_open, create_close)
MEMORY(local, "local", "malloc memory, for messages", local_open, local_close)
MEMORY(static_block, "static", "static memory in mob_expose", static_open, withdraw)
