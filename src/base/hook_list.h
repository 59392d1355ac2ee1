// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The language of MOBIUS_HOOKS: `name[:parameter=number]…`, separated by commas.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mobius::base {

enum class HookKind { kTrace, kStats, kDelay, kReorder, kFault };

// One hook. Those that take a parameter say so; the others have the default.
struct HookSpec {
  HookKind kind;
  uint64_t seed = 1;     // delay, reorder, fault
  uint64_t max_us = 50;  // delay
  uint64_t every = 100;  // fault

  bool operator==(const HookSpec&) const = default;
};

// Parses a list, outermost hook first; empty text is an empty list. Otherwise `*problem` says in a
// few words what is wrong with which part, and the result is false.
bool parse_hooks(std::string_view text, std::vector<HookSpec>* hooks, std::string* problem);

}  // namespace mobius::base
