/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory for windows: allocated by the window, by MPI_Alloc_mem, by malloc, static, attached. */

#include <stdlib.h>
#include <string.h>

#include "mpi_blocks.h"

enum { kStaticBytes = 96 << 20 };
static unsigned char static_memory[kStaticBytes] __attribute__((aligned(4096)));

static int begin(suite_window_t* window) {
  mpi_window_t* state = calloc(1, sizeof *state);
  if (state == NULL) return SUITE_MPI_NO_MEMORY;
  state->win = MPI_WIN_NULL;
  state->group = state->partners[0].group = state->partners[1].group = MPI_GROUP_NULL;
  window->state = state;
  return MPI_SUCCESS;
}

static int made(suite_window_t* window) {
  mpi_window_t* state = mpi_window_of(window);
  int *model = NULL, found = 0;
  TRY(MPI_Win_set_errhandler(state->win, MPI_ERRORS_RETURN));
  TRY(MPI_Win_get_attr(state->win, MPI_WIN_MODEL, &model, &found));
  state->separate = !found || *model != MPI_WIN_UNIFIED;
  return MPI_SUCCESS;
}

static int create(suite_window_t* window) {
  mpi_window_t* state = mpi_window_of(window);
  TRY(MPI_Win_create(window->base, (MPI_Aint)window->bytes, 1, MPI_INFO_NULL,
                     mpi_comm_of(window->comm)->all, &state->win));
  return made(window);
}

static int end(suite_window_t* window) {
  mpi_window_t* state = mpi_window_of(window);
  if (state->win != MPI_WIN_NULL) TRY(MPI_Win_free(&state->win));
  free(state);
  window->state = NULL;
  return MPI_SUCCESS;
}

static int local_open(suite_window_t* window) {
  TRY(begin(window));
  window->base = suite_pages(window->bytes);
  return window->base != NULL ? MPI_SUCCESS : SUITE_MPI_NO_MEMORY;
}

static int local_close(suite_window_t* window) {
  TRY(end(window));
  free(window->base);
  return MPI_SUCCESS;
}

static int create_open(suite_window_t* window) {
  TRY(local_open(window));
  return create(window);
}

static int allocate_open(suite_window_t* window) {
  TRY(begin(window));
  TRY(MPI_Win_allocate((MPI_Aint)window->bytes, 1, MPI_INFO_NULL, mpi_comm_of(window->comm)->all,
                       &window->base, &mpi_window_of(window)->win));
  return made(window);
}

static int shared_open(suite_window_t* window) {
  TRY(begin(window));
  TRY(MPI_Win_allocate_shared((MPI_Aint)((window->bytes + 4095) / 4096 * 4096), 1, MPI_INFO_NULL,
                              mpi_comm_of(window->comm)->all, &window->base,
                              &mpi_window_of(window)->win));
  return made(window);
}

static int alloc_mem_open(suite_window_t* window) {
  TRY(begin(window));
  TRY(MPI_Alloc_mem((MPI_Aint)window->bytes, MPI_INFO_NULL, &window->base));
  return create(window);
}

static int alloc_mem_close(suite_window_t* window) {
  TRY(end(window));
  return MPI_Free_mem(window->base);
}

static int static_open(suite_window_t* window) {
  TRY(begin(window));
  if (window->bytes > kStaticBytes) return SUITE_MPI_STATIC_FULL;
  window->base = static_memory;
  return create(window);
}

static int dynamic_open(suite_window_t* window) {
  MPI_Aint mine = 0;
  TRY(local_open(window));
  mpi_window_t* state = mpi_window_of(window);
  MPI_Comm comm = mpi_comm_of(window->comm)->all;
  TRY(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &state->win));
  TRY(MPI_Win_attach(state->win, window->base, (MPI_Aint)window->bytes));
  TRY(MPI_Get_address(window->base, &mine));
  uint64_t place = (uint64_t)mine;
  TRY(MPI_Allgather(&place, 1, MPI_UINT64_T, window->bases, 1, MPI_UINT64_T, comm));
  return made(window);
}

static int dynamic_close(suite_window_t* window) {
  TRY(MPI_Barrier(mpi_comm_of(window->comm)->all));
  TRY(MPI_Win_detach(mpi_window_of(window)->win, window->base));
  return local_close(window);
}

#define MEMORY(identifier, name, summary, open, close)                                         \
  static suite_memory_block_t identifier = {{SUITE_MEMORY, name, summary, NULL}, open, close}; \
  SUITE_REGISTER(identifier)
MEMORY(local, "local", "malloc memory without a window, for two-sided transfers", local_open,
       local_close)
MEMORY(create_block, "create", "malloc memory in MPI_Win_create", create_open, local_close)
MEMORY(allocate, "allocate", "MPI_Win_allocate", allocate_open, end)
MEMORY(shared, "shared", "MPI_Win_allocate_shared", shared_open, end)
MEMORY(alloc_mem, "alloc_mem", "MPI_Alloc_mem memory in MPI_Win_create", alloc_mem_open,
       alloc_mem_close)
MEMORY(static_block, "static", "static memory in MPI_Win_create", static_open, end)
MEMORY(dynamic, "dynamic", "malloc memory in MPI_Win_create_dynamic", dynamic_open, dynamic_close)
