// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A bridge: two groups of processes that were started at different times and reach each other. One
// of them has spawned the other.

#include <mobius/job.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/team/team.h"
#include "job/control.h"

namespace mobius::engine {

// In memory of the window, for the members of both groups. Valid as zeros but for the first fields,
// which the process that spawns has written before the others start.
//
//   SpawnMemory and the request | BridgeHeader | numbers of the parents | ends | area of the team
struct BridgeHeader {
  uint64_t chunks;                 // of all this memory
  uint64_t memory;                 // its offset in the window
  uint64_t area;                   // of the team of all members, as an offset in the window
  uint64_t ends;                   // from here
  int32_t parents;                 // members of the team that spawned
  std::atomic<int32_t> joined;     // children that have
  std::atomic<uint32_t> departed;  // members that do not use this memory any more

  mob_rank_t* numbers() { return reinterpret_cast<mob_rank_t*>(this + 1); }
  // By rank in the team of all: 1 if the member has come to the end of the job.
  std::atomic<uint32_t>& end_of(mob_rank_t member) {
    return reinterpret_cast<std::atomic<uint32_t>*>(reinterpret_cast<char*>(this) + ends)[member];
  }
};

struct Bridge {
  BridgeHeader* header = nullptr;  // null in a job on several hosts
  mob_rank_t world;                // the number of the first child
  mob_rank_t parents;              // how many
  mob_rank_t children;
  bool is_child;               // this process
  bool spans_hosts = false;    // of a job on several hosts
  bool is_meeting = false;     // all of a job: it ends with the job
  mob_rank_t child_here = -1;  // there: the first child on this host; -1: none
  std::unique_ptr<Team> all;   // first the parents, then the children
};

}  // namespace mobius::engine
