/* SPDX-License-Identifier: BSD-3-Clause */

/* Transfers of ARMCI: contiguous, strided or listed segments, each with its own call.
 */

#include <stdlib.h>

#include "armci_blocks.h"

typedef enum direction { PUTS, GETS, ADDS } direction_t;

/* The type of an accumulate, and its factor of 1. */
static int sum_of(const suite_type_t* type, void** factor) {
  static double one_double = 1;
  static long one_long = 1;
  static int one_int = 1;
  *factor = type->is_double            ? (void*)&one_double
            : type->element_bytes == 8 ? (void*)&one_long
                                       : (void*)&one_int;
  return type->is_double ? ARMCI_ACC_DBL : type->element_bytes == 8 ? ARMCI_ACC_LNG : ARMCI_ACC_INT;
}

static int in_a_row(const suite_type_t* type, direction_t direction, int to, void* local,
                    void* remote) {
  int bytes = (int)type->bytes;
  void* factor;
  int sum = sum_of(type, &factor);
  if (direction == PUTS) return ARMCI_Put(local, remote, bytes, to);
  if (direction == GETS) return ARMCI_Get(remote, local, bytes, to);
  return ARMCI_Acc(sum, factor, local, remote, bytes, to);
}

static int strided(const suite_type_t* type, direction_t direction, int to, void* local,
                   void* remote) {
  int stride = (int)type->stride_bytes;
  int counts[2] = {(int)type->block_bytes, (int)type->run_count};
  void* factor;
  int sum = sum_of(type, &factor);
  if (direction == PUTS) return ARMCI_PutS(local, &stride, remote, &stride, counts, 1, to);
  if (direction == GETS) return ARMCI_GetS(remote, &stride, local, &stride, counts, 1, to);
  return ARMCI_AccS(sum, factor, local, &stride, remote, &stride, counts, 1, to);
}

static int listed(const suite_type_t* type, direction_t direction, int to, char* local,
                  char* remote) {
  size_t count = type->run_count;
  void** lists = malloc(2 * count * sizeof *lists);
  void* factor;
  int sum = sum_of(type, &factor), error;
  armci_giov_t segments;
  if (lists == NULL) return SUITE_ARMCI_NO_MEMORY;
  for (size_t i = 0; i < count; i++) {
    lists[i] = local + type->runs[i].offset;
    lists[count + i] = remote + type->runs[i].offset;
  }
  segments.src_ptr_array = direction == GETS ? lists + count : lists;
  segments.dst_ptr_array = direction == GETS ? lists : lists + count;
  segments.ptr_array_len = (int)count;
  segments.bytes = (int)type->runs[0].bytes; /* all types have runs of one length */
  if (direction == PUTS)
    error = ARMCI_PutV(&segments, 1, to);
  else if (direction == GETS)
    error = ARMCI_GetV(&segments, 1, to);
  else
    error = ARMCI_AccV(sum, factor, &segments, 1, to);
  free(lists);
  return error;
}

static int move(suite_window_t* window, const suite_type_t* type, int to, void* local,
                size_t remote, direction_t direction) {
  void* far = armci_place(window, to, remote);
  if (direction == ADDS && type->element_bytes < 4) return SUITE_ARMCI_NO_SUM;
  if (direction != GETS) armci_window_of(window)->pending = 1;
  if (type->run_count == 1) return in_a_row(type, direction, to, local, far);
  if (type->is_regular) return strided(type, direction, to, local, far);
  return listed(type, direction, to, local, far);
}

#define MOVE(identifier, direction)                                                            \
  static int identifier(suite_window_t* window, const suite_type_t* type, int to, void* local, \
                        size_t remote, void* result) {                                         \
    (void)result;                                                                              \
    return move(window, type, to, local, remote, direction);                                   \
  }
MOVE(put, PUTS)
MOVE(get, GETS)
MOVE(accumulate, ADDS)

static int fetch_op(suite_window_t* window, const suite_type_t* type, int to, void* local,
                    size_t remote, void* result) {
  void* far = armci_place(window, to, remote);
  if (type->bytes != sizeof(int)) return SUITE_ARMCI_NO_LONG; /* it adds an int */
  return ARMCI_Rmw(ARMCI_FETCH_AND_ADD, result, far, *(int*)local, to);
}

SUITE_REGISTER_TRANSFER(put, SUITE_PUTS, "ARMCI_Put, PutS, PutV", NULL, 0)
SUITE_REGISTER_TRANSFER(get, SUITE_GETS, "ARMCI_Get, GetS, GetV", NULL, 0)
SUITE_REGISTER_TRANSFER(accumulate, SUITE_ADDS, "ARMCI_Acc, AccS, AccV", NULL, 0)
SUITE_REGISTER_TRANSFER(fetch_op, SUITE_FETCH_ADDS, "ARMCI_Rmw, fetch and add", NULL, 1)
