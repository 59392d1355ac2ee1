// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Messages for the person who runs the job: one line each on standard error, written with one
// write() so that lines of several processes do not mix.

namespace mobius::base {

enum class LogLevel { kError, kWarn, kInfo, kDebug };  // order of MOBIUS_LOG's choices

// What is less severe than `level` is dropped; `rank` < 0 leaves the rank out of the line.
// Call before other threads log.
void set_log(LogLevel level, int rank);

[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...);

}  // namespace mobius::base
