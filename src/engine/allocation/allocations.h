// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Collective allocations. An allocation is a run of chunks of the window on each host, with one
// part for each member of the team there, at equal distances.

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
#include "engine/segment/window/chunk_table.h"
#include "engine/team/team.h"
#include "schedule/plan.h"

namespace mobius::engine {

struct Allocation {
  // A part, as its owner sees it.
  struct Member {
    uint64_t address;
    uint64_t bytes;
  };

  Team* team;
  uint64_t offset;              // of the first part on this host, in the window
  uint64_t stride;              // distance from part to part
  std::vector<Member> members;  // by rank in the team; empty if all are on this host

  // The offset of a local member's part, by its rank among the local members (Team::local_team()).
  uint64_t region_offset(mob_rank_t local_rank) const {
    return offset + static_cast<uint64_t>(local_rank) * stride;
  }
  // A name that all members agree on, different from that of every other live allocation of the
  // team.
  uint64_t name() const { return members.empty() ? offset : members[0].address; }
};

// The live allocations of a process. allocate() and release() are collective over a team. Any
// thread may call the others at any time.
class Allocations final : public AllocatedMemory {
 public:
  explicit Allocations(const AllocationServices& services) : services_(services) {}

  const AllocationServices& services() const { return services_; }

  // Why this member's call cannot succeed. It still takes part, and the call fails at all members.
  enum class Fault { kNone, kNullResult, kAlignment, kNoPlace };

  // `room` is the size to which parts of `bytes` bytes may grow; it is the same at all members, 0
  // for none. `call` names the public function in error texts.
  mob_status_t allocate(const char* call, Team& team, size_t bytes, size_t room, Fault fault,
                        uint64_t* handle);
  // Frees a live allocation, after completing the transfers that the calling thread started. If
  // members free different allocations, all get MOB_ERR_ARGUMENT and nothing is freed.
  mob_status_t release(const char* call, uint64_t handle);
  // The same for no allocation. Collective over the job.
  mob_status_t release_none(const char* call);

  // Lengthens all parts of an allocation with room from `bytes` bytes. Collective.
  mob_status_t grow(const char* call, const Allocation& allocation, size_t bytes, size_t new_bytes);

  // The allocation of a handle, which may have any value; null if it is not live.
  const Allocation* find(uint64_t handle) const { return live_.find(handle); }

  // Whether all bytes from `lowest` to `highest`, which is higher, belong to one part of `rank`.
  // Known only in a job of two processes on two hosts; false otherwise.
  bool holds(mob_rank_t rank, uint64_t lowest, uint64_t highest) const override;

  // Sets the schedule of operations on an allocation; without a policy the job's applies.
  void set_schedule(const Allocation& allocation, std::optional<schedule::Policy> policy);

 private:
  struct Request;
  void note_theirs(const Allocation& allocation, std::optional<size_t> bytes);
  mob_status_t check(const char* call, const Team& team, const std::vector<Request>& requests,
                     Fault fault, size_t* largest) const;
  mob_status_t make_own_region(const Allocation& allocation, size_t bytes);
  void forbid_own_region(const char* call, const Allocation& allocation);
  static mob_status_t agree_on(const char* call, Team& team, uint64_t name);
  mob_status_t claim(const char* call, Team& local_team, uint64_t stride, Allocation* allocation);

  const AllocationServices services_;
  Registry<Allocation> live_;
  mutable std::mutex mutex_;             // guards what follows
  std::map<uint64_t, uint64_t> theirs_;  // for holds(): the start and the end of each part
};

}  // namespace mobius::engine
