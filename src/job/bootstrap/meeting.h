// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How processes that a foreign launcher started become a job: through nothing but a directory they
// find out which of them are on one host, and get the segment of theirs.
//
// A host is what can share memory, found by trying it: each process goes through the lower ranks
// that run under the same kernel, user and network namespace (os/identity.h), and asks their
// receptions (reception.h) to be let in. It is the first that does so that it shares a host with;
// if none does, it is the first of a host itself, and lets others in. So names of hosts do not
// matter, and two containers of one machine that cannot reach each other are two hosts.

#include <mobius/job.h>

#include <span>

#include "job/bootstrap/directory.h"
#include "job/bootstrap/reception.h"

namespace mobius::job {

struct Invitation {
  mob_rank_t rank;
  mob_rank_t size;
  // Ranks in ascending order that may be on this host; it is tried with no others. The own rank may
  // be among them.
  std::span<const mob_rank_t> neighbours;
  unsigned limit_s;  // how long to wait for others, at each step
};

struct Membership {
  int segment = -1;  // of this host, with the layout of the job if it is on several; the caller's
  bool pid_is_shared = false;  // host-mates know this process by the id it knows itself by
  Secret secret{};             // what only processes of the job know
};

// Collective over the job. Uses the directory's keys "card", "secret" and "seat".
mob_status_t meet(Directory& directory, const Invitation& invitation, Membership* membership);

}  // namespace mobius::job
