// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The syntax of MOBIUS_HOOKS: `name[:parameter=number]…`, separated by commas.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mobius::base {

enum class HookKind { kTrace, kStats, kDelay, kReorder, kFault };

// One hook. A parameter is used by the hooks named beside it; other hooks ignore it.
struct HookSpec {
  HookKind kind;
  uint64_t seed = 1;     // delay, reorder, fault
  uint64_t max_us = 50;  // delay
  uint64_t every = 100;  // fault

  bool operator==(const HookSpec&) const = default;
};

// Parses a list of hooks, outermost first. Empty text is an empty list. On failure it returns
// false, and `*problem` says in a few words which part is wrong and why.
bool parse_hooks(std::string_view text, std::vector<HookSpec>* hooks, std::string* problem);

}  // namespace mobius::base
