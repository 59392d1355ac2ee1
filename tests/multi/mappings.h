// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How memory of this process is mapped.

#include <mobius/mobius.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace mobius_test {

// How the page of an address is mapped: "rw-p", "rw-s".
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

// Alone, nobody else needs the pages, and they stay where they are.
inline const char* moved_access() { return mob_host_size() > 1 ? "rw-s" : "rw-p"; }

}  // namespace mobius_test
