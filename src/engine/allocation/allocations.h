// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Collective allocations: on each host a run of chunks of the window, one part per member of the
// team there, all parts equally far apart.

#include <mobius/memory.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/allocation/allocation_services.h"
#include "engine/common/registry.h"
#include "engine/scheduler/scheduler_services.h"
#include "engine/segment/chunk_table.h"
#include "engine/team/team.h"
#include "schedule/plan.h"

namespace mobius::engine {

struct Allocation {
  // A part as its owner sees it.
  struct Member {
    uint64_t address;
    uint64_t bytes;
  };

  Team* team;
  uint64_t offset;              // of the first part on this host, in the window
  uint64_t stride;              // from part to part
  std::vector<Member> members;  // by rank in the team; empty where all are on this host

  // Of one of the members on this host, by its rank among them (Team::mates()).
  uint64_t region_offset(mob_rank_t mate) const {
    return offset + static_cast<uint64_t>(mate) * stride;
  }
  // What all members know it by, and no other live allocation of the team.
  uint64_t name() const { return members.empty() ? offset : members[0].address; }
};

// The live allocations of a process. allocate() and release() are collective over a team; the rest
// is safe from any thread at any time.
class Allocations final : public AllocatedMemory {
 public:
  explicit Allocations(const AllocationServices& services) : services_(services) {}

  const AllocationServices& services() const { return services_; }

  // Why a call that takes part all the same cannot succeed: it fails everywhere.
  enum class Fault { kNone, kNullResult, kAlignment, kNoPlace };

  // `room` (the same everywhere, 0 for none): what parts of `bytes` bytes may grow to. `call` names
  // the public function in texts.
  mob_status_t allocate(const char* call, Team& team, size_t bytes, size_t room, Fault fault,
                        uint64_t* handle);
  // Of a live one. What the calling thread has started is complete before. Members that free
  // different allocations get MOB_ERR_ARGUMENT, and nothing is freed.
  mob_status_t release(const char* call, uint64_t handle);
  // As release() of no allocation, which all processes of the job call.
  mob_status_t release_none(const char* call);

  // Makes the parts of an allocation with room, all of `bytes` bytes, longer. Collective.
  mob_status_t grow(const char* call, const Allocation& allocation, size_t bytes, size_t new_bytes);

  // The allocation of a handle, which may be anything; null if it is not live.
  const Allocation* find(uint64_t handle) const { return live_.find(handle); }

  // Whether what lies between two addresses, the second one higher, is of one part of `rank`. Known
  // in a job of two processes on two hosts only; else false.
  bool holds(mob_rank_t rank, uint64_t lowest, uint64_t highest) const override;

  // Sets the schedule of operations on an allocation; none: that of the job.
  void set_schedule(const Allocation& allocation, std::optional<schedule::Policy> policy);

 private:
  struct Request;
  void note_theirs(const Allocation& allocation, std::optional<size_t> bytes);
  mob_status_t check(const char* call, const Team& team, const std::vector<Request>& requests,
                     Fault fault, size_t* largest) const;
  mob_status_t make_own_region(const Allocation& allocation, size_t bytes);
  void forbid_own_region(const char* call, const Allocation& allocation);
  static mob_status_t agree_on(const char* call, Team& team, uint64_t name);
  mob_status_t claim(const char* call, Team& mates, uint64_t stride, Allocation* allocation);

  const AllocationServices services_;
  Registry<Allocation> live_;
  mutable std::mutex mutex_;             // guards what follows
  std::map<uint64_t, uint64_t> theirs_;  // holds(): of each part, from where to where
};

}  // namespace mobius::engine
