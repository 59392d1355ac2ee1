// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The mapping of memory in this process.

#include <mobius/mobius.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace mobius_test {

// The access of an address's page: "rw-p", "rw-s".
inline std::string access_of(const void* address) {
  std::ifstream file("/proc/self/maps");
  for (std::string line; std::getline(file, line);) {
    uintptr_t start = 0;
    uintptr_t end = 0;
    char access[5] = {};
    if (std::sscanf(line.c_str(), "%zx-%zx %4s", &start, &end, access) != 3) continue;
    const auto wanted = reinterpret_cast<uintptr_t>(address);
    if (start <= wanted && wanted < end) return access;
  }
  return "none";
}

// Without local peers the pages are not needed by others, and stay where they are.
inline const char* moved_access() { return mob_host_size() > 1 ? "rw-s" : "rw-p"; }

}  // namespace mobius_test
