// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The launcher's own lines, written with one write() so that they do not mix with others.

#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace mobius::launch {

inline constexpr const char* kPrefix = "mobius run: ";

template <typename... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string line =
      kPrefix + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  // If standard error is gone, there is no place to report it.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace mobius::launch
