// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The subcommands of `mobius`. Each takes the arguments after its name and returns an exit code.

#include <span>
#include <string>

namespace mobius::command {

// If `program` is not empty, the job runs it, and the arguments may be options only.
int run_command(std::span<char*> arguments, const std::string& program = "");
int mpirun_command(std::span<char*> arguments);
int info_command(std::span<char*> arguments);
int tune_command(std::span<char*> arguments);
int explain_command(std::span<char*> arguments);
// Starts the Python program, installed beside this one, that does `bench`, `report` and `compare`.
int instrument_command(const char* subcommand, std::span<char*> arguments);

}  // namespace mobius::command
