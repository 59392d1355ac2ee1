// SPDX-License-Identifier: BSD-3-Clause
//
// The native command `mobius`. It does only the work of its subcommand, because starting a job
// takes milliseconds.

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>
#include <system_error>

#include "commands.h"

namespace {

constexpr const char* kHelp = R"(mobius - one-sided communication

Usage: mobius COMMAND [ARGUMENTS]

  run       start a program as a job of several processes on this host
  mpirun    start an MPI program whose windows are Möbius'
  info      what this host offers, and every setting with its value
  tune      measure what suits this host, and print settings for it
  explain   print how the scheduler issues an epoch's operations
  bench     measure what one-sided communication costs here
  report    measure and write the HTML report
  compare   compare two results
  help      this text, or that of a command: mobius help run

mobius --version prints the version, mobius --help this text. Each command explains itself with --help.
)";

constexpr int kUsage = 2;
constexpr int kReaderGone = 128 + SIGPIPE;  // the exit code of a program that SIGPIPE has ended

int dispatch(std::span<char*> arguments) {
  if (arguments.empty()) {
    std::fputs(kHelp, stderr);
    return kUsage;
  }
  const std::string_view name = arguments[0];
  std::span<char*> rest = arguments.subspan(1);
  if (name == "run") return mobius::command::run_command(rest);
  if (name == "mpirun") return mobius::command::mpirun_command(rest);
  if (name == "info") return mobius::command::info_command(rest);
  if (name == "tune") return mobius::command::tune_command(rest);
  if (name == "explain") return mobius::command::explain_command(rest);
  for (const char* subcommand : {"bench", "report", "compare"}) {
    if (name == subcommand) return mobius::command::instrument_command(subcommand, rest);
  }
  if (name == "--version" || name == "version") {
    std::printf("mobius %s\n", MOBIUS_COMMAND_VERSION);
    return 0;
  }
  if (name == "help" || name == "--help" || name == "-h") {
    const std::string_view topic = rest.empty() ? "" : rest[0];
    if (topic.empty() || topic == "help" || topic == "--help" || topic == "-h") {
      std::fputs(kHelp, stdout);
      return 0;
    }
    static char help[] = "--help";
    char* of_command[] = {rest[0], help};
    return dispatch(of_command);
  }
  for (const char* subcommand : {"build", "test", "install", "lint", "setup"}) {
    if (name != subcommand) continue;
    std::fprintf(stderr, "mobius: %s is for a checkout: call ./mobius %s there; see mobius help\n",
                 subcommand, subcommand);
    return kUsage;
  }
  std::fprintf(stderr, "mobius: there is no command '%s'; see mobius help\n", arguments[0]);
  return kUsage;
}

// Output that could not be written makes the whole command a failure.
int output_failed(int error) {
  if (error == EPIPE) return kReaderGone;
  std::fprintf(stderr, "mobius: writing standard output failed: %s\n", std::strerror(error));
  return 1;
}

// Writes buffered output; some file systems report errors only on close. If the caller started us
// with standard output closed, closing it fails with EBADF, which is no error.
int finish(int exit_code) {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return output_failed(errno != 0 ? errno : EIO);
  }
  if (std::fclose(stdout) != 0 && errno != EBADF) return output_failed(errno);
  return exit_code;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return finish(
        dispatch(std::span(arguments, static_cast<size_t>(count)).subspan(count > 0 ? 1 : 0)));
  } catch (const std::system_error& problem) {  // fmt::print throws this, too
    if (std::ferror(stdout) != 0) return output_failed(problem.code().value());
    std::fprintf(stderr, "mobius: %s\n", problem.what());
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "mobius: %s\n", problem.what());
  }
  return 1;
}
