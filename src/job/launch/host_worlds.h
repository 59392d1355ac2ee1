// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The processes of spawns in a job on virtual hosts: where they are, and the records that each host
// has of them (job/control.h).

#include <mobius/job.h>

#include <map>
#include <span>
#include <vector>

#include "job/control.h"
#include "job/layout.h"

namespace mobius::launch {

// A segment and where its control block is mapped.
struct HostSegment {
  int descriptor = -1;
  job::ControlBlock* block = nullptr;
};

class HostWorlds {
 public:
  // Gives the processes of a world places on the hosts, one each, and tells all hosts. An error
  // leaves none of them behind.
  mob_status_t place(std::span<const HostSegment> segments, const job::World& world,
                     mob_rank_t first, std::span<const int32_t> hosts);
  // The first `count` processes of a world have been started: they may join.
  void start(std::span<const HostSegment> segments, mob_rank_t first, mob_rank_t count);
  // The world is given up.
  void fail(std::span<const HostSegment> segments, mob_rank_t first);

  // Of a process that was given a place; host -1 if it was not.
  job::Place place_of(mob_rank_t rank) const;

 private:
  struct Part {
    int32_t host;
    mob_rank_t first;  // by the numbers of the host
    std::vector<mob_rank_t> ranks;
  };
  mob_status_t make_room(std::span<const HostSegment> segments, mob_rank_t first, mob_rank_t count,
                         std::vector<Part>* parts) const;
  void fill(job::ControlBlock& block, const job::World& world, mob_rank_t first, const Part& part);

  std::map<mob_rank_t, std::vector<Part>> parts_;  // by world
  std::map<mob_rank_t, job::Place> places_;        // by rank
};

}  // namespace mobius::launch
