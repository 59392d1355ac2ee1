// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rma/local_execute.h"

#include "transport/shm/element.h"
#include "transport/shm/move.h"

namespace mobius::engine {

using transport::Shape;

void LocalExecutor::perform(const mob_transfer_t& transfer, const Shape& shape, ptrdiff_t delta) {
  if (transfer.kind == MOB_PUT || transfer.kind == MOB_GET) {
    transport::move(shape, delta, transfer.kind == MOB_PUT);
    return;
  }
  const mob_rank_t host_index = segment_.peers().host_index(transfer.rank);
  const bool fetches = transfer.kind == MOB_FETCH_ACCUMULATE;
  // A fetch of one integer is an atomic update of a word.
  if (fetches && shape.kind == MOB_CONTIGUOUS && transport::is_integer(transfer.type) &&
      shape.total_bytes == transport::element_bytes(transfer.type)) {
    segment_.accumulate_locks().admit_word(host_index, shape.lowest);
  }
  segment_.accumulate_locks().accumulate(
      host_index, shape, delta,
      {transfer.type, transfer.op, transfer.scale, fetches ? transfer.fetched : nullptr});
}

mob_status_t LocalExecutor::serve(const mob_transfer_t& transfer, const Shape& shape) {
  Notice notice;
  const mob_status_t status = signals_.resolve("a served transfer", transfer, &notice);
  if (status != MOB_OK) return status;
  if (notice.by_target) notice.signal = transfer.signal;
  perform(transfer, shape, 0);
  signals_.announce(transfer, notice);
  return MOB_OK;
}

}  // namespace mobius::engine
