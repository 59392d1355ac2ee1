// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <unistd.h>

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

SettingFacts setting_facts() {
  SettingFacts facts;
  std::vector<std::string> malformed;
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
      malformed.emplace_back(info.name);
    }
    facts.settings.push_back(fact);
  }

  // Loading stops at the first malformed value, so those are left out to see unknown names.
  std::vector<const char*> environment;
  for (char* const* entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name =
        std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    bool usable = true;
    for (const std::string& bad : malformed) usable = usable && name != bad;
    if (usable) environment.push_back(*entry);
  }
  environment.push_back(nullptr);
  base::Settings settings;
  if (settings.load(environment.data()) == MOB_OK) {
    for (const std::string& warning : settings.unknown()) facts.warnings.push_back(warning);
  }
  return facts;
}

}  // namespace mobius::command
