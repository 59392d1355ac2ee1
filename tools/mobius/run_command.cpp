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
#include "help_texts.h"
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

// Reports an error of the options in one line.
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
    usage_error(
        fmt::format("-n '{}': the number of processes must be a whole number from 1", text));
    return false;
  }
  // A number too large for the type is also too large for the host, whose error names its limit.
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
      fmt::format("--virtual-hosts '{}': must be a whole number from 1 to the number of processes, "
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
      usage_error(fmt::format("--env {}: mobius run sets this variable itself", name));
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
  app.prefix_command();  // the first word that is not an option is the program
  CLI::Option* wanted = app.add_option("-n,--processes", processes)->take_last();
  app.add_option("--bind", binding)->take_last();
  app.add_option("--on-death", on_death)->take_last();
  app.add_option("--virtual-hosts", virtual_hosts)->take_last();
  CLI::Option* hosts = app.add_option("--hosts", options.hosts)->take_last();
  app.add_flag("--tag", options.tag)->disable_flag_override();
  app.add_option("--env", options.environment)->allow_extra_args(false);

  // CLI11 takes the arguments in reverse order.
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
      fmt::print(stderr,
                 "mobius tune: only options are possible, not '{}'; see mobius tune --help\n",
                 options.command[0]);
      return kExitUsage;
    }
    options.command = {program};
  }
  if (options.command.empty()) return usage_error("no program given");
  if (binding == "core") {
    options.binding = Binding::kCore;
  } else if (binding != "none") {
    return usage_error(fmt::format("--bind '{}': must be core or none", binding));
  }
  if (!on_death.empty()) {
    if (on_death != "end" && on_death != "error") {
      return usage_error(fmt::format("--on-death '{}': must be end or error", on_death));
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
  if (wanted->count() == 0) options.processes = 0;  // the number comes from the hosts
  return launch::run_on_hosts(options);
}

}  // namespace mobius::command
