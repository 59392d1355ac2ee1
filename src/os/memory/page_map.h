// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The kernel's word about each page of a range.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "os/memory/pages.h"

namespace mobius::os {

inline constexpr uint64_t kPagePresent = uint64_t{1} << 63;
inline constexpr uint64_t kPageSwapped = uint64_t{1} << 62;
inline constexpr uint64_t kPageOfFile = uint64_t{1} << 61;

// Calls `each(first, bytes)` for ranges of pages, in order, that contain all those whose word
// `is_wanted`; for all pages where the kernel does not tell. Does not allocate.
template <typename Wanted, typename Each>
void for_pages(uintptr_t start, size_t bytes, Wanted is_wanted, Each each) {
  constexpr size_t kEntries = 4096;
  const int map = open("/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);
  const size_t page = page_bytes();
  uint64_t entries[kEntries];
  for (size_t done = 0; done < bytes;) {
    const size_t asked = std::min(kEntries, (bytes - done) / page);
    const auto at = static_cast<off_t>((start + done) / page * sizeof *entries);
    const ssize_t got = map < 0 ? -1 : pread(map, entries, asked * sizeof *entries, at);
    if (got <= 0) {
      each(start + done, bytes - done);
      break;
    }
    const size_t count = static_cast<size_t>(got) / sizeof *entries;
    for (size_t i = 0; i < count;) {
      size_t end = i + 1;
      while (end < count && is_wanted(entries[end]) == is_wanted(entries[i])) ++end;
      if (is_wanted(entries[i])) each(start + done + i * page, (end - i) * page);
      i = end;
    }
    done += count * page;
  }
  if (map >= 0) close(map);
}

}  // namespace mobius::os
