// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Holds operations that do not block, and carries them out in random order when a thread waits.

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/progress/completion.h"
#include "engine/transfer/hooks/hook.h"
#include "engine/transfer/hooks/reorder_plan.h"

namespace mobius::engine {

// A transfer that outlives its call: a copy of everything it points to except the data.
class HeldOperation {
 public:
  explicit HeldOperation(const Operation& operation);
  HeldOperation(const HeldOperation&) = delete;
  HeldOperation& operator=(const HeldOperation&) = delete;

  const Operation& operation() const { return operation_; }

  // The caller waits for this.
  Pending* pending = nullptr;

 private:
  mob_transfer_t transfer_;
  Operation operation_;
  std::vector<void*> remotes_;
  std::vector<void*> locals_;
  std::vector<mob_span_t> remote_spans_;
  std::vector<mob_span_t> local_spans_;
  alignas(16) unsigned char scale_[16];
};

// Blocking transfers overtake held operations; word updates and fences come after them. Every wait
// of the process carries some out.
class ReorderHook final : public Hook {
 public:
  ReorderHook(Carrier& next, Completion& completion, uint64_t seed, mob_rank_t rank)
      : Hook(next), completion_(completion), plan_(seed, rank) {}

  mob_status_t carry(const Operation& operation) override;
  mob_status_t update(const WordUpdate& update) override;
  mob_status_t order() override;
  bool progress() override;

 private:
  static constexpr size_t kMostHeld = 256;  // so that memory stays bounded

  bool carry_one();
  void carry_out(const HeldOperation& held);

  Completion& completion_;
  std::mutex mutex_;  // guards plan_
  ReorderPlan<std::unique_ptr<HeldOperation>> plan_;
  std::atomic<uint32_t> carrying_ = 0;  // taken from the plan and not yet carried out
};

}  // namespace mobius::engine
