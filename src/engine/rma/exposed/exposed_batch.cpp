// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rma/exposed/exposed_batch.h"

#include "engine/rma/exposed/exposed_path.h"

namespace mobius::engine {

bool ExposedBatch::lets_go_alone() {
  if (any()) return false;  // the recorded puts go first
  const uint32_t alone = alone_.load(std::memory_order_relaxed);
  if (alone == 0) return false;
  // Two threads may count as one; that is harmless.
  alone_.store(alone - 1, std::memory_order_relaxed);
  return true;
}

bool ExposedBatch::takes(const Operation& operation) {
  const mob_transfer_t& transfer = *operation.transfer;
  const Notice& notice = operation.notice;
  return operation.mode == Mode::kImplicit && transfer.kind == MOB_PUT &&
         operation.shape.kind == MOB_CONTIGUOUS && operation.shape.total_bytes != 0 &&
         operation.shape.total_bytes <= kMostBytes && notice.origin == nullptr &&
         notice.target == nullptr && notice.completion == nullptr && notice.signal == nullptr &&
         transfer.origin_word == nullptr && transfer.completion_word == nullptr && !lets_go_alone();
}

mob_status_t ExposedBatch::record(const Operation& operation) {
  const std::lock_guard lock(mutex_);
  const mob_transfer_t& transfer = *operation.transfer;
  if (count_ == kMost ||
      (count_ != 0 && (rank_ != transfer.rank || !completion_.is_current(*pending_->context)))) {
    issue_locked();
  }
  if (count_ == 0) {
    pending_ = completion_.start(transfer, nullptr);
    if (pending_ == nullptr) return MOB_ERR_MEMORY;
    rank_ = transfer.rank;
    any_.store(true, std::memory_order_relaxed);
  }
  remote_[count_] = {operation.shape.remote, operation.shape.total_bytes};
  local_[count_] = {operation.shape.local, operation.shape.total_bytes};
  ++count_;
  return MOB_OK;
}

void ExposedBatch::issue_recorded() {
  const std::lock_guard lock(mutex_);
  issue_locked();
}

void ExposedBatch::issue_locked() {
  if (count_ == 0) return;
  const size_t count = count_;
  Pending& pending = *pending_;
  count_ = 0;
  any_.store(false, std::memory_order_relaxed);
  alone_.store(count == 1 ? kAlone : 0, std::memory_order_relaxed);
  mob_status_t status = MOB_OK;
  {
    // An operation that the target has to carry out instead belongs to the recording context.
    const ActingFor scope(pending.context);
    status = path_.put(rank_, remote_, local_, count);
  }
  completion_.complete(pending, status);
}

}  // namespace mobius::engine
