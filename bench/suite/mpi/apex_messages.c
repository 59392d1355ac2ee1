/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * APEX-Map with messages, as in paper 4, Table 2: each rank requests blocks, serves the requests of
 * others, and computes replies in the order of their arrival. When it has all its blocks, it
 * continues serving until all ranks have theirs.
 */

#include <stdlib.h>
#include <string.h>

#include "../apex.h"
#include "mpi_blocks.h"

enum { kRequestTag = 101, kDoneTag = 102, kReplyTag = 1000, kSlots = 16, kServes = 64 };

typedef struct exchange {
  apex_t* apex;
  MPI_Comm comm;
  const double* own;
  double* replies[kSlots]; /* buffers for blocks */
  MPI_Request arriving[kSlots];
  int free_slots[kSlots], free_count;
  uint64_t asked[kSlots][2]; /* request: word, slot */
  MPI_Request asking[kSlots];
  MPI_Request serving[kServes];
  int serving_count;
  int done; /* number of ranks that have all their blocks */
  double sum;
} exchange_t;

static int serve(exchange_t* e) {
  for (;;) {
    int found = 0;
    uint64_t request[2];
    MPI_Status status;
    TRY(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, e->comm, &found, &status));
    if (!found || status.MPI_TAG >= kReplyTag) return MPI_SUCCESS;
    if (status.MPI_TAG == kDoneTag) {
      TRY(MPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, kDoneTag, e->comm, MPI_STATUS_IGNORE));
      e->done++;
      continue;
    }
    TRY(MPI_Recv(request, 2, MPI_UINT64_T, status.MPI_SOURCE, kRequestTag, e->comm,
                 MPI_STATUS_IGNORE));
    if (e->serving_count == kServes) {
      int index;
      TRY(MPI_Waitany(kServes, e->serving, &index, MPI_STATUS_IGNORE));
      e->serving[index] = e->serving[--e->serving_count];
    }
    TRY(MPI_Isend(e->own + request[0], (int)e->apex->block, MPI_DOUBLE, status.MPI_SOURCE,
                  kReplyTag + (int)request[1], e->comm, &e->serving[e->serving_count]));
    e->serving_count++;
  }
}

static int take_replies(exchange_t* e) {
  int count = 0, indices[kSlots];
  TRY(MPI_Testsome(kSlots, e->arriving, &count, indices, MPI_STATUSES_IGNORE));
  for (int i = 0; count != MPI_UNDEFINED && i < count; i++) {
    e->sum += apex_compute(e->replies[indices[i]], e->apex->block);
    e->free_slots[e->free_count++] = indices[i];
  }
  return MPI_SUCCESS;
}

static int ask(exchange_t* e, int owner, size_t word) {
  while (e->free_count == 0) {
    TRY(serve(e));
    TRY(take_replies(e));
  }
  int slot = e->free_slots[--e->free_count];
  TRY(MPI_Wait(&e->asking[slot], MPI_STATUS_IGNORE));
  e->asked[slot][0] = word;
  e->asked[slot][1] = (uint64_t)slot;
  TRY(MPI_Irecv(e->replies[slot], (int)e->apex->block, MPI_DOUBLE, owner, kReplyTag + slot, e->comm,
                &e->arriving[slot]));
  return MPI_Isend(e->asked[slot], 2, MPI_UINT64_T, owner, kRequestTag, e->comm, &e->asking[slot]);
}

static int work(exchange_t* e, uint64_t passes) {
  apex_t* apex = e->apex;
  int rank = apex->path.comm.rank;
  for (uint64_t pass = 0; pass < passes; pass++, apex->next++) {
    const uint64_t* indices = apex->indices[apex->next % APEX_ARRAYS];
    for (size_t i = 0; i < apex->accesses; i++) {
      int owner = (int)(indices[i] / apex->words);
      size_t word = indices[i] % apex->words;
      if (owner == rank)
        e->sum += apex_compute(e->own + word, apex->block);
      else
        TRY(ask(e, owner, word));
      TRY(serve(e));
      TRY(take_replies(e));
    }
    apex->expected += apex->sums[apex->next % APEX_ARRAYS];
  }
  while (e->free_count < kSlots) {
    TRY(serve(e));
    TRY(take_replies(e));
  }
  return MPI_SUCCESS;
}

/* Waits for all ranks, which may still send requests. */
static int finish(exchange_t* e) {
  const suite_comm_t* comm = &e->apex->path.comm;
  for (int rank = 0; rank < comm->size; rank++)
    if (rank != comm->rank) TRY(MPI_Send(NULL, 0, MPI_BYTE, rank, kDoneTag, e->comm));
  while (e->done < comm->size - 1) TRY(serve(e));
  TRY(MPI_Waitall(e->serving_count, e->serving, MPI_STATUSES_IGNORE));
  return MPI_Waitall(kSlots, e->asking, MPI_STATUSES_IGNORE);
}

static int message_passes(apex_t* apex, uint64_t passes) {
  static exchange_t e;
  memset(&e, 0, sizeof e);
  e.apex = apex;
  e.comm = mpi_comm_of(&apex->path.comm)->all;
  e.own = (const double*)(const void*)(apex->path.window.base + apex->path.area[0]);
  int stripes = (int)(SUITE_GUARD_BYTES / sizeof(double));
  double* room = NULL;
  size_t each = (apex->block + (size_t)stripes) / (size_t)stripes * (size_t)stripes;
  if (kSlots * each * sizeof(double) <= apex->words * sizeof(double)) room = apex->buffer;
  if (room == NULL) return SUITE_MPI_NO_MEMORY;
  for (int i = 0; i < kSlots; i++) {
    e.replies[i] = room + (size_t)i * each;
    e.arriving[i] = e.asking[i] = MPI_REQUEST_NULL;
    e.free_slots[i] = i;
  }
  e.free_count = kSlots;
  int64_t begin = suite_now_ns();
  TRY(work(&e, passes));
  int64_t worked = suite_now_ns();
  TRY(finish(&e));
  /* No next request may arrive before this pass ends. */
  TRY(MPI_Barrier(e.comm));
  apex->sum += e.sum;
  apex->working_ns += worked - begin;
  apex->waiting_ns += suite_now_ns() - worked;
  return MPI_SUCCESS;
}

__attribute__((constructor)) static void offer(void) { apex_message_passes = message_passes; }
