// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/map_query.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "os/file/held_descriptor.h"

namespace mobius::os {
namespace {

// PROCMAP_QUERY of Linux 6.11, for older headers.
struct Query {
  uint64_t size;
  uint64_t query_flags;
  uint64_t query_addr;
  uint64_t vma_start;
  uint64_t vma_end;
  uint64_t vma_flags;
  uint64_t vma_page_size;
  uint64_t vma_offset;
  uint64_t inode;
  uint32_t dev_major;
  uint32_t dev_minor;
  uint32_t vma_name_size;
  uint32_t build_id_size;
  uint64_t vma_name_addr;
  uint64_t build_id_addr;
};
constexpr uint64_t kReadable = 1;
constexpr uint64_t kWritable = 2;
constexpr uint64_t kExecutable = 4;
constexpr uint64_t kShared = 8;

// A forked process shares its parent's open file, so the flag avoids asking for the process id each
// time.
std::atomic<bool> is_forked = false;

int open_maps() {
  static const HeldDescriptor held([] {
    const int file = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
    const int error = pthread_atfork(nullptr, nullptr, [] { is_forked.store(true); });
    return error == 0 ? file : -1;
  }());
  return held.get();
}

// "start-end rwxp offset major:minor inode name"
bool parse(const char* line, DescribedMapping* found) {
  char* at = nullptr;
  found->start = std::strtoull(line, &at, 16);
  if (*at != '-') return false;
  found->end = std::strtoull(at + 1, &at, 16);
  if (*at != ' ') return false;
  const char* const access = at + 1;
  for (int i = 0; i < 4; ++i) {
    if (access[i] == 0) return false;
  }
  found->protection = (access[0] == 'r' ? PROT_READ : 0) | (access[1] == 'w' ? PROT_WRITE : 0) |
                      (access[2] == 'x' ? PROT_EXEC : 0);
  found->is_shared = access[3] == 's';
  found->offset = std::strtoull(access + 4, &at, 16);
  const auto major_number = static_cast<unsigned>(std::strtoul(at, &at, 16));
  if (*at != ':') return false;
  const auto minor_number = static_cast<unsigned>(std::strtoul(at + 1, &at, 16));
  found->device = makedev(major_number, minor_number);
  found->inode = std::strtoull(at, &at, 10);
  return true;
}

}  // namespace

MapQuery::MapQuery() : maps_(open_maps()) {
  if (is_forked.load(std::memory_order_relaxed)) maps_ = -1;
}

MapAnswer MapQuery::mapping_of(uintptr_t address, DescribedMapping* found) const {
  if (maps_ < 0) return MapAnswer::kUnknown;
  Query query{};
  query.size = sizeof query;
  query.query_addr = address;
  if (ioctl(maps_, _IOWR('f', 17, Query), &query) != 0) {
    return errno == ENOENT ? MapAnswer::kNothing : MapAnswer::kUnknown;
  }
  const auto has = [&](uint64_t flag) { return (query.vma_flags & flag) != 0; };
  *found = {query.vma_start,
            query.vma_end,
            (has(kReadable) ? PROT_READ : 0) | (has(kWritable) ? PROT_WRITE : 0) |
                (has(kExecutable) ? PROT_EXEC : 0),
            has(kShared),
            query.vma_offset,
            makedev(query.dev_major, query.dev_minor),
            query.inode};
  return MapAnswer::kFound;
}

MapReader::MapReader() : maps_(open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC)) {}

MapReader::~MapReader() {
  if (maps_ >= 0) close(maps_);
}

// Reads on. False at the end, or if the list cannot be read.
bool MapReader::fill() {
  ssize_t got = 0;
  do {
    got = maps_ < 0 ? -1 : read(maps_, piece_, sizeof piece_);
  } while (got < 0 && errno == EINTR);
  at_ = 0;
  length_ = static_cast<size_t>(std::max<ssize_t>(got, 0));
  if (got < 0 && maps_ >= 0) {
    close(maps_);
    maps_ = -1;
  }
  return got > 0;
}

MapAnswer MapReader::next(DescribedMapping* found) {
  // The numbers at the beginning of a line; the name behind them may be of any length.
  char line[160];
  size_t length = 0;
  while (at_ < length_ || fill()) {
    const char letter = piece_[at_++];
    if (letter != '\n') {
      if (length < sizeof line - 1) line[length++] = letter;
      continue;
    }
    line[length] = 0;
    return parse(line, found) ? MapAnswer::kFound : MapAnswer::kUnknown;
  }
  return maps_ < 0 ? MapAnswer::kUnknown : MapAnswer::kNothing;
}

}  // namespace mobius::os
