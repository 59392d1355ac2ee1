// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Chooses the path of large private memory in the collective calls of a team on one host: members
// lend peer buffers to each other (peer_buffers.h), or the data pass through shared memory of the
// team, piece by piece.
//
// The cost of cross-memory attach differs between kernels by a factor of ten, the cost of moving
// cache lines differs as much between processors, and the two paths differ in how often they move a
// byte. So the first calls of each kind and size alternate between the paths, later calls take the
// faster one, and both are tried again from time to time (common/ab_tuner.h).
//
// Members need a round to find out whether all can lend. If they could not, because memory is
// private and attaching is not in use, some following calls of that kind skip the round whatever
// memory they use. All members must decide alike, and the earlier calls are all that they know in
// common.

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/collective/peer_buffers.h"
#include "engine/common/ab_tuner.h"
#include "engine/team/team.h"

namespace mobius::engine {

// From this size on, checking where the memory lies costs less than a copy. Private memory is worth
// a try, too: the kernel's copy starts with a system call.
inline constexpr size_t kDirectBytes = size_t{16} << 10;

enum class CollectiveKind { kBroadcast, kGather, kAllgather, kScatter, kAlltoall, kFold };

// All calls are collective, one at a time, like the calls that they tune.
class CollectiveTuning final : public TeamExtension {
 public:
  // The tuning of a team, made at its first use.
  static CollectiveTuning& of(Team& team);

  struct Way {
    bool asks = true;       // exchanges the lists of peer buffers
    bool attaches = false;  // lends private memory, too
    AbTuner* tuner = nullptr;
    int64_t begin_ns = 0;
  };

  // `bytes` is the same at all members.
  mob_status_t choose(Team& team, CollectiveKind kind, size_t bytes, Way* way);
  // Ends a call that was a trial of one path. Counts the members' average time from the arrival of
  // the last one, because a member that is done early can go on.
  static mob_status_t note(Team& team, const Way& way);
  // Records whether the members could lend in a call that asked without attaching.
  void note_asked(CollectiveKind kind, bool lent);

 private:
  enum class Attaching { kUnknown, kNever, kAlways, kByTrial };
  static constexpr size_t kKinds = 6;
  static constexpr size_t kSizes = 7;  // each twice the size before
  // Calls of one kind that skip the round.
  struct Silence {
    uint32_t left = 0;
    uint32_t next = 1;  // number of calls to skip after the next failure
    static constexpr uint32_t kLongest = 16;
  };

  static mob_status_t try_attaching(Team& team, Attaching* result);

  Attaching attaching_ = Attaching::kUnknown;
  std::array<std::array<AbTuner, kSizes>, kKinds> tuners_;  // the first path is attaching
  std::array<Silence, kKinds> silences_;
};

// A collective call of `bytes` bytes, the same at all members. Runs `directly(buffers, &done)` if
// peer buffers are worth a try, and `in_rounds()` if that has done nothing.
template <typename Directly, typename InRounds>
mob_status_t take_faster_way(Team& team, CollectiveKind kind, size_t bytes, Directly directly,
                             InRounds in_rounds) {
  if (bytes < kDirectBytes) return in_rounds();
  CollectiveTuning::Way way;
  mob_status_t status = CollectiveTuning::of(team).choose(team, kind, bytes, &way);
  if (status != MOB_OK) return status;
  bool done = false;
  bool has_private = false;
  if (way.asks) {
    PeerBuffers buffers(team, way.attaches);
    status = directly(buffers, &done);
    has_private = buffers.has_private();
    if (!way.attaches) CollectiveTuning::of(team).note_asked(kind, done);
  }
  if (status == MOB_OK && !done) status = in_rounds();
  // Memory that is not private takes the same path in both trials, so it does not count.
  const bool counts = way.attaches ? done && has_private : !done;
  if (status != MOB_OK || way.tuner == nullptr || !counts) return status;
  return CollectiveTuning::note(team, way);
}

}  // namespace mobius::engine
