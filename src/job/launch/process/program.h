// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Finding the program to start as a shell does, once, before anything is started.

#include <string>

namespace mobius::launch {

struct Program {
  std::string path;
  int exit_code = 0;    // not 0: cannot be started, because of `problem`
  std::string problem;  // one line for the user
};

// `search_path` is the PATH to look in for a name without slash; null means the system's default.
Program find_program(const std::string& name, const char* search_path);

}  // namespace mobius::launch
