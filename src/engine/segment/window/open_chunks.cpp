// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/window/open_chunks.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "os/file/small_file.h"

namespace mobius::engine {
namespace {

// How far to_allow() looks for an accessible chunk: 2 GiB.
constexpr uint64_t kMostJoined = 1024;

}  // namespace

uint64_t most_borders() {
  constexpr uint64_t kUsualMaximum = 65530;
  const std::string text = os::read_small_file("/proc/sys/vm/max_map_count");
  const uint64_t maximum = std::strtoull(text.c_str(), nullptr, 10);
  return (maximum != 0 ? maximum : kUsualMaximum) / 3;
}

bool OpenChunks::open(uint64_t chunks, uint64_t most_borders) {
  close();
  void* const memory = mmap(nullptr, chunks, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  open_ = static_cast<unsigned char*>(memory);
  chunks_ = chunks;
  most_borders_ = most_borders;
  borders_ = 0;
  return true;
}

void OpenChunks::close() {
  if (open_ != nullptr) munmap(open_, chunks_);
  open_ = nullptr;
  chunks_ = 0;
}

// Borders between chunks of a run and those beside it.
int64_t OpenChunks::borders_inside(ChunkRun run) const {
  int64_t found = 0;
  bool before = run.first != 0 && is_open(run.first - 1);
  for (uint64_t chunk = run.first; chunk <= run.first + run.count; ++chunk) {
    found += is_open(chunk) != before ? 1 : 0;
    before = is_open(chunk);
  }
  return found;
}

// By how many borders there are more if a run is made accessible, or not.
int64_t OpenChunks::change(ChunkRun run, bool accessible) const {
  const bool before = run.first != 0 && is_open(run.first - 1);
  const bool after = is_open(run.first + run.count);
  const int64_t then = (before != accessible ? 1 : 0) + (after != accessible ? 1 : 0);
  return then - borders_inside(run);
}

ChunkRun OpenChunks::to_allow(ChunkRun wanted) const {
  const int64_t more = change(wanted, true);
  if (more <= 0 || borders_ + static_cast<uint64_t>(more) <= most_borders_) return wanted;
  for (uint64_t distance = 1; distance <= kMostJoined; ++distance) {
    if (wanted.first >= distance && is_open(wanted.first - distance)) {
      return {wanted.first - distance + 1, wanted.count + distance - 1};
    }
    if (is_open(wanted.first + wanted.count - 1 + distance)) {
      return {wanted.first, wanted.count + distance - 1};
    }
  }
  return wanted;
}

bool OpenChunks::may_deny(ChunkRun wanted) const {
  const int64_t more = change(wanted, false);
  return more <= 0 || borders_ + static_cast<uint64_t>(more) <= most_borders_;
}

void OpenChunks::set(ChunkRun run, bool accessible) {
  borders_ = static_cast<uint64_t>(static_cast<int64_t>(borders_) + change(run, accessible));
  std::memset(open_ + run.first, accessible ? 1 : 0, run.count);
}

}  // namespace mobius::engine
