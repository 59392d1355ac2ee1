/* SPDX-License-Identifier: BSD-3-Clause */

/* Transfers of MPI. */

#include "mpi_blocks.h"

enum { kTag = 7 };

/* Arguments for MPI: elements and their number, or one derived type. */
typedef struct shape {
  MPI_Datatype type;
  int count;
} shape_t;

static shape_t shape_of(const suite_type_t* type) {
  shape_t shape = {mpi_type_of(type), 1};
  if (shape.type == *(MPI_Datatype*)type->native_element)
    shape.count = (int)(type->bytes / type->element_bytes);
  return shape;
}

static MPI_Aint place(const suite_window_t* window, int to, size_t offset) {
  return (MPI_Aint)(window->bases[to] + offset);
}

static int put(suite_window_t* window, const suite_type_t* type, int to, void* local, size_t remote,
               void* result) {
  shape_t s = shape_of(type);
  (void)result;
  return MPI_Put(local, s.count, s.type, to, place(window, to, remote), s.count, s.type,
                 mpi_window_of(window)->win);
}

static int get(suite_window_t* window, const suite_type_t* type, int to, void* local, size_t remote,
               void* result) {
  shape_t s = shape_of(type);
  (void)result;
  return MPI_Get(local, s.count, s.type, to, place(window, to, remote), s.count, s.type,
                 mpi_window_of(window)->win);
}

static int wait_all(suite_window_t* window) {
  mpi_window_t* state = mpi_window_of(window);
  int count = state->request_count;
  state->request_count = 0;
  return count > 0 ? MPI_Waitall(count, state->requests, MPI_STATUSES_IGNORE) : MPI_SUCCESS;
}

static int next_request(suite_window_t* window, MPI_Request** request) {
  mpi_window_t* state = mpi_window_of(window);
  if (state->request_count == (int)(sizeof state->requests / sizeof state->requests[0]))
    TRY(wait_all(window));
  *request = &state->requests[state->request_count++];
  return MPI_SUCCESS;
}

static int rput(suite_window_t* window, const suite_type_t* type, int to, void* local,
                size_t remote, void* result) {
  shape_t s = shape_of(type);
  MPI_Request* request;
  (void)result;
  TRY(next_request(window, &request));
  return MPI_Rput(local, s.count, s.type, to, place(window, to, remote), s.count, s.type,
                  mpi_window_of(window)->win, request);
}

static int rget(suite_window_t* window, const suite_type_t* type, int to, void* local,
                size_t remote, void* result) {
  shape_t s = shape_of(type);
  MPI_Request* request;
  (void)result;
  TRY(next_request(window, &request));
  return MPI_Rget(local, s.count, s.type, to, place(window, to, remote), s.count, s.type,
                  mpi_window_of(window)->win, request);
}

static int accumulate(suite_window_t* window, const suite_type_t* type, int to, void* local,
                      size_t remote, void* result) {
  shape_t s = shape_of(type);
  (void)result;
  return MPI_Accumulate(local, s.count, s.type, to, place(window, to, remote), s.count, s.type,
                        MPI_SUM, mpi_window_of(window)->win);
}

static int raccumulate(suite_window_t* window, const suite_type_t* type, int to, void* local,
                       size_t remote, void* result) {
  shape_t s = shape_of(type);
  MPI_Request* request;
  (void)result;
  TRY(next_request(window, &request));
  return MPI_Raccumulate(local, s.count, s.type, to, place(window, to, remote), s.count, s.type,
                         MPI_SUM, mpi_window_of(window)->win, request);
}

static int get_accumulate(suite_window_t* window, const suite_type_t* type, int to, void* local,
                          size_t remote, void* result) {
  shape_t s = shape_of(type);
  /* The fetched data is contiguous. */
  return MPI_Get_accumulate(local, s.count, s.type, result,
                            (int)(type->bytes / type->element_bytes),
                            *(MPI_Datatype*)type->native_element, to, place(window, to, remote),
                            s.count, s.type, MPI_SUM, mpi_window_of(window)->win);
}

static int fetch_op(suite_window_t* window, const suite_type_t* type, int to, void* local,
                    size_t remote, void* result) {
  return MPI_Fetch_and_op(local, result, *(MPI_Datatype*)type->native_element, to,
                          place(window, to, remote), MPI_SUM, mpi_window_of(window)->win);
}

static int compare_swap(suite_window_t* window, const suite_type_t* type, int to, void* local,
                        size_t remote, void* result) {
  /* `result` has the expected value, and gets the value before: MPI needs two buffers. */
  static int64_t expected;
  expected = *(int64_t*)result;
  return MPI_Compare_and_swap(local, &expected, result, *(MPI_Datatype*)type->native_element, to,
                              place(window, to, remote), mpi_window_of(window)->win);
}

static int sendrecv(suite_window_t* window, const suite_type_t* type, int to, int from,
                    const void* out, void* in) {
  mpi_comm_t* comm = mpi_comm_of(window->comm);
  shape_t s = shape_of(type);
  int there = comm->pair_is_inter ? 0 : to, here = comm->pair_is_inter ? 0 : from;
  if (from == SUITE_NOBODY) return MPI_Send(out, s.count, s.type, there, kTag, comm->pair);
  if (to == SUITE_NOBODY)
    return MPI_Recv(in, s.count, s.type, here, kTag, comm->pair, MPI_STATUS_IGNORE);
  return MPI_Sendrecv(out, s.count, s.type, there, kTag, in, s.count, s.type, here, kTag,
                      comm->pair, MPI_STATUS_IGNORE);
}

static int post(suite_window_t* window, const suite_type_t* type, int to, int from, const void* out,
                void* in) {
  mpi_comm_t* comm = mpi_comm_of(window->comm);
  shape_t s = shape_of(type);
  MPI_Request* request;
  int there = comm->pair_is_inter ? 0 : to, here = comm->pair_is_inter ? 0 : from;
  if (from != SUITE_NOBODY) {
    TRY(next_request(window, &request));
    TRY(MPI_Irecv(in, s.count, s.type, here, kTag, comm->pair, request));
  }
  if (to == SUITE_NOBODY) return MPI_SUCCESS;
  TRY(next_request(window, &request));
  return MPI_Isend(out, s.count, s.type, there, kTag, comm->pair, request);
}

/* Many messages in flight at the same time. */
static int stream(suite_window_t* window, const suite_type_t* type, int to, int from, int count,
                  size_t step, const void* out, void* in) {
  for (int i = 0; i < count; i++) {
    size_t place = (size_t)i * step;
    TRY(post(window, type, to, from, (const char*)out + place, (char*)in + place));
  }
  return wait_all(window);
}

static int acknowledge(suite_window_t* window, int to, int from) {
  mpi_comm_t* comm = mpi_comm_of(window->comm);
  if (from != SUITE_NOBODY) TRY(MPI_Send(NULL, 0, MPI_BYTE, from, kTag + 1, comm->all));
  return to != SUITE_NOBODY
             ? MPI_Recv(NULL, 0, MPI_BYTE, to, kTag + 1, comm->all, MPI_STATUS_IGNORE)
             : MPI_SUCCESS;
}

/* Plain loads from memory that MPI shares between processes. */
static void* load(suite_window_t* window, int to, size_t remote) {
  MPI_Aint bytes;
  int unit;
  void* base = NULL;
  if (MPI_Win_shared_query(mpi_window_of(window)->win, to, &bytes, &unit, &base) != MPI_SUCCESS)
    return NULL;
  return base != NULL ? (char*)base + place(window, to, remote) : NULL;
}

static suite_transfer_block_t load_block = {
    .head = {SUITE_TRANSFER, "load", "loads from memory of MPI_Win_shared_query", NULL},
    .effect = SUITE_GETS,
    .reach = load};
static suite_transfer_block_t sendrecv_block = {
    .head = {SUITE_TRANSFER, "sendrecv", "MPI_Send and MPI_Recv", NULL},
    .effect = SUITE_MESSAGES,
    .exchange = sendrecv,
    .stream = stream,
    .acknowledge = acknowledge};
static suite_transfer_block_t isendrecv_block = {
    .head = {SUITE_TRANSFER, "isendrecv", "MPI_Isend, MPI_Irecv and MPI_Waitall", NULL},
    .effect = SUITE_MESSAGES,
    .post = post,
    .wait = wait_all,
    .stream = stream,
    .acknowledge = acknowledge};
SUITE_REGISTER(load_block)
SUITE_REGISTER(sendrecv_block)
SUITE_REGISTER(isendrecv_block)

SUITE_REGISTER_TRANSFER(put, SUITE_PUTS, "MPI_Put", NULL, 0)
SUITE_REGISTER_TRANSFER(get, SUITE_GETS, "MPI_Get", NULL, 0)
SUITE_REGISTER_TRANSFER(rput, SUITE_PUTS, "MPI_Rput", wait_all, 0)
SUITE_REGISTER_TRANSFER(rget, SUITE_GETS, "MPI_Rget", wait_all, 0)
SUITE_REGISTER_TRANSFER(accumulate, SUITE_ADDS, "MPI_Accumulate, sum", NULL, 0)
SUITE_REGISTER_TRANSFER(raccumulate, SUITE_ADDS, "MPI_Raccumulate, sum", wait_all, 0)
SUITE_REGISTER_TRANSFER(get_accumulate, SUITE_FETCH_ADDS, "MPI_Get_accumulate, sum", NULL, 0)
SUITE_REGISTER_TRANSFER(fetch_op, SUITE_FETCH_ADDS, "MPI_Fetch_and_op, sum", NULL, 1)
SUITE_REGISTER_TRANSFER(compare_swap, SUITE_SWAPS, "MPI_Compare_and_swap", NULL, 1)
