// SPDX-License-Identifier: BSD-3-Clause
#include "os/file/small_file.h"

#include <cstdio>

namespace mobius::os {

std::string read_small_file(const std::string& path) {
  std::string text;
  if (std::FILE* file = std::fopen(path.c_str(), "re")) {
    char buffer[4096];
    size_t got = 0;
    while ((got = std::fread(buffer, 1, sizeof buffer, file)) > 0) text.append(buffer, got);
    std::fclose(file);
  }
  return text;
}

}  // namespace mobius::os
