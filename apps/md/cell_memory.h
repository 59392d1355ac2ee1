// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_CELL_MEMORY_H
#define MD_CELL_MEMORY_H

#include <cstddef>
#include <cstdint>

#include "processes.h"
#include "water.h"

namespace md {

/// The layout of the memory that processes share, the same in each process: `slots` cells, each
/// with space for `room` molecules. All positions of a cell lie together, so that one transfer
/// brings them; so do its other quantities.
class CellMemory {
 public:
  CellMemory(size_t slots, size_t room)
      : room_(room),
        numbers_(sizeof(int64_t) * 8),  // after the counter, which has its own cache line
        ids_(numbers_ + sizeof(int64_t) * slots),
        positions_(ids_ + sizeof(int64_t) * slots * room),
        references_(positions_ + sizeof(Molecule) * slots * room),
        velocities_(references_ + sizeof(Molecule) * slots * room),
        forces_(velocities_ + sizeof(Molecule) * slots * room),
        bytes_(forces_ + sizeof(Forces) * slots * room) {}

  void allocate(Processes& processes) { own_ = processes.allocate(bytes_); }

  [[nodiscard]] size_t room() const { return room_; }

  /// Offsets in the memory of any process. Of `counter`: tasks that were taken from it.
  [[nodiscard]] size_t counter() const { return 0; }
  [[nodiscard]] size_t numbers() const { return numbers_; }
  [[nodiscard]] size_t ids(int slot) const { return at(ids_, slot, sizeof(int64_t)); }
  [[nodiscard]] size_t positions(int slot) const { return at(positions_, slot, sizeof(Molecule)); }
  /// Positions when molecules were last sorted into cells.
  [[nodiscard]] size_t references(int slot) const {
    return at(references_, slot, sizeof(Molecule));
  }
  [[nodiscard]] size_t velocities(int slot) const {
    return at(velocities_, slot, sizeof(Molecule));
  }
  /// Forces that other processes have added.
  [[nodiscard]] size_t forces(int slot) const { return at(forces_, slot, sizeof(Forces)); }

  /// The caller's own.
  template <typename T>
  [[nodiscard]] T* own(size_t offset) const {
    return reinterpret_cast<T*>(own_ + offset);
  }

 private:
  [[nodiscard]] size_t at(size_t first, int slot, size_t size) const {
    return first + static_cast<size_t>(slot) * room_ * size;
  }

  size_t room_, numbers_, ids_, positions_, references_, velocities_, forces_, bytes_;
  std::byte* own_ = nullptr;
};

}  // namespace md

#endif
