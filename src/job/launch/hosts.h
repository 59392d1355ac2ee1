// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// `mobius run --hosts` lets an installed launcher that speaks PMIx start the processes, and
// libmobius joins them to one job. It does not start processes on other hosts itself, because each
// site has its own way to do that.

#include <string>
#include <vector>

#include "base/settings.h"
#include "job/launch/options.h"
#include "job/launch/process/environment.h"

namespace mobius::launch {

// A launcher of another project that starts jobs across hosts.
struct HostLauncher {
  enum class Kind { kNone, kPrterun, kOpenMpi };

  Kind kind = Kind::kNone;
  std::string path;
  std::string problem;  // kNone: what to install
};

// Looks for one in PATH.
HostLauncher find_host_launcher(const char* search_path);

// Parses "a:2,b" and distributes `processes` processes, or as many as the hosts say if that is 0.
// Hosts without a number share the rest evenly, the first ones getting one more. Empty, with
// `*problem` set, if that is impossible.
struct HostShare {
  std::string name;
  mob_rank_t processes;
};
std::vector<HostShare> share_out(const std::string& hosts, mob_rank_t processes,
                                 std::string* problem);

// The words of the launcher's command line.
std::vector<std::string> host_command(const HostLauncher& launcher,
                                      const std::vector<HostShare>& shares,
                                      const RunOptions& options, const Environment& environment,
                                      base::OnDeath on_death);

// Executes the launcher in place of this process; returns an exit code if that fails.
int run_on_hosts(const RunOptions& options);

}  // namespace mobius::launch
