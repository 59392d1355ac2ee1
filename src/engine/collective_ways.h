// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which way large private memory takes in the collective calls of a team on one host: members lend
// it to each other (lending.h), or it passes through memory of the team, piece by piece.
//
// Kernels differ by a factor of ten in what cross-memory attach costs, processors as much in how
// quickly they take lines from each other, and calls in how often either way moves a byte. So the
// first calls of each kind and size try both ways by turns, and the others take the faster, until
// both are tried again (way_trial.h).

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/lending.h"
#include "engine/team.h"
#include "engine/way_trial.h"

namespace mobius::engine {

// From here on a look at where the memory lies costs less than a copy.
inline constexpr size_t kDirectBytes = size_t{16} << 10;
// Private memory is worth a try from here on: the kernel's copy begins with a system call.
inline constexpr size_t kAttachedBytes = size_t{32} << 10;

enum class CollectiveKind { kBroadcast, kGather, kAllgather, kScatter, kAlltoall, kFold };

// All calls are collective, and one at a time, as those that they are about.
class CollectiveWays {
 public:
  struct Way {
    bool attaches = false;  // private memory is lent
    WayTrial* trial = nullptr;
    int64_t begin_ns = 0;
  };

  // `bytes`: the same at all members.
  mob_status_t choose(Team& team, CollectiveKind kind, size_t bytes, Way* way);
  // At the end of a call that went one of the two ways. What counts is the time from when the last
  // member came until the last was through.
  static mob_status_t note(Team& team, const Way& way);

 private:
  enum class Attaching { kUnknown, kNever, kAlways, kByTrial };
  static constexpr size_t kKinds = 6;
  static constexpr size_t kSizes = 4;  // each four times the one before

  static mob_status_t try_attaching(Team& team, Attaching* result);

  Attaching attaching_ = Attaching::kUnknown;
  std::array<std::array<WayTrial, kSizes>, kKinds> trials_;  // first: attached
};

// A collective call of `bytes` bytes, the same at all members: `directly(lending, &done)`, if
// memory of so much is lent, and `in_rounds()` if that has done nothing.
template <typename Directly, typename InRounds>
mob_status_t take_faster_way(Team& team, CollectiveKind kind, size_t bytes, Directly directly,
                             InRounds in_rounds) {
  if (bytes < kDirectBytes) return in_rounds();
  CollectiveWays::Way way;
  mob_status_t status = team.ways().choose(team, kind, bytes, &way);
  if (status != MOB_OK) return status;
  Lending lending(team, way.attaches);
  bool done = false;
  status = directly(lending, &done);
  if (status == MOB_OK && !done) status = in_rounds();
  // Other memory than private takes the same way in both turns.
  const bool counts = way.attaches ? done && lending.has_private() : !done;
  if (status != MOB_OK || way.trial == nullptr || !counts) return status;
  return CollectiveWays::note(team, way);
}

}  // namespace mobius::engine
