// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What `mobius info` tells: sections of facts, each with a text for people and a value for
// programs.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/settings.h"

namespace mobius::command {

using Json = nlohmann::ordered_json;

struct Fact {
  std::string key;    // in --json
  std::string label;  // in the text
  std::string text;   // what is so and, where it is not obvious, why
  Json value;
};

struct Section {
  std::string key;
  std::string title;
  std::vector<Fact> facts;
};

Section build_facts();
Section host_facts();
// Tries out what a job would use, and undoes it.
Section probe_facts();
Section network_facts();
// The fronts for MPI programs, and why one is missing.
Section mpi_facts();
// From which sizes on things are done in another way, and why.
Section threshold_facts();

struct SettingFact {
  std::string name, value, standard, source, unit, range, help, problem;
  bool internal;  // set by one part of Möbius for another
};

struct SettingFacts {
  std::vector<SettingFact> settings;
  std::vector<std::string> warnings;  // about MOBIUS_* names that are no settings
};

SettingFacts setting_facts();
// What the environment sets, without what is malformed.
base::Settings usable_settings();

// "1.5 GiB"
std::string bytes_text(uint64_t bytes);
// NUMA nodes that have memory; 0 where the kernel does not say.
size_t memory_node_count();
// The first line of a small file, empty when it cannot be read.
std::string first_line(const std::string& path);

}  // namespace mobius::command
