// SPDX-License-Identifier: BSD-3-Clause
#include "engine/transfer/hooks/chain.h"

#include <algorithm>

#include "base/hook_list.h"
#include "base/status.h"
#include "engine/progress/completion.h"
#include "engine/transfer/hooks/disturb.h"
#include "engine/transfer/hooks/reorder.h"
#include "engine/transfer/hooks/watch.h"

namespace mobius::engine {
namespace {

using base::HookKind;
using base::HookSpec;
using base::SettingId;

// MOBIUS_STATS and MOBIUS_TRACE put hooks in front of those of MOBIUS_HOOKS.
std::vector<HookSpec> wanted_hooks(const base::Settings& settings) {
  std::vector<HookSpec> specs;
  std::string problem;
  base::parse_hooks(settings.text(SettingId::kHooks), &specs, &problem);  // checked when loaded
  const auto add_first = [&](HookKind kind) {
    const auto same = [&](const HookSpec& spec) { return spec.kind == kind; };
    if (std::ranges::none_of(specs, same)) specs.insert(specs.begin(), HookSpec{.kind = kind});
  };
  if (settings.number(SettingId::kStats) != 0) add_first(HookKind::kStats);
  if (!settings.text(SettingId::kTrace).empty()) add_first(HookKind::kTrace);
  return specs;
}

}  // namespace

mob_status_t HookChain::open(const base::Settings& settings, mob_rank_t rank,
                             Completion& completion, Carrier& end) {
  const std::vector<HookSpec> specs = wanted_hooks(settings);
  CallCounts* counts = nullptr;
  for (auto spec = specs.rbegin(); spec != specs.rend(); ++spec) {
    Carrier& next = hooks_.empty() ? end : *hooks_.back();
    switch (spec->kind) {
      case HookKind::kTrace: {
        const std::string& name = settings.text(SettingId::kTrace);
        if (const mob_status_t status =
                Timeline::open(name.empty() ? "mobius-trace.json" : name, rank,
                               settings.number(SettingId::kTraceBytes), &timeline_)) {
          close(false);
          return status;
        }
        hooks_.push_back(std::make_unique<TraceHook>(next, *timeline_));
        break;
      }
      case HookKind::kStats: {
        auto stats = std::make_unique<StatsHook>(next, rank);
        counts = stats.get();
        hooks_.push_back(std::move(stats));
        break;
      }
      case HookKind::kDelay:
        hooks_.push_back(std::make_unique<DelayHook>(next, spec->max_us, spec->seed, rank));
        break;
      case HookKind::kReorder:
        reorders_ = true;
        hooks_.push_back(std::make_unique<ReorderHook>(next, completion, spec->seed, rank));
        break;
      case HookKind::kFault:
        hooks_.push_back(std::make_unique<FaultHook>(next, spec->every, spec->seed, rank));
        break;
    }
  }
  if (!hooks_.empty()) instrumentation_.install(timeline_.get(), counts);
  return MOB_OK;
}

void HookChain::close(bool report) {
  if (report) {
    for (const auto& hook : hooks_) hook->finish();
  }
  instrumentation_.remove();
  hooks_.clear();
  reorders_ = false;
  timeline_.reset();
}

}  // namespace mobius::engine
