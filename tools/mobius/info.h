// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The output of `mobius info`: sections of facts, each with a text for people and a value for
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
  std::string text;   // the fact and, where it is not obvious, the reason
  Json value;
};

struct Section {
  std::string key;
  std::string title;
  std::vector<Fact> facts;
};

Section build_facts();
Section host_facts();
// Tries out the system's features that a job uses, and undoes everything.
Section probe_facts();
Section network_facts();
// The fronts for MPI programs, and why one is missing.
Section mpi_facts();
// Whether OpenSHMEM is there, and its settings.
Section shmem_facts();
// The sizes from which the library takes another path, and why.
Section threshold_facts();

struct SettingFact {
  std::string name, value, standard, source, unit, range, help, problem;
  bool internal;  // set by one part of Möbius for another, not by users
};

struct SettingFacts {
  std::vector<SettingFact> settings;
  std::vector<std::string> warnings;  // about MOBIUS_* variables that are no settings
};

SettingFacts setting_facts();
// The environment's settings, without malformed ones.
base::Settings usable_settings();

// "1.5 GiB"
std::string bytes_text(uint64_t bytes);
// The number of NUMA nodes with memory; 0 if the kernel does not tell.
size_t memory_node_count();
// The first line of a small file, empty when it cannot be read.
std::string first_line(const std::string& path);

}  // namespace mobius::command
