// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The options of `mobius run`, and the meaning of its exit codes.

#include <mobius/job.h>

#include <string>
#include <vector>

namespace mobius::launch {

enum class Binding { kNone, kCore };
// The ranks' standard output: a pseudo-terminal, which programs buffer by the line, or a pipe.
enum class OutputKind { kLine, kPipe };

struct RunOptions {
  mob_rank_t processes = 1;
  Binding binding = Binding::kNone;
  bool tag = false;
  OutputKind output = OutputKind::kLine;
  mob_rank_t input_rank = 0;      // the rank that gets standard input; -1: none
  bool keep_descriptors = false;  // every rank gets the descriptors from 3 on that we inherited
  int32_t virtual_hosts = 1;
  std::string hosts;                     // where to start, by names; empty: on this host
  std::vector<std::string> environment;  // NAME=VALUE; of two with one name the later wins
  std::vector<std::string> command;      // program and its arguments
};

// Besides 0 and the exit code of the first rank that failed. The last three are those of shells.
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;
inline constexpr int kExitSignal = 128;  // plus the signal's number

}  // namespace mobius::launch
