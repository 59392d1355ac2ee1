// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// `mobius run --hosts`: the processes of other hosts are started by a launcher that is installed
// and speaks PMIx; libmobius joins them to one job. We do not start processes on other hosts
// ourselves: how that is done is a site's own business.

#include <string>
#include <vector>

#include "base/settings.h"
#include "job/launch/environment.h"
#include "job/launch/options.h"

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

// "a:2,b" as hosts with the number of processes for each, which are `processes` together, or as
// many as they say if that is 0. Hosts without a number share what is left as evenly as can be, the
// first ones getting more. Empty, and `*problem` set, if that is not possible.
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

// Becomes the launcher; returns an exit code if that is not possible.
int run_on_hosts(const RunOptions& options);

}  // namespace mobius::launch
