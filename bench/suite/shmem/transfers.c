/* SPDX-License-Identifier: BSD-3-Clause */

/* Transfers of OpenSHMEM. Strided 8-byte words have their own calls; other datatypes are
 * transferred run by run. */

#include <string.h>

#include "shmem_blocks.h"

static int is_words(const suite_type_t* type) {
  int regular = strcmp(type->name, "vector") == 0 || strcmp(type->name, "subarray") == 0;
  return regular && type->block_bytes == 8 && type->stride_bytes % 8 == 0 &&
         type->runs[0].offset == 0;
}

typedef void move_t(void* to, const void* from, size_t bytes, int rank);

static int move(suite_window_t* window, const suite_type_t* type, int to, void* local,
                size_t remote, move_t* one, int puts) {
  char *near = local, *far = shmem_place(window, to, remote);
  ptrdiff_t stride = (ptrdiff_t)(type->stride_bytes / 8);
  if (type->run_count > 1 && is_words(type)) {
    if (puts)
      shmem_iput64(far, near, stride, stride, type->run_count, to);
    else
      shmem_iget64(near, far, stride, stride, type->run_count, to);
    return SUITE_SHMEM_OK;
  }
  for (size_t i = 0; i < type->run_count; i++) {
    size_t offset = type->runs[i].offset;
    if (puts)
      one(far + offset, near + offset, type->runs[i].bytes, to);
    else
      one(near + offset, far + offset, type->runs[i].bytes, to);
  }
  return SUITE_SHMEM_OK;
}

#define MOVE(identifier, call, puts)                                                           \
  static int identifier(suite_window_t* window, const suite_type_t* type, int to, void* local, \
                        size_t remote, void* result) {                                         \
    (void)result;                                                                              \
    return move(window, type, to, local, remote, call, puts);                                  \
  }
MOVE(put, shmem_putmem, 1)
MOVE(get, shmem_getmem, 0)
MOVE(rput, shmem_putmem_nbi, 1)
MOVE(rget, shmem_getmem_nbi, 0)

static int wait_all(suite_window_t* window) {
  (void)window;
  shmem_quiet();
  return SUITE_SHMEM_OK;
}

static int accumulate(suite_window_t* window, const suite_type_t* type, int to, void* local,
                      size_t remote, void* result) {
  void* place = shmem_place(window, to, remote);
  (void)result;
  if (type->bytes == 8)
    shmem_long_atomic_add(place, *(long*)local, to);
  else
    shmem_int_atomic_add(place, *(int*)local, to);
  return SUITE_SHMEM_OK;
}

static int fetch_op(suite_window_t* window, const suite_type_t* type, int to, void* local,
                    size_t remote, void* result) {
  void* place = shmem_place(window, to, remote);
  if (type->bytes == 8)
    *(long*)result = shmem_long_atomic_fetch_add(place, *(long*)local, to);
  else
    *(int*)result = shmem_int_atomic_fetch_add(place, *(int*)local, to);
  return SUITE_SHMEM_OK;
}

static int compare_swap(suite_window_t* window, const suite_type_t* type, int to, void* local,
                        size_t remote, void* result) {
  (void)type;
  *(long*)result = shmem_long_atomic_compare_swap(shmem_place(window, to, remote), *(long*)result,
                                                  *(long*)local, to);
  return SUITE_SHMEM_OK;
}

static void* load(suite_window_t* window, int to, size_t remote) {
  return shmem_ptr(shmem_place(window, to, remote), to);
}

static suite_transfer_block_t load_block = {
    .head = {SUITE_TRANSFER, "load", "loads through shmem_ptr", NULL},
    .effect = SUITE_GETS,
    .reach = load};
SUITE_REGISTER(load_block)

SUITE_REGISTER_TRANSFER(put, SUITE_PUTS, "shmem_putmem", NULL, 0)
SUITE_REGISTER_TRANSFER(get, SUITE_GETS, "shmem_getmem", NULL, 0)
SUITE_REGISTER_TRANSFER(rput, SUITE_PUTS, "shmem_putmem_nbi", wait_all, 0)
SUITE_REGISTER_TRANSFER(rget, SUITE_GETS, "shmem_getmem_nbi", wait_all, 0)
SUITE_REGISTER_TRANSFER(accumulate, SUITE_ADDS, "shmem_long_atomic_add", NULL, 1)
SUITE_REGISTER_TRANSFER(fetch_op, SUITE_FETCH_ADDS, "shmem_long_atomic_fetch_add", NULL, 1)
SUITE_REGISTER_TRANSFER(compare_swap, SUITE_SWAPS, "shmem_long_atomic_compare_swap", NULL, 1)
