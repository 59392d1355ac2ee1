// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Messages for the user who runs the job: one line each on standard error. Each line is one
// write(), so that lines of several processes do not mix.

namespace mobius::base {

enum class LogLevel { kError, kWarn, kInfo, kDebug };  // in the order of MOBIUS_LOG's choices

// Drops messages less severe than `level`. A negative `rank` leaves the rank out of the lines. Call
// it before other threads log.
void set_log(LogLevel level, int rank);

[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...);

}  // namespace mobius::base
