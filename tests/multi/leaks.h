// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a process holds of the machine, to compare before and after.

#include <mobius/mobius.h>

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace mobius_test {

// What a first look at others' memory, and threads that come and go, may add for good; far less
// than one for each repetition of a test of leaks.
inline constexpr size_t kMappingsOfOthers = 40;

// AddressSanitizer keeps what was freed, and maps more for it: nothing to learn there.
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

// Descriptors that may be added by waiting: one who waits long watches the others, each once.
inline size_t watch_descriptors() { return static_cast<size_t>(mob_size()); }

// Memory that the job shares: the pages of its segment, which every process maps.
inline size_t shared_bytes() {
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    const size_t start = line.find("/memfd:");
    if (start == std::string::npos) continue;
    // The descriptor behind the mapping: the one that is the same file.
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
