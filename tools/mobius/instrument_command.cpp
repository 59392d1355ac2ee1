// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "commands.h"

namespace mobius::command {

int instrument_command(const char* subcommand, std::span<char*> arguments) {
  // Found relative to this program, not by a path fixed at build time: an installed tree may be
  // moved.
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string instrument = own.parent_path().parent_path() / "libexec/mobius/instrument";
  std::vector<char*> call;
  call.push_back(const_cast<char*>(instrument.c_str()));
  call.push_back(const_cast<char*>(subcommand));
  call.insert(call.end(), arguments.begin(), arguments.end());
  call.push_back(nullptr);
  execv(call[0], call.data());
  if (errno == ENOENT && access(call[0], F_OK) != 0) {
    std::fprintf(stderr,
                 "mobius %s: the instrument is not installed (%s); run ./mobius %s from the "
                 "checkout, or install with ./mobius install\n",
                 subcommand, call[0], subcommand);
    return 127;
  }
  std::fprintf(stderr, "mobius %s: %s cannot be started: %s\n", subcommand, call[0],
               std::strerror(errno));
  return 126;
}

}  // namespace mobius::command
