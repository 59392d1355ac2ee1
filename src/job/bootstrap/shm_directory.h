// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The directory of a job on virtual hosts. All processes are on this machine and share one more
// segment. It has a slot per rank and, behind the slots, a page for the job's secret, and one page
// per rank for the values that the rank publishes. The launcher hands the segment to ranks only.
// Processes that are spawned get slots and pages, too; kWorldsMemory has what they are told.

#include "job/bootstrap/directory.h"
#include "job/bootstrap/segment_server.h"
#include "job/host_group.h"

namespace mobius::job {

// Room for what is asked for when a world is spawned, by its number; sparse, as the segment is.
inline constexpr size_t kWorldMemoryBytes = size_t{64} << 20;
constexpr uint64_t world_memory(mob_rank_t first) {
  return kWindowOffset + static_cast<uint64_t>(first) * kWorldMemoryBytes;
}

class ShmDirectory final : public Directory {
 public:
  ShmDirectory() = default;
  ~ShmDirectory() override { close(); }

  // Makes the segment for `size` ranks, with a new secret. `*descriptor` is owned by the caller.
  static mob_status_t create(mob_rank_t size, int* descriptor);

  // Owns the descriptor from now on, also on failure. `pid_is_shared` as in HostGroup::open().
  mob_status_t open(int segment, mob_rank_t rank, const os::WaitPolicy& policy, bool pid_is_shared);

  Secret secret() const;

  mob_status_t publish(std::string_view key, std::span<const unsigned char> value) override;
  mob_status_t fence() override { return group_.barrier(); }
  mob_status_t fetch(mob_rank_t rank, std::string_view key,
                     std::vector<unsigned char>* value) override;
  bool is_dead(mob_rank_t rank) override { return group_.liveness().is_dead(rank); }
  bool has_left(mob_rank_t rank) override { return group_.liveness().has_left(rank); }
  void leave() override;
  ControlBlock* worlds() override { return &group_.control(); }
  int worlds_segment() const override { return group_.segment(); }
  mob_status_t make_room(mob_rank_t first, mob_rank_t count) override;
  bool is_connected(mob_rank_t rank) override { return group_.is_connected(rank); }
  void start_leaving() override;
  bool have_connected_come() override;

 private:
  struct Page;

  Page& page(mob_rank_t rank) const;
  void close();

  HostGroup group_;
  unsigned char* pages_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace mobius::job
