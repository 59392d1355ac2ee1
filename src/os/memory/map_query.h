// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Questions about single mappings of this process, for code that may not allocate memory.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace mobius::os {

struct DescribedMapping {
  uintptr_t start;
  uintptr_t end;
  int protection;  // PROT_READ | …
  bool is_shared;
  uint64_t offset;  // of `start` in the file
  dev_t device;
  ino_t inode;  // 0: of no file
};

enum class MapAnswer { kFound, kNothing, kUnknown };

// Asks the kernel for the mapping of an address without reading the list of all (Linux 6.11). In a
// child of fork() all answers are kUnknown.
class MapQuery {
 public:
  MapQuery();
  MapAnswer mapping_of(uintptr_t address, DescribedMapping* found) const;

 private:
  int maps_;
};

// Reads the list of all mappings, lowest first. Works in a child of fork(), too. Mappings may
// change meanwhile: those that do not are all read.
class MapReader {
 public:
  MapReader();
  ~MapReader();
  MapReader(const MapReader&) = delete;
  MapReader& operator=(const MapReader&) = delete;

  // kNothing at the end.
  MapAnswer next(DescribedMapping* found);

 private:
  bool fill();

  int maps_;
  size_t at_ = 0;
  size_t length_ = 0;
  char piece_[4096];
};

}  // namespace mobius::os
