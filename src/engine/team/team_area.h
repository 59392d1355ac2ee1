// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Memory that the members of a team share for the life of an object they made together. Of a team
// on several hosts each host's members have memory of their own; what is in that of other hosts is
// changed by asking its members, by the name of the object (remote/remote_objects.h).

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/team/team.h"

namespace mobius::engine {

class RemoteObject;

// Made and released collectively; between these, plain memory, and a user of its team. A member
// that dies, or does not release its area, keeps the memory from being used again.
class TeamArea {
 public:
  TeamArea() = default;
  TeamArea(const TeamArea&) = delete;
  TeamArea& operator=(const TeamArea&) = delete;

  // `bytes` zero bytes, of which all members of a host ask for the same number. `mine` is what the
  // caller's own preparations came to: one error anywhere fails the call everywhere, as
  // Team::agree(). `object`, which uses the memory, may be asked by others before this returns.
  mob_status_t make(Team& team, size_t bytes, mob_status_t mine, const char* call,
                    RemoteObject& object);

  // Nobody uses the memory any more once all members called it.
  mob_status_t release();

  // Aligned to a cache line.
  void* memory() const { return header_ + 1; }
  Team& team() const { return *team_; }
  // Of the object, the same at all members; 0 in a team on one host.
  uint64_t name() const { return name_; }

 private:
  struct alignas(64) Header {
    std::atomic<uint32_t> departed;  // members that will not look at the area again
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
