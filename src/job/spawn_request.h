// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a process asks for that spawns others: the program as it is to be executed. The text lies in
// the segment, behind a SpawnMemory (control.h), for the process that starts them.

#include <mobius/status.h>

#include <string>
#include <string_view>
#include <vector>

namespace mobius::job {

struct SpawnRequest {
  std::string path;                      // absolute
  std::string folder;                    // to start it in, absolute
  std::vector<std::string> arguments;    // from argument 0 on
  std::vector<std::string> environment;  // NAME=VALUE, without MOBIUS_JOB and MOBIUS_RANK

  std::string encoded() const;
  // False if the text is no request.
  static bool decode(std::string_view text, SpawnRequest* request);
};

// Finds a program as a shell does, from the folder that this process is in. Empty, with the error
// in `*problem`, if there is none that may be executed.
std::string find_executable(const std::string& name, const char* search_path, int* problem);

}  // namespace mobius::job
