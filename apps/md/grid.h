// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_GRID_H
#define MD_GRID_H

#include <array>
#include <cstddef>
#include <vector>

#include "vector.h"

namespace md {

/// Cuts the box into cells, and deals the cells out to the processes.
///
/// The processes form a grid, each with a box of cells. The forces between two cells are the task
/// of one of the two: each pair is in the list of partners of one cell.
class Grid {
 public:
  using Size3 = std::array<int, 3>;

  /// @param reach    distance up to which molecules of two cells meet
  /// @param leaders  lowest rank on the host of each rank
  /// @param permute  deal out so that neighbours in space are on one host, where hosts have equally
  ///                 many processes; else in the order of the ranks
  Grid(double side, double reach, const std::vector<int>& leaders, bool permute);

  [[nodiscard]] int cells() const { return static_cast<int>(owner_.size()); }
  [[nodiscard]] const Size3& cells_per_side() const { return cells_; }
  [[nodiscard]] double cell_side() const;
  [[nodiscard]] int owner(int cell) const { return owner_[static_cast<size_t>(cell)]; }
  /// Cells of a process, in ascending order.
  [[nodiscard]] const std::vector<int>& cells_of(int rank) const {
    return cells_of_[static_cast<size_t>(rank)];
  }
  /// The place of a cell among those of its owner.
  [[nodiscard]] int slot(int cell) const { return slot_[static_cast<size_t>(cell)]; }
  [[nodiscard]] int most_slots() const;
  /// Cells whose forces with `cell` are its task, with `cell` itself.
  [[nodiscard]] const std::vector<int>& partners(int cell) const {
    return partners_[static_cast<size_t>(cell)];
  }
  /// The cells around a cell, with it.
  [[nodiscard]] std::vector<int> around(int cell) const;
  /// The cell of a position inside the box.
  [[nodiscard]] int cell_at(const Vec3& position) const;

 private:
  [[nodiscard]] int number_of(const Size3& place) const {
    return (place[2] * cells_[1] + place[1]) * cells_[0] + place[0];
  }
  [[nodiscard]] Size3 place_of(int cell) const {
    return {cell % cells_[0], cell / cells_[0] % cells_[1], cell / cells_[0] / cells_[1]};
  }
  void deal_out(const std::vector<int>& leaders, bool permute);
  void pair_up(double reach);

  double side_;
  Size3 processes_{}, cells_{};
  std::vector<int> owner_, slot_;
  std::vector<std::vector<int>> cells_of_, partners_;
};

}  // namespace md

#endif
