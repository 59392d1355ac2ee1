// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace mobius::os {

// One mapping of this process's address space.
struct Mapping {
  uintptr_t first;
  uintptr_t end;
  char access[5];    // "rw-p"
  const char* line;  // the kernel's whole line, with the name at its end
};

// Calls `look(mapping)` in the order of addresses until it returns false. Returns false if
// /proc/thread-self/maps cannot be read.
template <typename Look>
bool for_each_mapping(Look look) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(
      std::fopen("/proc/thread-self/maps", "re"), &std::fclose);
  if (maps == nullptr) return false;
  char* line = nullptr;
  size_t room = 0;
  bool goes_on = true;
  while (goes_on && getline(&line, &room, maps.get()) > 0) {
    Mapping mapping{};
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &mapping.first, &mapping.end,
                    mapping.access) != 3) {
      continue;
    }
    mapping.line = line;
    goes_on = look(mapping);
  }
  std::free(line);
  return true;
}

}  // namespace mobius::os
