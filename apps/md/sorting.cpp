// SPDX-License-Identifier: BSD-3-Clause

// Molecules change cells. Nobody sends them: each process gets the cells around its own, and keeps
// what has come into them.

#include <algorithm>
#include <bit>
#include <cmath>

#include "simulation.h"

namespace md {
namespace {

constexpr int kStepsBetweenLooks = 5;
// A molecule may be so much faster until the next look.
constexpr double kFaster = 1.5;

template <typename T>
Transfer transfer(int rank, size_t offset, T* buffer, size_t count) {
  return {rank, offset, reinterpret_cast<std::byte*>(buffer), count * sizeof(T)};
}

}  // namespace

bool Simulation::is_sorting_due() {
  const double limit = 0.5 * settings_.skin, distance = largest_distance();
  if (distance > limit) {
    processes_.fail("a molecule moved beyond the lists of neighbours: a larger --skin is needed");
  }
  const int steps = ++steps_since_sorting_;
  if (steps % kStepsBetweenLooks != 0) return false;
  // Positive doubles are ordered as their bits are.
  int64_t largest = std::bit_cast<int64_t>(distance);
  processes_.largest({&largest, 1});
  const double next = kFaster * (steps + kStepsBetweenLooks) / steps;
  return std::bit_cast<double>(largest) * next > limit;
}

double Simulation::largest_distance() const {
  double largest2 = 0.0;
  for (const int number : own_cells()) {
    const auto position = positions(number);
    const auto reference = own<Molecule>(number, memory_.references(grid_.slot(number)));
    for (size_t i = 0; i < position.size(); ++i) {
      const Vec3 moved = position[i][0] - reference[i][0];
      largest2 = std::max(largest2, dot(moved, moved));
    }
  }
  return std::sqrt(largest2);
}

void Simulation::wrap_into_box() {
  const double side = settings_.side;
  for (const int number : own_cells()) {
    for (Molecule& m : positions(number)) {
      const Vec3 out = {side * std::floor(m[0].x / side), side * std::floor(m[0].y / side),
                        side * std::floor(m[0].z / side)};
      for (Vec3& atom : m) atom -= out;
    }
  }
}

/// What moves with the molecules of cells: to the caller from their owners, or given by it to
/// `rank`.
Transfers Simulation::moved(const std::vector<int>& wanted, int rank, bool give) {
  Transfers transfers;
  for (const int number : wanted) {
    if (give != is_own(number)) continue;
    const int partner = give ? rank : grid_.owner(number), slot = grid_.slot(number);
    Cell& c = cell(number);
    if (!give) {
      c.copy.resize(memory_.room());
      c.velocities.resize(memory_.room());
      c.ids.resize(memory_.room());
    }
    transfers.push_back(transfer(partner, memory_.positions(slot), c.copy.data(), c.number));
    transfers.push_back(transfer(partner, memory_.velocities(slot), c.velocities.data(), c.number));
    transfers.push_back(transfer(partner, memory_.ids(slot), c.ids.data(), c.number));
  }
  return transfers;
}

std::vector<Record> Simulation::records_of(int number) {
  const Cell& c = cell(number);
  const int slot = grid_.slot(number);
  const bool here = is_own(number);
  const Molecule* position = here ? memory_.own<Molecule>(memory_.positions(slot)) : c.copy.data();
  const Molecule* velocity =
      here ? memory_.own<Molecule>(memory_.velocities(slot)) : c.velocities.data();
  const int64_t* id = here ? memory_.own<int64_t>(memory_.ids(slot)) : c.ids.data();
  std::vector<Record> records(c.number);
  for (size_t i = 0; i < records.size(); ++i) records[i] = {id[i], position[i], velocity[i], {}};
  return records;
}

void Simulation::put_into_cell(int number, std::vector<Record>& records) {
  Cell& c = cell(number);
  if (records.size() > memory_.room()) processes_.fail("a cell has no room for its molecules");
  std::sort(records.begin(), records.end(),
            [](const Record& a, const Record& b) { return a.id < b.id; });
  c.number = records.size();
  const int slot = grid_.slot(number);
  c.positions = memory_.own<Molecule>(memory_.positions(slot));
  *memory_.own<int64_t>(memory_.numbers() + sizeof(int64_t) * static_cast<size_t>(slot)) =
      static_cast<int64_t>(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    positions(number)[i] = records[i].position;
    velocities(number)[i] = records[i].velocity;
    own<Molecule>(number, memory_.references(slot))[i] = records[i].position;
    own<int64_t>(number, memory_.ids(slot))[i] = records[i].id;
  }
}

void Simulation::sort() {
  wrap_into_box();
  const auto own_rank = static_cast<size_t>(processes_.rank());
  Transfers given;
  for (int rank = 0; rank < processes_.size(); ++rank) {
    const Transfers some = moved(needs_to_sort_[static_cast<size_t>(rank)], rank, true);
    given.insert(given.end(), some.begin(), some.end());
  }
  processes_.fetch(moved(needs_to_sort_[own_rank], 0, false), given);
  processes_.meet();  // all have their copies

  std::vector<std::vector<Record>> sorted(cells_.size());
  const auto sort_in = [&](int number) {
    for (const Record& record : records_of(number)) {
      sorted[static_cast<size_t>(grid_.cell_at(record.position[0]))].push_back(record);
    }
  };
  for (const int number : own_cells()) sort_in(number);
  for (const int number : needs_to_sort_[own_rank]) sort_in(number);
  for (const int number : own_cells()) put_into_cell(number, sorted[static_cast<size_t>(number)]);
  share_numbers();
}

/// Every process learns how many molecules each cell has.
void Simulation::share_numbers() {
  std::vector<std::vector<int64_t>> numbers(static_cast<size_t>(processes_.size()));
  Transfers wanted, given;
  for (int rank = 0; rank < processes_.size(); ++rank) {
    if (rank == processes_.rank()) continue;
    auto& theirs = numbers[static_cast<size_t>(rank)];
    theirs.resize(grid_.cells_of(rank).size());
    wanted.push_back(transfer(rank, memory_.numbers(), theirs.data(), theirs.size()));
    given.push_back(transfer<int64_t>(rank, memory_.numbers(), nullptr, own_cells().size()));
  }
  processes_.fetch(wanted, given);
  size_t all = 0;
  for (int number = 0; number < grid_.cells(); ++number) {
    if (!is_own(number)) {
      const auto& theirs = numbers[static_cast<size_t>(grid_.owner(number))];
      cell(number).number = static_cast<size_t>(theirs[static_cast<size_t>(grid_.slot(number))]);
    }
    all += cell(number).number;
  }
  if (all != static_cast<size_t>(settings_.molecules)) {
    processes_.fail("a molecule was lost: it moved further than the next cell");
  }
  ++sorting_;
  steps_since_sorting_ = 0;
  just_sorted_ = true;
}

}  // namespace md
