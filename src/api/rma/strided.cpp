// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/strided.h>

#include "api/rma/transfer.h"

using mobius::api::run_transfer;

namespace {

mob_transfer_t box(mob_kind_t kind, mob_rank_t rank, const void* remote,
                   const ptrdiff_t* remote_strides, const void* local,
                   const ptrdiff_t* local_strides, size_t run_bytes, const size_t* counts,
                   int dimensions) {
  mob_transfer_t transfer{};
  transfer.kind = kind;
  transfer.shape = MOB_STRIDED;
  transfer.rank = rank;
  transfer.remote = const_cast<void*>(remote);
  transfer.local = const_cast<void*>(local);
  transfer.bytes = run_bytes;
  transfer.dimensions = dimensions;
  transfer.counts = counts;
  transfer.remote_strides = remote_strides;
  transfer.local_strides = local_strides;
  return transfer;
}

mob_transfer_t pieces(mob_kind_t kind, mob_rank_t rank, void* const* remotes, void* const* locals,
                      size_t count, size_t bytes) {
  mob_transfer_t transfer{};
  transfer.kind = kind;
  transfer.shape = MOB_PIECES;
  transfer.rank = rank;
  transfer.bytes = bytes;
  transfer.count = count;
  transfer.remotes = remotes;
  transfer.locals = locals;
  return transfer;
}

void combine(mob_transfer_t* transfer, mob_type_t type, mob_op_t op, const void* scale) {
  transfer->type = type;
  transfer->op = op;
  transfer->scale = scale;
}

}  // namespace

mob_status_t mob_put_strided(mob_rank_t rank, void* remote, const ptrdiff_t* remote_strides,
                             const void* local, const ptrdiff_t* local_strides, size_t run_bytes,
                             const size_t* counts, int dimensions) {
  return run_transfer("mob_put_strided", box(MOB_PUT, rank, remote, remote_strides, local,
                                             local_strides, run_bytes, counts, dimensions));
}

mob_status_t mob_get_strided(mob_rank_t rank, const void* remote, const ptrdiff_t* remote_strides,
                             void* local, const ptrdiff_t* local_strides, size_t run_bytes,
                             const size_t* counts, int dimensions) {
  return run_transfer("mob_get_strided", box(MOB_GET, rank, remote, remote_strides, local,
                                             local_strides, run_bytes, counts, dimensions));
}

mob_status_t mob_accumulate_strided(mob_rank_t rank, void* remote, const ptrdiff_t* remote_strides,
                                    const void* local, const ptrdiff_t* local_strides,
                                    size_t run_bytes, const size_t* counts, int dimensions,
                                    mob_type_t type, mob_op_t op, const void* scale) {
  mob_transfer_t transfer = box(MOB_ACCUMULATE, rank, remote, remote_strides, local, local_strides,
                                run_bytes, counts, dimensions);
  combine(&transfer, type, op, scale);
  return run_transfer("mob_accumulate_strided", transfer);
}

mob_status_t mob_put_pieces(mob_rank_t rank, void* const* remotes, void* const* locals,
                            size_t count, size_t bytes) {
  return run_transfer("mob_put_pieces", pieces(MOB_PUT, rank, remotes, locals, count, bytes));
}

mob_status_t mob_get_pieces(mob_rank_t rank, void* const* remotes, void* const* locals,
                            size_t count, size_t bytes) {
  return run_transfer("mob_get_pieces", pieces(MOB_GET, rank, remotes, locals, count, bytes));
}

mob_status_t mob_accumulate_pieces(mob_rank_t rank, void* const* remotes, void* const* locals,
                                   size_t count, size_t bytes, mob_type_t type, mob_op_t op,
                                   const void* scale) {
  mob_transfer_t transfer = pieces(MOB_ACCUMULATE, rank, remotes, locals, count, bytes);
  combine(&transfer, type, op, scale);
  return run_transfer("mob_accumulate_pieces", transfer);
}
