// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The directory of a job on virtual hosts: all its processes are on this machine and share one more
// segment, which has a slot per rank and, behind the slots, a page per rank for its values, and one
// for the job's secret: only who gets the segment from the launcher can read it.

#include "job/bootstrap/directory.h"
#include "job/bootstrap/reception.h"
#include "job/host_group.h"

namespace mobius::job {

class Board final : public Directory {
 public:
  Board() = default;
  ~Board() override { close(); }

  // Makes the segment of a board for `size` ranks, with a new secret; `*descriptor` is the
  // caller's.
  static mob_status_t create(mob_rank_t size, int* descriptor);

  // Takes over the descriptor also on failure. `pid_is_shared` as for HostGroup::open().
  mob_status_t open(int segment, mob_rank_t rank, const os::WaitPolicy& policy, bool pid_is_shared);

  Secret secret() const;

  mob_status_t publish(std::string_view key, std::span<const unsigned char> value) override;
  mob_status_t fence() override { return group_.barrier(); }
  mob_status_t fetch(mob_rank_t rank, std::string_view key,
                     std::vector<unsigned char>* value) override;
  bool is_dead(mob_rank_t rank) override { return group_.liveness().is_dead(rank); }
  bool has_left(mob_rank_t rank) override { return group_.liveness().has_left(rank); }
  void leave() override;

 private:
  struct Page;

  Page& page(mob_rank_t rank) const;
  void close();

  HostGroup group_;
  unsigned char* pages_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace mobius::job
