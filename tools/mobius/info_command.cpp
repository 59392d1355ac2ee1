// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "help_texts.h"
#include "info.h"

namespace mobius::command {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kLabelColumn = 20;

// Prints `text` in columns from `indent` to the last, broken between words.
void print_wrapped(std::string_view text, size_t indent, size_t column) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (column > indent && column + 1 + word.size() > kColumns) {
      fmt::print("\n{:{}}", "", indent);
      column = indent;
    }
    if (column > indent) {
      fmt::print(" ");
      ++column;
    }
    fmt::print("{}", word);
    column += word.size();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  fmt::print("\n");
}

void print_section(const Section& section) {
  fmt::print("{}\n", section.title);
  for (const Fact& fact : section.facts) {
    fmt::print("  {:<{}}", fact.label, kLabelColumn - 2);
    print_wrapped(fact.text, kLabelColumn, kLabelColumn);
  }
  fmt::print("\n");
}

void print_settings(const SettingFacts& facts, bool internal) {
  constexpr size_t kRangeColumn = 59;
  constexpr const char* kRow = "  {:<20} {:<8} {:<8} {:<11} {:<5} {}\n";
  fmt::print("{}\n", internal ? "Settings that one part of Möbius makes for another" : "Settings");
  fmt::print(kRow, "name", "value", "default", "source", "unit", "range");
  for (const SettingFact& fact : facts.settings) {
    if (fact.internal != internal) continue;
    const auto shown = [](const std::string& text) { return text.empty() ? "-" : text; };
    // A list that is too long for its column gets a line of its own.
    const bool fits = kRangeColumn + fact.range.size() <= kColumns;
    const std::string range = fits ? fact.range : "one of these:";
    if (fact.value.size() <= 8 && fact.name.size() <= 20) {
      fmt::print(kRow, fact.name, shown(fact.value), shown(fact.standard), fact.source, fact.unit,
                 range);
    } else {
      fmt::print("  {:<20} {}\n", fact.name, fact.value);
      fmt::print(kRow, "", "", shown(fact.standard), fact.source, fact.unit, range);
    }
    if (!fits) fmt::print("      {}\n", fact.range);
    if (!fact.problem.empty()) {
      fmt::print("      ");
      print_wrapped("MALFORMED, programs that use Möbius will not start: " + fact.problem, 6, 6);
    }
    fmt::print("      ");
    print_wrapped(fact.help, 6, 6);
  }
  fmt::print("\n");
}

Json to_json(const SettingFacts& facts) {
  Json settings = Json::array();
  for (const SettingFact& fact : facts.settings) {
    Json entry{{"name", fact.name},        {"value", fact.value},
               {"default", fact.standard}, {"source", fact.source},
               {"unit", fact.unit},        {"range", fact.range},
               {"help", fact.help},        {"role", fact.internal ? "internal" : "user"}};
    if (!fact.problem.empty()) entry["problem"] = fact.problem;
    settings.push_back(entry);
  }
  return settings;
}

Json to_json(const Section& section) {
  Json facts;
  for (const Fact& fact : section.facts) facts[fact.key] = fact.value;
  return facts;
}

}  // namespace

int info_command(std::span<char*> arguments) {
  bool json = false;
  bool only_shmem = false;
  CLI::App app("", "mobius info");
  app.add_flag("--json", json);
  app.add_flag("--shmem", only_shmem);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", kInfoHelp);
    return 0;
  } catch (const CLI::ParseError&) {
    fmt::print(stderr, "mobius info: the options are --json and --shmem; see mobius info --help\n");
    return 2;
  }

  if (only_shmem) {
    const Section section = shmem_facts();
    if (json) {
      fmt::print("{}\n", to_json(section).dump(2, ' ', false, Json::error_handler_t::replace));
    } else {
      print_section(section);
    }
    return 0;
  }
  const Section sections[] = {build_facts(), host_facts(),  probe_facts(),    network_facts(),
                              mpi_facts(),   shmem_facts(), threshold_facts()};
  const SettingFacts settings = setting_facts();
  if (json) {
    Json all;
    for (const Section& section : sections) all[section.key] = to_json(section);
    all["settings"] = to_json(settings);
    all["warnings"] = settings.warnings;
    fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    for (const Section& section : sections) print_section(section);
    print_settings(settings, false);
    print_settings(settings, true);
    for (const std::string& warning : settings.warnings) fmt::print("warning: {}\n", warning);
  }
  const bool malformed = std::any_of(settings.settings.begin(), settings.settings.end(),
                                     [](const SettingFact& fact) { return !fact.problem.empty(); });
  return malformed ? 1 : 0;
}

}  // namespace mobius::command
