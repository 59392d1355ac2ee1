// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace mobius::base {
namespace {

// Atomic because ranks that are threads of one process all set it.
std::atomic<LogLevel> threshold = LogLevel::kWarn;
std::atomic<int> own_rank = -1;

}  // namespace

void set_log(LogLevel level, int rank) {
  threshold.store(level, std::memory_order_relaxed);
  own_rank.store(rank, std::memory_order_relaxed);
}

void log(LogLevel level, const char* format, ...) {
  if (level > threshold.load(std::memory_order_relaxed)) return;
  const int rank = own_rank.load(std::memory_order_relaxed);
  static constexpr const char* kWords[] = {"error", "warning", "info", "debug"};
  char line[1024];
  const int limit = static_cast<int>(sizeof line) - 1;  // space for the newline
  int length =
      rank >= 0 ? std::snprintf(line, sizeof line, "mobius: rank %d: %s: ", rank,
                                kWords[static_cast<int>(level)])
                : std::snprintf(line, sizeof line, "mobius: %s: ", kWords[static_cast<int>(level)]);
  va_list arguments;
  va_start(arguments, format);
  length += std::vsnprintf(line + length, static_cast<size_t>(limit - length), format, arguments);
  va_end(arguments);
  length = std::min(length, limit - 1);
  line[length] = '\n';
  // An error is ignored: there is no other place to report it.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, line, static_cast<size_t>(length) + 1);
}

}  // namespace mobius::base
