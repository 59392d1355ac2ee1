// SPDX-License-Identifier: BSD-3-Clause
#include "engine/transfer/hooks/reorder.h"

#include <cstring>
#include <thread>

namespace mobius::engine {
namespace {

// Number of held operations that this thread is carrying out. Carrying one may wait, and waits make
// progress, which calls the hook again.
thread_local uint32_t carrying_here = 0;

template <typename T>
void own(std::vector<T>* copy, const T* items, size_t count) {
  if (count > 0) copy->assign(items, items + count);
}

}  // namespace

HeldOperation::HeldOperation(const Operation& operation)
    : transfer_(*operation.transfer), operation_(operation) {
  transport::Shape& shape = operation_.shape;
  own(&remotes_, shape.remotes, shape.piece_count);
  own(&locals_, shape.locals, shape.piece_count);
  own(&remote_spans_, shape.remote_spans, shape.remote_span_count);
  own(&local_spans_, shape.local_spans, shape.local_span_count);
  shape.remotes = transfer_.remotes = remotes_.data();
  shape.locals = transfer_.locals = locals_.data();
  shape.remote_spans = transfer_.remote_spans = remote_spans_.data();
  shape.local_spans = transfer_.local_spans = local_spans_.data();
  // Strides are in the shape.
  transfer_.counts = nullptr;
  transfer_.remote_strides = nullptr;
  transfer_.local_strides = nullptr;
  const bool combines = transfer_.kind == MOB_ACCUMULATE || transfer_.kind == MOB_FETCH_ACCUMULATE;
  if (combines && transfer_.scale != nullptr) {
    std::memcpy(scale_, transfer_.scale, mob_type_bytes(transfer_.type));
    transfer_.scale = scale_;
  }
  operation_.transfer = &transfer_;
  operation_.mode = Mode::kBlocking;  // for the thread that carries it out
  operation_.handle = nullptr;
}

mob_status_t ReorderHook::carry(const Operation& operation) {
  if (operation.mode == Mode::kBlocking) return next_.carry(operation);
  auto held = std::make_unique<HeldOperation>(operation);
  // The thread that carries it out counts.
  mob_transfer_t silent = *operation.transfer;
  silent.origin_counter = nullptr;
  silent.completion_counter = nullptr;
  silent.origin_word = nullptr;
  silent.completion_word = nullptr;
  held->pending =
      completion_.start(silent, operation.mode == Mode::kHandle ? operation.handle : nullptr);
  if (held->pending == nullptr) return MOB_ERR_MEMORY;
  bool full = false;
  {
    const std::lock_guard lock(mutex_);
    plan_.add(std::move(held));
    full = plan_.size() > kMostHeld;
  }
  if (full) carry_one();
  return MOB_OK;
}

mob_status_t ReorderHook::update(const WordUpdate& update) {
  if (const mob_status_t status = order()) return status;
  return next_.update(update);
}

mob_status_t ReorderHook::order() {
  while (carry_one()) {
  }
  // Other threads may be carrying out operations of this thread. They do so without its help.
  // Acquire pairs with the release in carry_one().
  while (carrying_.load(std::memory_order_acquire) > carrying_here) std::this_thread::yield();
  return next_.order();
}

bool ReorderHook::progress() {
  if (carrying_here > 0) return next_.progress();
  const bool carried = carry_one();
  return next_.progress() || carried;
}

bool ReorderHook::carry_one() {
  std::unique_ptr<HeldOperation> held;
  {
    const std::lock_guard lock(mutex_);
    if (plan_.empty()) return false;
    held = plan_.take();
    carrying_.fetch_add(1, std::memory_order_relaxed);
  }
  ++carrying_here;
  carry_out(*held);
  --carrying_here;
  carrying_.fetch_sub(1, std::memory_order_release);
  return true;
}

void ReorderHook::carry_out(const HeldOperation& held) {
  // Operations that are started meanwhile belong to the context of the held one.
  const ActingFor scope(held.pending->context);
  const mob_status_t status = next_.carry(held.operation());
  completion_.complete(*held.pending, status);
}

}  // namespace mobius::engine
