// SPDX-License-Identifier: BSD-3-Clause
#include "job/launch/hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "job/bootstrap/local_protocol.h"
#include "job/launch/output/say.h"
#include "job/launch/process/program.h"

namespace mobius::launch {
namespace {

// On Debian and others `mpirun` may belong to any of several MPIs.
constexpr const char* kOpenMpiNames[] = {"mpirun.openmpi", "mpirun"};

// Whether an mpirun is Open MPI's: up to version 4 it is a link to orterun, later a program in the
// folder of ompi_info.
bool is_open_mpi(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  if (real == nullptr) return false;
  const std::string resolved = real;
  std::free(real);
  const size_t slash = resolved.rfind('/');
  const std::string name = resolved.substr(slash + 1);
  if (name == "orterun" || name == "prterun" || name == "mpirun.openmpi") return true;
  const std::string tool = resolved.substr(0, slash) + "/ompi_info";
  return name == "mpirun" && access(tool.c_str(), X_OK) == 0;
}

bool parse_share(std::string_view text, HostShare* share) {
  const size_t colon = text.rfind(':');
  share->name = text.substr(0, colon);
  share->processes = 0;
  if (share->name.empty() || share->name.starts_with('-')) return false;
  if (share->name.find_first_of(": \t") != std::string::npos) return false;
  if (colon == std::string_view::npos) return true;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, share->processes);
  return error == std::errc() && rest == end && share->processes >= 1;
}

}  // namespace

HostLauncher find_host_launcher(const char* search_path) {
  if (Program found = find_program("prterun", search_path); found.exit_code == 0) {
    return {HostLauncher::Kind::kPrterun, found.path, {}};
  }
  for (const char* name : kOpenMpiNames) {
    if (Program found = find_program(name, search_path);
        found.exit_code == 0 && is_open_mpi(found.path)) {
      return {HostLauncher::Kind::kOpenMpi, found.path, {}};
    }
  }
  return {HostLauncher::Kind::kNone,
          {},
          "no launcher for several hosts was found in PATH: install Open MPI (Debian: apt-get "
          "install openmpi-bin) or PRRTE (prterun) on all of them; under Slurm, `srun --mpi=pmix` "
          "starts the program without mobius run"};
}

std::vector<HostShare> share_out(const std::string& hosts, mob_rank_t processes,
                                 std::string* problem) {
  std::vector<HostShare> shares;
  std::string_view rest = hosts;
  int64_t given = 0;
  mob_rank_t open = 0;
  while (true) {
    const size_t comma = rest.find(',');
    HostShare share;
    if (!parse_share(rest.substr(0, comma), &share)) {
      *problem = fmt::format("'{}' is no host; write NAME or NAME:PROCESSES, separated by commas",
                             rest.substr(0, comma));
      return {};
    }
    given += share.processes;
    if (share.processes == 0) ++open;
    shares.push_back(std::move(share));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (processes == 0) {
    if (open == 0) return shares;
    *problem =
        "say with -n how many processes there shall be, or with each host, as NAME:PROCESSES";
    return {};
  }
  const int64_t left = processes - given;
  if (left < open || (open == 0 && left != 0)) {
    *problem = open == 0
                   ? fmt::format("the hosts take {} processes together, not {}", given, processes)
                   : fmt::format("{} processes are too few for {} hosts", processes, shares.size());
    return {};
  }
  int64_t place = 0;
  for (HostShare& share : shares) {
    if (share.processes != 0) continue;
    share.processes = static_cast<mob_rank_t>(left / open + (place < left % open ? 1 : 0));
    ++place;
  }
  return shares;
}

std::vector<std::string> host_command(const HostLauncher& launcher,
                                      const std::vector<HostShare>& shares,
                                      const RunOptions& options, const Environment& environment,
                                      base::OnDeath on_death) {
  std::string list;
  for (const HostShare& share : shares) {
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", share.name, share.processes);
  }
  const bool prterun = launcher.kind == HostLauncher::Kind::kPrterun;
  std::vector<std::string> words = {launcher.path, "--host", list, "-n",
                                    std::to_string(options.processes)};
  // Ranks in blocks, as `mobius run` numbers them; several may share a processor.
  for (const char* word : {"--map-by", prterun ? "slot:OVERSUBSCRIBE" : "slot", "--bind-to",
                           options.binding == Binding::kCore ? "core" : "none"}) {
    words.emplace_back(word);
  }
  if (!prterun) words.emplace_back("--oversubscribe");
  if (options.tag) words.emplace_back(prterun ? "--output=tag" : "--tag-output");
  // By default the launcher ends all ranks when one dies.
  if (on_death == base::OnDeath::kError && prterun) {
    words.insert(words.end(), {"--runtime-options", "recoverable"});
  } else if (on_death == base::OnDeath::kError) {
    words.emplace_back("--enable-recovery");
  }
  // The settings of the ranks are those of this process, as on one host.
  for (const char* const* entry = environment.common(); *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    const bool ours = text.starts_with("MOBIUS_");
    const bool asked = std::ranges::any_of(options.environment, [&](const std::string& change) {
      return change.starts_with(name + '=');
    });
    if (!ours && !asked && name != "LD_LIBRARY_PATH") continue;
    words.emplace_back("-x");
    words.push_back(name);
  }
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

int run_on_hosts(const RunOptions& options) {
  std::vector<std::string> changes = options.environment;
  // Processes that ranks spawn are marked, too.
  if (options.tag) changes.emplace_back("MOBIUS_TAG=1");
  const Environment environment(environ, changes);
  base::Settings settings;
  if (settings.load(environment.common()) != MOB_OK) {
    say("{}", mob_last_error());
    return kExitUsage;
  }
  std::string problem;
  const std::vector<HostShare> shares = share_out(options.hosts, options.processes, &problem);
  if (shares.empty()) {
    say("--hosts {}: {}", options.hosts, problem);
    return kExitUsage;
  }
  const HostLauncher launcher = find_host_launcher(environment.get("PATH"));
  if (launcher.kind == HostLauncher::Kind::kNone) {
    say("--hosts {}: {}", options.hosts, launcher.problem);
    return kExitUsage;
  }
  for (const std::string& warning : settings.unknown()) say("warning: {}", warning);
  RunOptions settled = options;
  settled.processes = 0;
  for (const HostShare& share : shares) settled.processes += share.processes;
  std::vector<std::string> words =
      host_command(launcher, shares, settled, environment, settings.on_death());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execve(launcher.path.c_str(), arguments.data(), const_cast<char* const*>(environment.common()));
  say("{} cannot be started: {}", launcher.path, std::strerror(errno));
  return kExitNotExecutable;
}

}  // namespace mobius::launch
