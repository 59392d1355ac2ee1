// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/mobius.h>

#include <string>

namespace random_program {

// From now on failures say how to repeat this; and the program ends if it hangs in it.
void set_replay(const std::string& command);

// Ends the job with what went wrong and the command that repeats it.
[[noreturn]] void report(const std::string& what);

// Ends the job if a call failed.
void check(mob_status_t status, const char* call);

}  // namespace random_program
