// SPDX-License-Identifier: BSD-3-Clause

#include "simulation.h"

#include <algorithm>
#include <bit>
#include <set>

#include "triangle.h"

namespace md {
namespace {

/// Room in a cell: twice the average, and for the chance of small numbers.
size_t room_of(const Settings& settings, const Grid& grid) {
  return static_cast<size_t>(2 * settings.molecules / grid.cells() + 24);
}

double list_reach(const Settings& settings) {
  return Interaction(settings.side, settings.cutoff).reach() + settings.skin;
}

}  // namespace

Simulation::Simulation(Processes& processes, const Settings& settings)
    : processes_(processes),
      settings_(settings),
      interaction_(settings.side, settings.cutoff),
      grid_(settings.side, list_reach(settings), processes.leaders(), settings.permute),
      memory_(static_cast<size_t>(grid_.most_slots()), room_of(settings, grid_)),
      cells_(static_cast<size_t>(grid_.cells())),
      lists_(static_cast<size_t>(grid_.cells())) {
  memory_.allocate(processes);
  find_needs();
  place_on_lattice();
  compute_forces(true);
}

void Simulation::find_needs() {
  for (int rank = 0; rank < processes_.size(); ++rank) {
    std::set<int> for_tasks, for_sorting;
    for (const int own : grid_.cells_of(rank)) {
      for (const int other : grid_.partners(own)) {
        if (grid_.owner(other) != rank) for_tasks.insert(other);
      }
      for (const int other : grid_.around(own)) {
        if (grid_.owner(other) != rank) for_sorting.insert(other);
      }
    }
    needs_.emplace_back(for_tasks.begin(), for_tasks.end());
    needs_to_sort_.emplace_back(for_sorting.begin(), for_sorting.end());
  }
}

void Simulation::place_on_lattice() {
  std::vector<std::vector<Record>> records(cells_.size());
  for (const Record& record : start_on_lattice(settings_.molecules, settings_.side,
                                               settings_.temperature, settings_.seed)) {
    const int number = grid_.cell_at(record.position[0]);
    if (is_own(number)) records[static_cast<size_t>(number)].push_back(record);
  }
  for (const int number : own_cells()) put_into_cell(number, records[static_cast<size_t>(number)]);
  share_numbers();
}

void Simulation::step(bool sample) {
  ++step_;
  half_kick();
  drift();
  if (is_sorting_due()) sort();
  compute_forces(sample);
  half_kick();
  for (const int number : own_cells()) {
    const auto position = positions(number), velocity = velocities(number);
    for (size_t i = 0; i < position.size(); ++i) restore_rigid_motion(position[i], velocity[i]);
  }
}

void Simulation::half_kick() {
  const double half = 0.5 * settings_.step;
  for (const int number : own_cells()) {
    const auto velocity = velocities(number);
    const std::vector<Forces>& forces = cell(number).forces;
    for (size_t i = 0; i < velocity.size(); ++i) {
      for (size_t atom = 0; atom < kAtoms; ++atom) {
        velocity[i][atom] += (half / kMass[atom]) * force_on(forces[i], static_cast<int>(atom));
      }
    }
  }
}

void Simulation::drift() {
  for (const int number : own_cells()) {
    const auto position = positions(number), velocity = velocities(number);
    for (size_t i = 0; i < position.size(); ++i) {
      const Molecule before = position[i];
      for (size_t atom = 0; atom < kAtoms; ++atom) {
        position[i][atom] += settings_.step * velocity[i][atom];
      }
      if (!restore_shape(before, settings_.step, position[i], velocity[i])) {
        processes_.fail("a molecule broke: the time step is too long");
      }
    }
  }
}

int64_t Simulation::kinetic() const {
  int64_t sum = 0;
  for (const int number : own_cells()) {
    for (const Molecule& v : velocities(number)) sum += fixed(kinetic_energy(v), kEnergyUnits);
  }
  return sum;
}

int64_t Simulation::kinetic_of_centres() const {
  int64_t sum = 0;
  for (const int number : own_cells()) {
    for (const Molecule& v : velocities(number)) {
      sum += fixed(kinetic_energy_of_centre(v), kEnergyUnits);
    }
  }
  return sum;
}

void Simulation::scale_velocities(double factor) {
  for (const int number : own_cells()) {
    for (Molecule& molecule : velocities(number)) {
      for (Vec3& velocity : molecule) velocity *= factor;
    }
  }
}

double Simulation::largest_shape_error() const {
  double largest = 0.0;
  for (const int number : own_cells()) {
    for (const Molecule& m : positions(number)) largest = std::max(largest, shape_error(m));
  }
  return largest;
}

uint64_t Simulation::checksum() const {
  uint64_t sum = 0;
  const auto add = [&sum](const Molecule& molecule, uint64_t name) {
    for (const Vec3& v : molecule) {
      for (const double value : {v.x, v.y, v.z}) {
        sum += scramble(std::bit_cast<uint64_t>(value) ^ scramble(name++));
      }
    }
  };
  for (const int number : own_cells()) {
    const auto position = positions(number), velocity = velocities(number);
    const auto id = own<int64_t>(number, memory_.ids(grid_.slot(number)));
    for (size_t i = 0; i < id.size(); ++i) {
      // The same whichever side of the box a molecule has left since it was sorted.
      add(position[i], static_cast<uint64_t>(id[i]) * 32);
      add(velocity[i], static_cast<uint64_t>(id[i]) * 32 + 16);
    }
  }
  return sum;
}

Simulation::Traffic Simulation::traffic() const {
  Traffic traffic;
  const auto& leaders = processes_.leaders();
  for (size_t rank = 0; rank < needs_.size(); ++rank) {
    for (const int number : needs_[rank]) {
      const auto owner = static_cast<size_t>(grid_.owner(number));
      const size_t bytes = cell(number).number * (sizeof(Molecule) + sizeof(Forces));
      (leaders[rank] == leaders[owner] ? traffic.within : traffic.between) +=
          static_cast<int64_t>(bytes);
    }
  }
  return traffic;
}

}  // namespace md
