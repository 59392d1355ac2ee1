// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/mobius.h>

#include <string>

namespace random_program {

// From now on failures tell how to repeat the program, and the process ends if it hangs.
void set_replay(const std::string& command);

// Ends the job with the failure and the command that repeats it.
[[noreturn]] void report(const std::string& what);

// Ends the job if a call failed.
void check(mob_status_t status, const char* call);

}  // namespace random_program
