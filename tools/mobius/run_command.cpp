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
#include "job/launch/output/say.h"
#include "job/launch/run.h"

namespace mobius::command {
namespace {

using launch::Binding;
using launch::kExitUsage;
using launch::OutputKind;
using launch::RunOptions;
using launch::say;

// Reports an error of the options in one line.
int usage_error(std::string_view problem) {
  say("{}; see mobius run --help", problem);
  return kExitUsage;
}

// Our options whose value may be the next word.
constexpr std::string_view kTakeValue[] = {"-n",         "--processes", "--bind",
                                           "--on-death", "--env",       "--hosts",
                                           "--stdin",    "--stdout",    "--virtual-hosts"};

// Options of other launchers, and their counterparts here.
struct ForeignOption {
  std::string_view name;
  std::string_view advice;
};
constexpr std::string_view kWriteEnv = "write --env NAME=VALUE";
constexpr std::string_view kWriteHosts = "write --hosts HOST[:N],...";
constexpr std::string_view kWriteBind = "write --bind core or --bind none";
constexpr std::string_view kLeaveOut = "leave it out: there may be more ranks than processors";
constexpr ForeignOption kForeignOptions[] = {
    {"-c", "write -n N"},
    {"-ntasks", "write -n N"},
    {"--ntasks", "write -n N"},
    {"-x", kWriteEnv},
    {"-env", kWriteEnv},
    {"-genv", kWriteEnv},
    {"--export", kWriteEnv},
    {"-H", kWriteHosts},
    {"-f", kWriteHosts},
    {"-w", kWriteHosts},
    {"-host", kWriteHosts},
    {"--host", kWriteHosts},
    {"-hosts", kWriteHosts},
    {"-hostfile", kWriteHosts},
    {"--hostfile", kWriteHosts},
    {"-machinefile", kWriteHosts},
    {"--machinefile", kWriteHosts},
    {"-N", kWriteHosts},
    {"-ppn", kWriteHosts},
    {"-perhost", kWriteHosts},
    {"-npernode", kWriteHosts},
    {"--npernode", kWriteHosts},
    {"-bind-to", kWriteBind},
    {"--bind-to", kWriteBind},
    {"--tag-output", "write --tag"},
    {"-prepend-rank", "write --tag"},
    {"--label", "write --tag"},
    {"-oversubscribe", kLeaveOut},
    {"--oversubscribe", kLeaveOut},
};

// Takes -np, as other launchers do, for -n, and explains other launchers' options. False after a
// message.
bool translate_options(std::vector<std::string>* words) {
  for (size_t i = 0; i < words->size(); ++i) {
    std::string& word = (*words)[i];
    if (!word.starts_with('-') || word == "--") break;  // from here on the program's own
    if (word == "-np" || word == "--np") word = "-n";
    const std::string_view name = std::string_view(word).substr(0, word.find('='));
    for (const ForeignOption& foreign : kForeignOptions) {
      if (name != foreign.name) continue;
      usage_error(
          fmt::format("unknown option {}, as of another launcher; {}", name, foreign.advice));
      return false;
    }
    if (std::ranges::find(kTakeValue, word) != std::end(kTakeValue)) ++i;
  }
  return true;
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

bool parse_streams(const std::string& input, const std::string& output, RunOptions* options) {
  if (output != "line" && output != "pipe") {
    usage_error(fmt::format("--stdout '{}': one of line, pipe", output));
    return false;
  }
  options->output = output == "line" ? OutputKind::kLine : OutputKind::kPipe;
  options->input_rank = -1;
  if (input == "none") return true;
  const char* end = input.data() + input.size();
  const auto [rest, error] = std::from_chars(input.data(), end, options->input_rank);
  if (error == std::errc() && rest == end && options->input_rank >= 0 &&
      options->input_rank < options->processes) {
    return true;
  }
  usage_error(
      fmt::format("--stdin '{}': none, or a rank from 0 to {}", input, options->processes - 1));
  return false;
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
  std::string input = "0";
  std::string output = "line";
  CLI::App app("", "mobius run");
  app.prefix_command();  // the first word that is not an option is the program
  CLI::Option* wanted = app.add_option("-n,--processes", processes)->take_last();
  app.add_option("--bind", binding)->take_last();
  app.add_option("--on-death", on_death)->take_last();
  app.add_option("--virtual-hosts", virtual_hosts)->take_last();
  CLI::Option* hosts = app.add_option("--hosts", options.hosts)->take_last();
  CLI::Option* chosen_input = app.add_option("--stdin", input)->take_last();
  CLI::Option* chosen_output = app.add_option("--stdout", output)->take_last();
  app.add_flag("--tag", options.tag)->disable_flag_override();
  app.add_flag("--keep-fds", options.keep_descriptors)->disable_flag_override();
  app.add_option("--env", options.environment)->allow_extra_args(false);

  // CLI11 takes the arguments in reverse order.
  std::vector<std::string> words(arguments.begin(), arguments.end());
  if (!translate_options(&words)) return kExitUsage;
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", kRunHelp);
    return 0;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string problem = error.what();  // "--name: 1 required ..." but for flags
    if (!problem.starts_with("--")) return usage_error("--tag and --keep-fds take no value");
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
  } else if (std::ranges::find(options.command, ":") != options.command.end()) {
    return usage_error(
        "':' separates programs under other launchers, and mobius run starts one program: start a "
        "script that chooses by $MOBIUS_RANK; if ':' is an argument of the program, write -- "
        "before "
        "the program");
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
    if (!parse_streams(input, output, &options)) return kExitUsage;
    return parse_hosts(virtual_hosts, &options) ? launch::run(options) : kExitUsage;
  }
  if (chosen_input->count() + chosen_output->count() != 0 || options.keep_descriptors) {
    return usage_error(
        "--stdin, --stdout and --keep-fds exclude --hosts, which uses another launcher");
  }
  if (virtual_hosts != "1") return usage_error("--hosts and --virtual-hosts exclude each other");
  if (wanted->count() == 0) options.processes = 0;  // the number comes from the hosts
  return launch::run_on_hosts(options);
}

}  // namespace mobius::command
