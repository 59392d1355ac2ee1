// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"
#include "job/bootstrap/local_protocol.h"
#include "job/launch/hosts.h"
#include "job/launch/run.h"
#include "job/launch/say.h"

namespace mobius::command {
namespace {

using launch::Binding;
using launch::kExitUsage;
using launch::RunOptions;
using launch::say;

constexpr const char* kRunHelp = R"(Starts N processes of a program as one job.

Usage: mobius run [-n N] [--bind core|none] [--on-death end|error] [--tag]
                  [--hosts HOST[:N],... | --virtual-hosts K]
                  [--env NAME=VALUE]... PROG [ARGS...]

  -n, --processes N      how many processes to start (default 1, or as many
                         as --hosts says)
      --bind core|none   core: rank i stays on the i-th of the processors that
                         the launcher may use, from the first again when there
                         are more ranks; none: left to the system (default)
      --on-death end|error
                         when a rank dies, end the job (default) or let the
                         others go on, whose calls that need it then fail; the
                         setting MOBIUS_ON_DEATH
      --hosts HOST[:N],...
                         where to start, N processes on each or as evenly as can
                         be (default: all on this host); by prterun or by Open
                         MPI's mpirun, one of which must be installed: output,
                         signals and exit codes are theirs
      --virtual-hosts K  the ranks, in K blocks, share no memory with those of
                         other blocks and reach them through the network, as if
                         they were on K hosts: to try and test programs
      --tag              start each line of output with "[RANK] "
      --env NAME=VALUE   set a variable for the ranks; may be repeated
  -h, --help             this text
      --                 ends the options; all after PROG belongs to it anyway

Output of the ranks is passed on by whole lines; standard input goes to rank 0.
SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, stop and continue
reach every rank, unless they were ignored when mobius run was started (nohup).
A second SIGINT or SIGTERM kills the ranks, and so does the first when they have
not ended 5 seconds later. SIGHUP or SIGQUIT that ends one rank ends the job:
for that the others have 5 seconds, too. Where all handle it, the job goes on.

Examples:
  mobius run -n 4 ./program --size 100   four processes; --size belongs to them
  mobius run -n 2 --bind core ./program  rank i on the i-th processor allowed
  mobius run -n 8 --tag hostname         output lines start with "[RANK] "
  mobius run -n 8 --hosts a,b ./program  four processes on each of two hosts
  mobius run -n 2 --env MOBIUS_LOG=info python3 program.py

Exit codes:
  0      every rank exited with 0
  N      the first rank that failed exited with N; the others were then ended,
         or went on (--on-death error)
  128+S  the first rank that failed was killed by signal S, or S, sent to
         mobius run, ended the job
  1      a rank left without mob_finalize(), or could not be started
  2      the command line, a MOBIUS_* setting or the number of processes is not
         possible; nothing was started
  126    the program may not be executed
  127    the program was not found
)";

// Says what is wrong with the options, in one line.
int usage_error(std::string_view problem) {
  say("{}; see mobius run --help", problem);
  return kExitUsage;
}

bool parse_processes(const std::string& text, mob_rank_t* processes) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool too_large = error == std::errc::result_out_of_range && text[0] != '-';
  const bool number = rest == end && (too_large || (error == std::errc() && value >= 1));
  if (!number) {
    usage_error(fmt::format("-n '{}': the number of processes is a whole number from 1", text));
    return false;
  }
  // What is too large for the type is far too large for the host, which says how many it allows.
  *processes = too_large ? INT32_MAX : static_cast<mob_rank_t>(std::min<int64_t>(value, INT32_MAX));
  return true;
}

bool parse_hosts(const std::string& text, RunOptions* options) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, options->virtual_hosts);
  if (error == std::errc() && rest == end && options->virtual_hosts >= 1 &&
      options->virtual_hosts <= options->processes) {
    return true;
  }
  usage_error(
      fmt::format("--virtual-hosts '{}': a whole number from 1 to the number of processes, "
                  "{}",
                  text, options->processes));
  return false;
}

bool check_environment(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) {
      usage_error(fmt::format("--env '{}': write NAME=VALUE", entry));
      return false;
    }
    const std::string_view name = std::string_view(entry).substr(0, equals);
    if (name == job::kJobVariable || name == job::kRankVariable) {
      usage_error(fmt::format("--env {}: set by mobius run itself", name));
      return false;
    }
  }
  return true;
}

}  // namespace

int run_command(std::span<char*> arguments, const std::string& program) {
  RunOptions options;
  std::string processes = "1";
  std::string binding = "none";
  std::string on_death;
  std::string virtual_hosts = "1";
  CLI::App app("", "mobius run");
  app.prefix_command();  // the first word that is no option of ours is the program
  CLI::Option* wanted = app.add_option("-n,--processes", processes)->take_last();
  app.add_option("--bind", binding)->take_last();
  app.add_option("--on-death", on_death)->take_last();
  app.add_option("--virtual-hosts", virtual_hosts)->take_last();
  CLI::Option* hosts = app.add_option("--hosts", options.hosts)->take_last();
  app.add_flag("--tag", options.tag)->disable_flag_override();
  app.add_option("--env", options.environment)->allow_extra_args(false);

  // CLI11 takes the arguments last first.
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", kRunHelp);
    return 0;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string problem = error.what();  // "--name: 1 required ..." but for flags
    if (!problem.starts_with("--")) return usage_error("--tag takes no value");
    const std::string option = problem.substr(0, problem.find(':'));
    return usage_error((option == "--processes" ? "-n" : option) + " needs a value");
  } catch (const CLI::ParseError& error) {
    std::string problem = error.what();
    problem.resize(std::min(problem.find('\n'), problem.size()));
    return usage_error(problem);
  }

  options.command = app.remaining();
  if (!options.command.empty() && options.command[0] == "--") {
    options.command.erase(options.command.begin());
  } else if (!options.command.empty() && options.command[0].starts_with('-')) {
    return usage_error(fmt::format("unknown option {}", options.command[0]));
  }
  if (!program.empty()) {
    if (!options.command.empty()) {
      fmt::print(stderr, "mobius tune: takes options only, not '{}'; see mobius tune --help\n",
                 options.command[0]);
      return kExitUsage;
    }
    options.command = {program};
  }
  if (options.command.empty()) return usage_error("no program given");
  if (binding == "core") {
    options.binding = Binding::kCore;
  } else if (binding != "none") {
    return usage_error(fmt::format("--bind '{}': one of core, none", binding));
  }
  if (!on_death.empty()) {
    if (on_death != "end" && on_death != "error") {
      return usage_error(fmt::format("--on-death '{}': one of end, error", on_death));
    }
    options.environment.push_back("MOBIUS_ON_DEATH=" + on_death);
  }
  if (!parse_processes(processes, &options.processes) || !check_environment(options.environment)) {
    return kExitUsage;
  }
  if (hosts->count() == 0) {
    return parse_hosts(virtual_hosts, &options) ? launch::run(options) : kExitUsage;
  }
  if (virtual_hosts != "1") return usage_error("--hosts and --virtual-hosts exclude each other");
  if (wanted->count() == 0) options.processes = 0;  // as many as the hosts say
  return launch::run_on_hosts(options);
}

}  // namespace mobius::command
