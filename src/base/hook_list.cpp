// SPDX-License-Identifier: BSD-3-Clause
#include "base/hook_list.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace mobius::base {
namespace {

struct Parameter {
  const char* name;
  uint64_t HookSpec::* value;
  uint64_t minimum;
  uint64_t maximum;
};

constexpr Parameter kSeed = {"seed", &HookSpec::seed, 0, UINT64_MAX};
constexpr Parameter kMaxUs = {"max_us", &HookSpec::max_us, 0, 1'000'000};
constexpr Parameter kEvery = {"every", &HookSpec::every, 1, UINT64_MAX};

struct HookName {
  const char* name;
  HookKind kind;
  const Parameter* parameters[2];  // null where there are fewer than two
};

constexpr HookName kNames[] = {{"trace", HookKind::kTrace, {}},
                               {"stats", HookKind::kStats, {}},
                               {"delay", HookKind::kDelay, {&kMaxUs, &kSeed}},
                               {"reorder", HookKind::kReorder, {&kSeed}},
                               {"fault", HookKind::kFault, {&kEvery, &kSeed}}};

// Removes the text up to `separator`, and the separator, from `*rest`, and returns the text.
std::string_view take(std::string_view* rest, char separator) {
  const size_t end = std::min(rest->find(separator), rest->size());
  const std::string_view word = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return word;
}

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 60)) + "'"; }

bool parse_parameter(const HookName& hook, std::string_view text, HookSpec* spec,
                     std::string* problem) {
  std::string_view value = text;
  const std::string_view name = take(&value, '=');
  for (const Parameter* parameter : hook.parameters) {
    if (parameter == nullptr || name != parameter->name) continue;
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (value.empty() || error != std::errc() || end != value.data() + value.size() ||
        number < parameter->minimum || number > parameter->maximum) {
      *problem = quoted(text) + " of " + hook.name + " needs a whole number from " +
                 std::to_string(parameter->minimum) + " to " + std::to_string(parameter->maximum);
      return false;
    }
    spec->*parameter->value = number;
    return true;
  }
  *problem = std::string(hook.name) + " has no parameter " + quoted(name);
  return false;
}

bool parse_hook(std::string_view text, HookSpec* spec, std::string* problem) {
  std::string_view rest = text;
  const std::string_view name = take(&rest, ':');
  const auto* hook = std::ranges::find_if(kNames, [&](const auto& it) { return name == it.name; });
  if (hook == std::end(kNames)) {
    *problem = quoted(name) + " is not a hook";
    return false;
  }
  *spec = {.kind = hook->kind};
  if (text.ends_with(':')) {
    *problem = quoted(text) + " ends before its parameter";
    return false;
  }
  while (!rest.empty()) {
    if (!parse_parameter(*hook, take(&rest, ':'), spec, problem)) return false;
  }
  return true;
}

}  // namespace

bool parse_hooks(std::string_view text, std::vector<HookSpec>* hooks, std::string* problem) {
  hooks->clear();
  if (text.ends_with(',')) {
    *problem = "a hook is missing after the last comma";
    return false;
  }
  while (!text.empty()) {
    HookSpec spec{};
    if (!parse_hook(take(&text, ','), &spec, problem)) return false;
    for (const HookSpec& other : *hooks) {
      if (other.kind == spec.kind) {
        *problem = "a hook is named twice";
        return false;
      }
    }
    hooks->push_back(spec);
  }
  return true;
}

}  // namespace mobius::base
