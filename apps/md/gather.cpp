// SPDX-License-Identifier: BSD-3-Clause

#include <algorithm>

#include "simulation.h"

namespace md {

std::vector<Record> Simulation::gather() {
  const bool here = processes_.rank() == 0;
  std::vector<int> all;
  for (int number = 0; number < grid_.cells(); ++number) all.push_back(number);
  Transfers transfers = moved(all, 0, !here);  // positions and velocities: nothing of rank 0's own
  for (const int number : all) {
    Cell& c = cell(number);
    const size_t offset = memory_.forces(grid_.slot(number)), bytes = c.number * sizeof(Forces);
    if (is_own(number)) {
      std::copy_n(c.forces.data(), c.number, memory_.own<Forces>(offset));
      if (!here) transfers.push_back({0, offset, nullptr, bytes});
    } else if (here) {
      c.forces.resize(memory_.room());
      transfers.push_back(
          {grid_.owner(number), offset, reinterpret_cast<std::byte*>(c.forces.data()), bytes});
    }
  }
  processes_.fetch(here ? transfers : Transfers{}, here ? Transfers{} : transfers);
  processes_.meet();  // rank 0 has its copies
  for (const int number : own_cells()) {
    std::fill_n(memory_.own<Forces>(memory_.forces(grid_.slot(number))), cell(number).number,
                Forces{});
  }
  std::vector<Record> records;
  if (!here) return records;
  for (const int number : all) {
    cell(number).copied = -1;
    std::vector<Record> some = records_of(number);
    for (size_t i = 0; i < some.size(); ++i) some[i].forces = cell(number).forces[i];
    records.insert(records.end(), some.begin(), some.end());
  }
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.id < b.id; });
  return records;
}

}  // namespace md
