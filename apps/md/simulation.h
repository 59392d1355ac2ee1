// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_SIMULATION_H
#define MD_SIMULATION_H

#include <cstdint>
#include <span>
#include <vector>

#include "cell_memory.h"
#include "grid.h"
#include "interaction.h"
#include "processes.h"
#include "start.h"

namespace md {

struct Settings {
  int molecules = 512;
  double side = 0.0;           // nm
  double cutoff = 0.0;         // nm
  double skin = 0.1;           // nm that lists of neighbours reach beyond what interacts
  double step = 0.001;         // ps
  double temperature = 300.0;  // K, of the start
  uint64_t seed = 1;
  bool permute = true;  // neighbours in space on one host
  bool balance = true;  // processes without work take tasks of others
};

/// One process' part of the simulation. All functions that say so are collective.
class Simulation {
 public:
  /// Puts the molecules on a lattice and computes the forces there. Collective.
  Simulation(Processes& processes, const Settings& settings);

  /// One step of velocity Verlet. Collective.
  /// @param sample  also find what sums() and kinetic energies need
  void step(bool sample);

  /// What the last forces with `sample` gave, here.
  [[nodiscard]] const Sums& sums() const { return sums_; }
  /// In units of 1/kEnergyUnits kJ/mol, of the own molecules.
  [[nodiscard]] int64_t kinetic() const;
  [[nodiscard]] int64_t kinetic_of_centres() const;
  /// Multiplies the velocities of the own molecules.
  void scale_velocities(double factor);
  /// Largest relative error of the shape of an own molecule.
  [[nodiscard]] double largest_shape_error() const;
  /// A number that depends on every bit of positions and velocities: add those of all processes.
  [[nodiscard]] uint64_t checksum() const;

  /// All molecules, with forces, in the order of their numbers: in rank 0, nothing elsewhere.
  /// Collective.
  std::vector<Record> gather();

  [[nodiscard]] const Grid& grid() const { return grid_; }
  /// Bytes of positions and forces that a step moves between processes of one host, and between
  /// hosts, in all.
  struct Traffic {
    int64_t within = 0, between = 0;
  };
  [[nodiscard]] Traffic traffic() const;
  /// Tasks of others that this process has done.
  [[nodiscard]] int64_t tasks_taken() const { return taken_; }

 private:
  /// What is known here of a cell, and of the forces on it.
  struct Cell {
    const Molecule* positions = nullptr;  // own memory, or a copy
    std::vector<Molecule> copy, velocities, references;
    std::vector<int64_t> ids;
    std::vector<Forces> forces;  // found here; of own cells, all after compute_forces()
    int64_t copied = -1;         // the step whose positions the copy has
    int64_t forces_of = -1;      // the step that `forces` belong to
    int64_t references_of = -1;  // the sorting that `references` belong to
    size_t number = 0;           // of molecules
  };
  /// Molecules of cell `partner` near molecule `first`: a range of List::near.
  struct Group {
    uint32_t first, partner, begin, end;
  };
  /// The pairs of one task.
  struct List {
    int64_t sorting = -1;  // that it was made for
    std::vector<Group> groups;
    std::vector<uint32_t> near;
  };

  Cell& cell(int number) { return cells_[static_cast<size_t>(number)]; }
  [[nodiscard]] const Cell& cell(int number) const { return cells_[static_cast<size_t>(number)]; }
  [[nodiscard]] const std::vector<int>& own_cells() const {
    return grid_.cells_of(processes_.rank());
  }
  [[nodiscard]] bool is_own(int number) const { return grid_.owner(number) == processes_.rank(); }
  template <typename T>
  [[nodiscard]] std::span<T> own(int number, size_t offset) const {
    return {memory_.own<T>(offset), cell(number).number};
  }
  [[nodiscard]] std::span<Molecule> positions(int number) const {
    return own<Molecule>(number, memory_.positions(grid_.slot(number)));
  }
  [[nodiscard]] std::span<Molecule> velocities(int number) const {
    return own<Molecule>(number, memory_.velocities(grid_.slot(number)));
  }

  void find_needs();
  void place_on_lattice();

  // sorting.cpp: molecules into cells
  void sort();
  void share_numbers();
  std::vector<Record> records_of(int number);
  void put_into_cell(int number, std::vector<Record>& records);
  void wrap_into_box();
  [[nodiscard]] bool is_sorting_due();
  [[nodiscard]] double largest_distance() const;
  Transfers moved(const std::vector<int>& wanted, int rank, bool give);

  // forces.cpp
  void compute_forces(bool sample);
  Transfers positions_wanted();
  Transfers positions_given() const;
  void run_task(int number, bool sample);
  void take_tasks(bool sample);
  void bring_positions(int number);
  void bring_references(int number);
  void make_list(int number);
  void add_pairs(int number, bool sample);
  void start_forces(int number);
  void add_forces_of_others();

  void half_kick();
  void drift();

  Processes& processes_;
  Settings settings_;
  Interaction interaction_;
  Grid grid_;
  CellMemory memory_;
  std::vector<Cell> cells_;
  std::vector<List> lists_;
  // Cells of others that each rank needs: for its tasks, and when molecules are sorted.
  std::vector<std::vector<int>> needs_, needs_to_sort_;
  Sums sums_;
  int64_t step_ = 0, sorting_ = 0;
  int steps_since_sorting_ = 0;
  bool just_sorted_ = false;  // positions are references
  int64_t taken_ = 0;
};

}  // namespace md

#endif
