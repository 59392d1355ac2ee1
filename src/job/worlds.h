// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Numbers for processes that are spawned, and what a spawn in a job on several hosts asks for.
//
// On several hosts the request lies in the segment of the worlds' records (bootstrap/directory.h),
// not in that of a host: the process that starts the new ones reads it, and these learn from it who
// spawned them. It stays there until the world has joined, or has ended.

#include <mobius/job.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "job/bootstrap/directory.h"
#include "job/control.h"
#include "job/spawn_request.h"

namespace mobius::job {

// Takes `count` numbers from a counter, of which `most` can be given out. `reserve` makes room for
// the first of them before they are valid.
mob_status_t take_numbers(const char* call, std::atomic<int32_t>& numbers, mob_rank_t count,
                          mob_rank_t most,
                          const std::function<mob_status_t(mob_rank_t first)>& reserve,
                          mob_rank_t* first);

// Of a spawn in a job on several hosts.
struct WorldRequest {
  mob_rank_t least = 0;  // as in World, as the next two
  mob_rank_t spawner = 0;
  mob_rank_t parent = 0;
  SpawnRequest request;
  std::vector<mob_rank_t> parents;  // the numbers of the members of the team that spawns
  std::vector<int32_t> hosts;       // of each process to start
};

// Takes numbers for the processes of a request and writes it and the record of their world, whose
// state is then kAsked.
mob_status_t write_request(const char* call, Directory& directory, const WorldRequest& wanted,
                           mob_rank_t most, mob_rank_t* first);

// Reads who spawns the world and on which hosts its processes are to be. False if the text is not
// sound.
bool read_members(int segment, const World& world, std::vector<mob_rank_t>* parents,
                  std::vector<int32_t>* hosts);

// Why a spawn failed, as its record says.
std::string read_reason(int segment, const World& world);

// The world has joined, or has ended: nobody needs its request any more.
void free_request(int segment, const World& world);

}  // namespace mobius::job
