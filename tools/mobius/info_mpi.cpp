// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "info.h"
#include "mpi_programs.h"

namespace mobius::command {

Section mpi_facts() {
  Section section{"mpi", "Windows of MPI programs (mobius mpirun)", {}};
  for (const MpiFront& front : read_fronts()) {
    const std::string library = fmt::format("libmobius_{}", abi_name(front.abi));
    const std::string text = front.is_made ? fmt::format("{}, {}", library, front.reason)
                                           : fmt::format("no {}: {}", library, front.reason);
    section.facts.push_back({abi_name(front.abi), abi_name(front.abi), text,
                             Json{{"made", front.is_made}, {"reason", front.reason}}});
  }
  if (section.facts.empty()) {
    section.facts.push_back({"none", "fronts", "none were built", true});
  }
  return section;
}

}  // namespace mobius::command
