// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/settings.h"
#include "commands.h"
#include "help_texts.h"
#include "transport/shm/copy.h"

namespace mobius::command {
namespace {

// The program that measures a link is beside this one, or in libexec of an installed tree.
std::string find_link_program() {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = own.parent_path();
  for (const auto& place : {folder / "tune_link", folder / "../libexec/mobius/tune_link"}) {
    if (std::filesystem::exists(place, error)) return place.lexically_normal().string();
  }
  return "";
}

int tune_link(std::span<char*> options) {
  const std::string program = find_link_program();
  if (program.empty()) {
    fmt::print(
        stderr,
        "mobius tune: the program tune_link is missing beside this one; call ./mobius build\n");
    return 1;
  }
  return run_command(options, program);
}

// A threshold that no copy reaches is printed as the largest value of the setting.
std::string threshold_text(uint64_t bytes) {
  constexpr uint64_t kNever = uint64_t{64} << 40;
  return base::setting_bytes_text(bytes < kNever ? bytes : kNever);
}

}  // namespace

int tune_command(std::span<char*> arguments) {
  if (arguments.size() == 1 &&
      (std::string_view(arguments[0]) == "--help" || std::string_view(arguments[0]) == "-h")) {
    fmt::print("{}", kTuneHelp);
    return 0;
  }
  if (!arguments.empty() && arguments[0][0] != '-') {
    fmt::print(stderr, "mobius tune: only options are possible, not '{}'; see mobius tune --help\n",
               arguments[0]);
    return 2;
  }
  if (!arguments.empty()) return tune_link(arguments);
  const transport::CopyTuning tuning = transport::measure_copy_tuning();
  fmt::print("export MOBIUS_COPY_STREAM_BYTES={}\n", threshold_text(tuning.stream_from_bytes));
  fmt::print("export MOBIUS_COPY_REP_BYTES={}\n", threshold_text(tuning.rep_movsb_from_bytes));
  return 0;
}

}  // namespace mobius::command
