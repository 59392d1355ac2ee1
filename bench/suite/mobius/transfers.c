/* SPDX-License-Identifier: BSD-3-Clause */

/* Transfers of Möbius. The simplest description of a datatype is used: contiguous, strided, or
 * spans. */

#include <stdlib.h>

#include "mobius_blocks.h"

/* The most spans of one call; longer lists take several calls. */
enum { kSpans = 1024 };

static mob_type_t element_of(const suite_type_t* type) {
  if (type->is_double) return MOB_DOUBLE;
  return type->element_bytes == 8 ? MOB_INT64 : type->element_bytes == 4 ? MOB_INT32 : MOB_UINT8;
}

/* Transfers the runs from `first` on, in lists of spans. */
static int listed(const mob_transfer_t* alike, const suite_type_t* type, char* local,
                  char* remote) {
  mob_span_t near[kSpans], far[kSpans];
  mob_transfer_t transfer = *alike;
  transfer.shape = MOB_SPANS;
  transfer.local_spans = near;
  transfer.remote_spans = far;
  for (size_t first = 0; first < type->run_count; first += kSpans) {
    size_t count = type->run_count - first < kSpans ? type->run_count - first : kSpans;
    for (size_t i = 0; i < count; i++) {
      const suite_run_of_bytes_t* run = &type->runs[first + i];
      near[i] = (mob_span_t){local + run->offset, run->bytes};
      far[i] = (mob_span_t){remote + run->offset, run->bytes};
    }
    transfer.local_span_count = transfer.remote_span_count = count;
    TRY(mob_transfer_nbi(&transfer));
    if (transfer.fetched != NULL)
      for (size_t i = 0; i < count; i++)
        transfer.fetched = (char*)transfer.fetched + type->runs[first + i].bytes;
  }
  return MOB_OK;
}

static int shaped(suite_window_t* window, const suite_type_t* type, int to, void* local,
                  size_t remote, mob_kind_t kind, void* fetched) {
  mob_transfer_t transfer = {0};
  ptrdiff_t stride = (ptrdiff_t)type->stride_bytes;
  transfer.kind = kind;
  transfer.rank = mobius_rank_of(window, to);
  transfer.type = element_of(type);
  transfer.op = MOB_SUM;
  transfer.fetched = fetched;
  if (!type->is_regular) return listed(&transfer, type, local, mobius_place(window, to, remote));
  transfer.shape = MOB_STRIDED;
  transfer.remote = mobius_place(window, to, remote);
  transfer.local = local;
  transfer.bytes = type->block_bytes;
  transfer.dimensions = 1;
  transfer.counts = &type->run_count;
  transfer.remote_strides = transfer.local_strides = &stride;
  return mob_transfer_nbi(&transfer);
}

static int put(suite_window_t* window, const suite_type_t* type, int to, void* local, size_t remote,
               void* result) {
  (void)result;
  if (type->run_count != 1) return shaped(window, type, to, local, remote, MOB_PUT, NULL);
  return mob_put_nbi(mobius_rank_of(window, to), mobius_place(window, to, remote), local,
                     type->bytes);
}

static int get(suite_window_t* window, const suite_type_t* type, int to, void* local, size_t remote,
               void* result) {
  (void)result;
  if (type->run_count != 1) return shaped(window, type, to, local, remote, MOB_GET, NULL);
  return mob_get_nbi(mobius_rank_of(window, to), mobius_place(window, to, remote), local,
                     type->bytes);
}

/* Adjacent operations take less than 10 ns each, so these loops look up once what is the same for
 * all of them. */
static int put_all(suite_window_t* window, const suite_type_t* type, int to, unsigned char* local,
                   size_t remote, const suite_place_t* places, size_t count, void* result) {
  const mob_rank_t rank = mobius_rank_of(window, to);
  unsigned char* const there = mobius_place(window, to, remote);
  const size_t bytes = type->bytes;
  int error = MOB_OK;
  (void)result;
  for (size_t i = 0; i < count && error == MOB_OK; i++)
    error = mob_put_nbi(rank, there + places[i].far, local + places[i].near, bytes);
  return error;
}

static int get_all(suite_window_t* window, const suite_type_t* type, int to, unsigned char* local,
                   size_t remote, const suite_place_t* places, size_t count, void* result) {
  const mob_rank_t rank = mobius_rank_of(window, to);
  const unsigned char* const there = mobius_place(window, to, remote);
  const size_t bytes = type->bytes;
  int error = MOB_OK;
  (void)result;
  for (size_t i = 0; i < count && error == MOB_OK; i++)
    error = mob_get_nbi(rank, there + places[i].far, local + places[i].near, bytes);
  return error;
}

static int accumulate(suite_window_t* window, const suite_type_t* type, int to, void* local,
                      size_t remote, void* result) {
  (void)result;
  if (type->run_count != 1) return shaped(window, type, to, local, remote, MOB_ACCUMULATE, NULL);
  return mob_accumulate(mobius_rank_of(window, to), mobius_place(window, to, remote), local,
                        type->bytes / type->element_bytes, element_of(type), MOB_SUM);
}

static int get_accumulate(suite_window_t* window, const suite_type_t* type, int to, void* local,
                          size_t remote, void* result) {
  if (type->run_count != 1)
    return shaped(window, type, to, local, remote, MOB_FETCH_ACCUMULATE, result);
  return mob_fetch_accumulate(mobius_rank_of(window, to), mobius_place(window, to, remote), local,
                              result, type->bytes / type->element_bytes, element_of(type), MOB_SUM);
}

static int wait_all(suite_window_t* window) {
  mobius_window_t* state = mobius_window_of(window);
  size_t count = state->handle_count;
  state->handle_count = 0;
  return mob_wait_all(state->handles, count);
}

static int next_handle(suite_window_t* window, mob_handle_t** handle) {
  mobius_window_t* state = mobius_window_of(window);
  if (state->handle_count == sizeof state->handles / sizeof state->handles[0])
    TRY(wait_all(window));
  *handle = &state->handles[state->handle_count++];
  return MOB_OK;
}

static int rput(suite_window_t* window, const suite_type_t* type, int to, void* local,
                size_t remote, void* result) {
  mob_handle_t* handle;
  if (type->run_count != 1) return put(window, type, to, local, remote, result);
  TRY(next_handle(window, &handle));
  return mob_put_nb(mobius_rank_of(window, to), mobius_place(window, to, remote), local,
                    type->bytes, handle);
}

static int rget(suite_window_t* window, const suite_type_t* type, int to, void* local,
                size_t remote, void* result) {
  mob_handle_t* handle;
  if (type->run_count != 1) return get(window, type, to, local, remote, result);
  TRY(next_handle(window, &handle));
  return mob_get_nb(mobius_rank_of(window, to), mobius_place(window, to, remote), local,
                    type->bytes, handle);
}

static int fetch_op(suite_window_t* window, const suite_type_t* type, int to, void* local,
                    size_t remote, void* result) {
  void* place = mobius_place(window, to, remote);
  if (type->bytes == 8)
    return mob_fetch_add8(mobius_rank_of(window, to), place, *(uint64_t*)local, result);
  return mob_fetch_add4(mobius_rank_of(window, to), place, *(uint32_t*)local, result);
}

static int compare_swap(suite_window_t* window, const suite_type_t* type, int to, void* local,
                        size_t remote, void* result) {
  (void)type;
  return mob_compare_swap8(mobius_rank_of(window, to), mobius_place(window, to, remote),
                           *(uint64_t*)result, *(uint64_t*)local, result);
}

static void* load(suite_window_t* window, int to, size_t remote) {
  void* pointer = NULL;
  mob_ptr(mobius_rank_of(window, to), mobius_place(window, to, remote), &pointer);
  return pointer;
}

static suite_transfer_block_t load_block = {
    .head = {SUITE_TRANSFER, "load", "loads through mob_ptr", NULL},
    .effect = SUITE_GETS,
    .reach = load};
SUITE_REGISTER(load_block)

SUITE_REGISTER_TRANSFERS(put, SUITE_PUTS, "mob_put_nbi", NULL, 0)
SUITE_REGISTER_TRANSFERS(get, SUITE_GETS, "mob_get_nbi", NULL, 0)
SUITE_REGISTER_TRANSFER(rput, SUITE_PUTS, "mob_put_nb", wait_all, 0)
SUITE_REGISTER_TRANSFER(rget, SUITE_GETS, "mob_get_nb", wait_all, 0)
SUITE_REGISTER_TRANSFER(accumulate, SUITE_ADDS, "mob_accumulate, sum", NULL, 0)
SUITE_REGISTER_TRANSFER(get_accumulate, SUITE_FETCH_ADDS, "mob_fetch_accumulate, sum", NULL, 0)
SUITE_REGISTER_TRANSFER(fetch_op, SUITE_FETCH_ADDS, "mob_fetch_add8", NULL, 1)
SUITE_REGISTER_TRANSFER(compare_swap, SUITE_SWAPS, "mob_compare_swap8", NULL, 1)
