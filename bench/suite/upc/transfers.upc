/* SPDX-License-Identifier: BSD-3-Clause */

/* Transfers of UPC: bulk copies of the runs of a type, and loads through pointers to shared. */

#include "upc_blocks.h"

static int put(suite_window_t* window, const suite_type_t* type, int to, void* local,
               size_t remote, void* result) {
  upc_part_t far = upc_place(window, to, remote);
  (void)result;
  for (size_t i = 0; i < type->run_count; i++)
    upc_memput(far + type->runs[i].offset, (const char*)local + type->runs[i].offset,
               type->runs[i].bytes);
  return SUITE_UPC_OK;
}

static int get(suite_window_t* window, const suite_type_t* type, int to, void* local,
               size_t remote, void* result) {
  upc_part_t far = upc_place(window, to, remote);
  (void)result;
  for (size_t i = 0; i < type->run_count; i++)
    upc_memget((char*)local + type->runs[i].offset, far + type->runs[i].offset,
               type->runs[i].bytes);
  return SUITE_UPC_OK;
}

/* Method 2 of paper 4, Table 2: one relaxed read for each word. */
static double add_up(suite_window_t* window, int to, size_t remote, size_t words) {
  shared [] const double* data = (shared [] const double*)upc_place(window, to, remote);
  double sum = 0;
  for (size_t i = 0; i < words; i++) sum += data[i];
  return sum;
}

static suite_transfer_block_t load_block = {
    .head = {SUITE_TRANSFER, "load", "relaxed reads through a pointer to shared", NULL},
    .effect = SUITE_GETS,
    .add_up = add_up};
SUITE_REGISTER(load_block)

SUITE_REGISTER_TRANSFER(put, SUITE_PUTS, "upc_memput", NULL, 0)
SUITE_REGISTER_TRANSFER(get, SUITE_GETS, "upc_memget", NULL, 0)
