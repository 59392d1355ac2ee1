// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Memory that the members of a team share for the life of an object they made together. In a team
// on several hosts, each host's members have memory of their own. To change memory of another host,
// a process asks a member there, by the name of the object (remote/remote_objects.h).

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/team/team.h"

namespace mobius::engine {

class RemoteObject;

// Made and released collectively. In between it is plain memory and a user of its team. If a member
// dies or does not release its area, the memory is not used again.
class TeamArea {
 public:
  TeamArea() = default;
  TeamArea(const TeamArea&) = delete;
  TeamArea& operator=(const TeamArea&) = delete;

  // Gets `bytes` zero bytes; all members of a host ask for the same number. `mine` is the outcome
  // of the caller's own preparations: an error of any member fails the call everywhere, as in
  // Team::agree(). Others may send requests to `object`, which uses the memory, before this
  // returns.
  mob_status_t make(Team& team, size_t bytes, mob_status_t mine, const char* call,
                    RemoteObject& object);

  // The memory is free once all members have called this.
  mob_status_t release();

  // Aligned to a cache line.
  void* memory() const { return header_ + 1; }
  Team& team() const { return *team_; }
  // The name of the object, the same at all members; 0 in a team on one host.
  uint64_t name() const { return name_; }

 private:
  struct alignas(64) Header {
    std::atomic<uint32_t> departed;  // members that do not use the area any more
  };

  mob_status_t claim(uint64_t* offset);
  void give_back();

  Team* team_ = nullptr;
  Header* header_ = nullptr;
  size_t bytes_ = 0;  // with the header
  uint64_t offset_ = 0;
  uint64_t name_ = 0;
};

}  // namespace mobius::engine
