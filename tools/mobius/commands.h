// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The subcommands of `mobius`. Each gets the arguments after its own name and returns an exit code.

#include <span>
#include <string>

namespace mobius::command {

// `program`, if it is not empty, is what the options start, and none may follow them.
int run_command(std::span<char*> arguments, const std::string& program = "");
int mpirun_command(std::span<char*> arguments);
int info_command(std::span<char*> arguments);
int tune_command(std::span<char*> arguments);
int explain_command(std::span<char*> arguments);
// `bench`, `report` and `compare` are a Python program that is installed beside this one.
int instrument_command(const char* subcommand, std::span<char*> arguments);

}  // namespace mobius::command
