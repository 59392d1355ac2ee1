// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "info.h"
#include "mpi_programs.h"

namespace mobius::command {
namespace {

struct Variable {
  const char* name;
  const char* standard;
  const char* help;
};

// The front reads them (fronts/shmem/src), and docs/fronts/shmem.md explains them.
constexpr Variable kVariables[] = {
    {"SHMEM_SYMMETRIC_SIZE", "by the host's memory",
     "room for the symmetric heap of each PE: bytes, or a number with K, M, G or T"},
    {"SHMEM_DEBUG", "0", "1: check more arguments, and inline nothing"},
    {"SHMEM_INFO", "0", "1: PE 0 prints version, PEs and settings"},
    {"SHMEM_VERSION", "0", "1: PE 0 prints the version"},
};

}  // namespace

Section shmem_facts() {
  Section section{"shmem", "OpenSHMEM (oshcc, oshrun) and its settings SHMEM_*", {}};
  const bool is_made = std::filesystem::exists(own_tree() + "/lib/libmobius_shmem.so");
  section.facts.push_back(
      {"library", "library",
       is_made ? "libmobius_shmem, OpenSHMEM 1.6" : "libmobius_shmem was not built", is_made});
  for (const Variable& each : kVariables) {
    const char* const value = std::getenv(each.name);
    section.facts.push_back(
        {each.name, each.name + sizeof "SHMEM_" - 1,
         fmt::format("{}; {}", value != nullptr ? value : each.standard, each.help),
         value != nullptr ? Json(value) : Json(nullptr)});
  }
  return section;
}

}  // namespace mobius::command
