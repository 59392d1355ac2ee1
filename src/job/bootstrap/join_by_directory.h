// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Joins processes that a foreign launcher started: with nothing but a directory of published values
// they find out which of them are on one host, and get the segment of their host.
//
// A host is a set of processes that can share memory, which is found out by trying. Each process
// asks the segment servers (segment_server.h) of the lower ranks that run under the same kernel,
// user and network namespace (os/process/identity.h) to admit it. The first server that does is
// that of its host. If none does, the process is the first of a host and serves others. So host
// names do not matter, and two containers of one machine that cannot reach each other are two
// hosts.

#include <mobius/job.h>

#include <span>
#include <vector>

#include "job/bootstrap/directory.h"
#include "job/bootstrap/segment_server.h"
#include "os/file/interfaces.h"

namespace mobius::job {

struct JoinRequest {
  mob_rank_t rank;
  mob_rank_t size;
  // The ranks to try, in ascending order; the own rank may be among them.
  std::span<const mob_rank_t> neighbours;
  unsigned limit_s;  // longest wait for other processes at each step
  // Where other hosts may reach this one; empty: nothing is to be concluded from that.
  std::vector<os::Contact> contacts{};
  // What all know already, or null: rank 0 makes the job's secret.
  const Secret* secret = nullptr;
};

struct Membership {
  int segment = -1;            // of this host; owned by the caller
  bool pid_is_shared = false;  // local peers see this process under the id it has for itself
  Secret secret{};             // known only to processes of the job
};

// Collective over the job. Publishes the keys "contact", "secret", "host" and, from the first
// process of each host, "networks" in the directory.
mob_status_t join_by_directory(Directory& directory, const JoinRequest& request,
                               Membership* membership);

// The contacts of a host, given its first process.
mob_status_t fetch_contacts(Directory& directory, mob_rank_t first,
                            std::vector<os::Contact>* contacts);

}  // namespace mobius::job
