// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "info.h"

namespace mobius::command {
namespace {

using base::SettingInfo;
using base::SettingType;

std::string range_text(const SettingInfo& info) {
  switch (info.type) {
    case SettingType::kCount:
      return fmt::format("{} to {}", info.minimum, info.maximum);
    case SettingType::kTime:
      return fmt::format("auto, {} to {}", info.minimum, info.maximum);
    case SettingType::kBytes:
      return fmt::format(
          "{}{} to {}", std::string_view(info.default_text) == "auto" ? "auto, " : "",
          base::setting_bytes_text(info.minimum), base::setting_bytes_text(info.maximum));
    case SettingType::kChoice:
      return info.choices;
    case SettingType::kHooks:
      return "list of hooks";
    case SettingType::kText:
      break;
  }
  return "any text";
}

}  // namespace

// Loading stops at the first malformed value, so malformed ones are left out to load the others.
base::Settings usable_settings() {
  std::vector<const char*> environment;
  for (char* const* entry = environ; *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const size_t equals = std::min(pair.find('='), pair.size());
    bool usable = true;
    for (const SettingInfo& info : base::setting_table()) {
      uint64_t number = 0;
      if (pair.substr(0, equals) == info.name) {
        usable = base::parse_setting(info, pair.substr(equals + 1), &number) == MOB_OK;
      }
    }
    if (usable) environment.push_back(*entry);
  }
  environment.push_back(nullptr);
  base::Settings settings;
  static_cast<void>(settings.load(environment.data()));
  return settings;
}

SettingFacts setting_facts() {
  SettingFacts facts;
  for (const SettingInfo& info : base::setting_table()) {
    const char* given = std::getenv(info.name);
    SettingFact fact{info.name,
                     given != nullptr ? given : info.default_text,
                     info.default_text,
                     given != nullptr ? "environment" : "default",
                     info.unit,
                     range_text(info),
                     info.help,
                     "",
                     info.role == base::SettingRole::kInternal};
    uint64_t number = 0;
    if (base::parse_setting(info, fact.value, &number) != MOB_OK) {
      fact.problem = mob_last_error();
    }
    facts.settings.push_back(fact);
  }
  const base::Settings settings = usable_settings();
  for (const std::string& warning : settings.unknown()) facts.warnings.push_back(warning);
  return facts;
}

}  // namespace mobius::command
