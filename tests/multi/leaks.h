// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The resources of the machine that a process holds, to compare before and after.

#include <mobius/mobius.h>

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace mobius_test {

// The first access to other ranks' memory, and threads that come and go, may add so many for good;
// far fewer than one for each repetition of a leak test.
inline constexpr size_t kMappingsOfOthers = 40;

// AddressSanitizer keeps freed memory and maps more, so the number says nothing there.
inline size_t mappings() {
#ifdef __SANITIZE_ADDRESS__
  return 0;
#endif
  std::ifstream file("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(file, line);) ++count;
  return count;
}

inline size_t descriptors() {
  using Folder = std::filesystem::directory_iterator;
  return static_cast<size_t>(std::distance(Folder("/proc/self/fd"), Folder()));
}

// Waiting may add so many descriptors: a process that waits for long watches the others, each once.
inline size_t watch_descriptors() { return static_cast<size_t>(mob_size()); }

// Memory that the job shares: the pages of its segment, which every process maps.
inline size_t shared_bytes() {
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    const size_t start = line.find("/memfd:");
    if (start == std::string::npos) continue;
    // The descriptor of the mapping: the one that is the same file.
    const std::string name = line.substr(start, line.find(' ', start) - start);
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
      if (error || !target.starts_with(name)) continue;
      struct stat about{};
      if (stat(entry.path().c_str(), &about) == 0) {
        return static_cast<size_t>(about.st_blocks) * 512;
      }
    }
  }
  return 0;
}

}  // namespace mobius_test
