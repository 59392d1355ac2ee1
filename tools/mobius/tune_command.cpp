// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "commands.h"
#include "transport/shm/copy.h"

namespace mobius::command {
namespace {

constexpr const char* kHelp =
    R"help(Measures from which sizes on this host's copies should work differently.

Usage: mobius tune

Prints the settings to use, as lines for a shell:

  eval "$(mobius tune)"

Takes less than a second and 32 MiB of memory. Measure on a quiet host, and on
each kind of host that you use.

Exit codes: 0; 2 for a wrong command line.
)help";

// A threshold that no copy reaches is written as the largest value that the setting takes.
std::string threshold_text(uint64_t bytes) {
  constexpr uint64_t kNever = uint64_t{64} << 40;
  return base::setting_bytes_text(bytes < kNever ? bytes : kNever);
}

}  // namespace

int tune_command(std::span<char*> arguments) {
  if (arguments.size() == 1 &&
      (std::string_view(arguments[0]) == "--help" || std::string_view(arguments[0]) == "-h")) {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (!arguments.empty()) {
    fmt::print(stderr, "mobius tune: takes no arguments; see mobius tune --help\n");
    return 2;
  }
  const transport::CopyTuning tuning = transport::measure_copy_tuning();
  fmt::print("export MOBIUS_COPY_STREAM_BYTES={}\n", threshold_text(tuning.stream_from_bytes));
  fmt::print("export MOBIUS_COPY_REP_BYTES={}\n", threshold_text(tuning.rep_movsb_from_bytes));
  return 0;
}

}  // namespace mobius::command
