// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The chain of hooks that the settings ask for.

#include <memory>
#include <vector>

#include "base/settings.h"
#include "engine/common/instrumentation.h"
#include "engine/common/timeline.h"
#include "engine/transfer/hooks/hook.h"

namespace mobius::engine {

class Completion;

class HookChain {
 public:
  explicit HookChain(Instrumentation& instrumentation) : instrumentation_(instrumentation) {}

  // Creates the hooks in front of `end` and fills in the instrumentation. MOB_ERR_SETTING: the
  // timeline cannot be written.
  mob_status_t open(const base::Settings& settings, mob_rank_t rank, Completion& completion,
                    Carrier& end);
  // Destroys the hooks, after their reports if `report`. Nothing may be carried afterwards.
  void close(bool report);

  bool empty() const { return hooks_.empty(); }
  bool reorders() const { return reorders_; }
  Carrier& first() const { return *hooks_.back(); }

 private:
  Instrumentation& instrumentation_;
  std::unique_ptr<Timeline> timeline_;
  bool reorders_ = false;
  std::vector<std::unique_ptr<Hook>> hooks_;  // the last one is the first of the chain
};

}  // namespace mobius::engine
