// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which chunks of the window this process may access, and how many mappings that takes: the kernel
// keeps one for each run of accessible chunks and one for each run between them, and a process may
// have only so many of all kinds (vm.max_map_count).

#include <cstddef>
#include <cstdint>

namespace mobius::engine {

// A run of chunks.
struct ChunkRun {
  uint64_t first;
  uint64_t count;
};

// Not thread-safe.
class OpenChunks {
 public:
  OpenChunks() = default;
  OpenChunks(const OpenChunks&) = delete;
  OpenChunks& operator=(const OpenChunks&) = delete;
  ~OpenChunks() { close(); }

  // For a window of `chunks` chunks, none of which is accessible, and at most `most_borders` places
  // where accessible chunks end or begin. False if there is no address space.
  bool open(uint64_t chunks, uint64_t most_borders);
  void close();

  // The run to make accessible for `wanted`: a longer one where another border would be one too
  // many and an accessible chunk is near.
  ChunkRun to_allow(ChunkRun wanted) const;
  // Whether `wanted` can be made inaccessible without a border too many.
  bool may_deny(ChunkRun wanted) const;
  // Notes what was done.
  void set(ChunkRun run, bool accessible);

  uint64_t borders() const { return borders_; }

 private:
  bool is_open(uint64_t chunk) const { return chunk < chunks_ && open_[chunk] != 0; }
  int64_t borders_inside(ChunkRun run) const;
  int64_t change(ChunkRun run, bool accessible) const;

  unsigned char* open_ = nullptr;  // by chunk; takes no memory until used
  uint64_t chunks_ = 0;
  uint64_t most_borders_ = 0;
  uint64_t borders_ = 0;
};

// How many borders a window may have: a third of the mappings that a process may have, by the
// kernel's setting, so that the program has most of them for itself.
uint64_t most_borders();

}  // namespace mobius::engine
