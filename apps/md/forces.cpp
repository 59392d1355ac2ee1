// SPDX-License-Identifier: BSD-3-Clause

// A step's communication: positions are got from the cells' owners, forces are added to them. An
// owner does nothing for it. Over a one-sided library, a process that has done its tasks takes some
// of others.

#include <algorithm>

#include "simulation.h"

namespace md {

void Simulation::compute_forces(bool sample) {
  sums_ = {};
  *memory_.own<int64_t>(memory_.counter()) = 0;
  processes_.fetch(positions_wanted(), positions_given());
  for (const int number : needs_[static_cast<size_t>(processes_.rank())]) {
    cell(number).copied = step_;
  }
  for (const int number : own_cells()) start_forces(number);
  if (settings_.balance) {
    take_tasks(sample);
  } else {
    for (const int number : own_cells()) run_task(number, sample);
  }
  add_forces_of_others();
  just_sorted_ = false;
}

Transfers Simulation::positions_wanted() {
  Transfers wanted;
  for (const int number : needs_[static_cast<size_t>(processes_.rank())]) {
    Cell& c = cell(number);
    c.copy.resize(memory_.room());
    c.positions = c.copy.data();
    wanted.push_back({grid_.owner(number), memory_.positions(grid_.slot(number)),
                      reinterpret_cast<std::byte*>(c.copy.data()), c.number * sizeof(Molecule)});
  }
  return wanted;
}

Transfers Simulation::positions_given() const {
  Transfers given;
  for (int rank = 0; rank < processes_.size(); ++rank) {
    for (const int number : needs_[static_cast<size_t>(rank)]) {
      if (!is_own(number)) continue;
      given.push_back({rank, memory_.positions(grid_.slot(number)), nullptr,
                       cell(number).number * sizeof(Molecule)});
    }
  }
  return given;
}

/// Runs the own tasks, then what is left of those of others. Each process has a counter of its
/// tasks that were taken.
void Simulation::take_tasks(bool sample) {
  for (int i = 0; i < processes_.size(); ++i) {
    const int rank = (processes_.rank() + i) % processes_.size();
    const std::vector<int>& tasks = grid_.cells_of(rank);
    for (;;) {
      const auto task = static_cast<size_t>(processes_.take_number(rank, memory_.counter()));
      if (task >= tasks.size()) break;
      run_task(tasks[task], sample);
      taken_ += i > 0;
    }
  }
}

void Simulation::run_task(int number, bool sample) {
  bring_positions(number);
  if (lists_[static_cast<size_t>(number)].sorting != sorting_) make_list(number);
  for (const int partner : grid_.partners(number)) start_forces(partner);
  add_pairs(number, sample);
}

/// For a task of another process: the positions that are not here.
void Simulation::bring_positions(int number) {
  Transfers wanted;
  for (const int partner : grid_.partners(number)) {
    Cell& c = cell(partner);
    if (is_own(partner) || c.copied == step_) continue;
    c.copy.resize(memory_.room());
    c.positions = c.copy.data();
    c.copied = step_;
    wanted.push_back({grid_.owner(partner), memory_.positions(grid_.slot(partner)),
                      reinterpret_cast<std::byte*>(c.copy.data()), c.number * sizeof(Molecule)});
  }
  if (!wanted.empty()) processes_.get(wanted);
}

/// Likewise, the positions when molecules were sorted last: lists are made from these.
void Simulation::bring_references(int number) {
  Transfers wanted;
  for (const int partner : grid_.partners(number)) {
    Cell& c = cell(partner);
    if (c.references_of == sorting_) continue;
    c.references_of = sorting_;
    c.references.resize(memory_.room());
    const size_t offset = memory_.references(grid_.slot(partner));
    if (is_own(partner)) {
      std::copy_n(memory_.own<Molecule>(offset), c.number, c.references.data());
    } else {
      wanted.push_back({grid_.owner(partner), offset,
                        reinterpret_cast<std::byte*>(c.references.data()),
                        c.number * sizeof(Molecule)});
    }
  }
  if (!wanted.empty()) processes_.get(wanted);
}

void Simulation::make_list(int number) {
  if (!just_sorted_) bring_references(number);
  const auto places = [this](int n) {
    return just_sorted_ ? cell(n).positions : cell(n).references.data();
  };
  const double reach = interaction_.reach() + settings_.skin, per_side = 1.0 / settings_.side;
  List& list = lists_[static_cast<size_t>(number)];
  list.groups.clear();
  list.near.clear();
  list.sorting = sorting_;
  for (uint32_t i = 0; i < cell(number).number; ++i) {
    const Vec3 from = places(number)[i][0];
    for (const int partner : grid_.partners(number)) {
      const auto begin = static_cast<uint32_t>(list.near.size());
      const Molecule* others = places(partner);
      for (uint32_t j = partner == number ? i + 1 : 0; j < cell(partner).number; ++j) {
        Vec3 d = others[j][0] - from;
        d -= image(d, settings_.side, per_side);
        if (dot(d, d) < reach * reach) list.near.push_back(j);
      }
      const auto end = static_cast<uint32_t>(list.near.size());
      if (end > begin) list.groups.push_back({i, static_cast<uint32_t>(partner), begin, end});
    }
  }
}

void Simulation::add_pairs(int number, bool sample) {
  const List& list = lists_[static_cast<size_t>(number)];
  Cell& from = cell(number);
  const auto add = [&]<bool kSample>() {
    for (const Group& group : list.groups) {
      Cell& to = cells_[group.partner];
      const Molecule& molecule = from.positions[group.first];
      Forces& on_molecule = from.forces[group.first];
      for (uint32_t n = group.begin; n < group.end; ++n) {
        const uint32_t j = list.near[n];
        interaction_.add<kSample>(molecule, to.positions[j], on_molecule, to.forces[j], sums_);
      }
    }
  };
  if (sample) {
    add.operator()<true>();
  } else {
    add.operator()<false>();
  }
}

/// Sets the forces on a cell to zero, once in a step.
void Simulation::start_forces(int number) {
  Cell& c = cell(number);
  if (c.forces_of == step_) return;
  c.forces_of = step_;
  c.forces.assign(memory_.room(), Forces{});
}

void Simulation::add_forces_of_others() {
  Transfers sent, taken;
  for (int number = 0; number < grid_.cells(); ++number) {
    Cell& c = cell(number);
    if (is_own(number) || c.forces_of != step_) continue;
    sent.push_back({grid_.owner(number), memory_.forces(grid_.slot(number)),
                    reinterpret_cast<std::byte*>(c.forces.data()), c.number * sizeof(Forces)});
  }
  for (int rank = 0; rank < processes_.size(); ++rank) {
    for (const int number : needs_[static_cast<size_t>(rank)]) {
      if (!is_own(number)) continue;
      taken.push_back({rank, memory_.forces(grid_.slot(number)), nullptr,
                       cell(number).number * sizeof(Forces)});
    }
  }
  processes_.add(sent, taken);
  for (const int number : own_cells()) {
    auto* added = memory_.own<Forces>(memory_.forces(grid_.slot(number)));
    Cell& c = cell(number);
    for (size_t i = 0; i < c.number; ++i) {
      for (size_t n = 0; n < added[i].size(); ++n) c.forces[i][n] += added[i][n];
      added[i] = {};
    }
  }
}

}  // namespace md
