// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which way large private memory takes in the collective calls of a team on one host: members lend
// it to each other (peer_buffers.h), or it passes through memory of the team, piece by piece.
//
// Kernels differ by a factor of ten in what cross-memory attach costs, processors as much in how
// quickly they take lines from each other, and calls in how often either way moves a byte. So the
// first calls of each kind and size try both ways by turns, and the others take the faster, until
// both are tried again (common/ab_tuner.h).
//
// To find out whether memory is lent, all members meet. Where that was in vain, as all memory is
// private and not attached to, some calls of that kind that follow do not ask, whatever memory is
// theirs: all members have to do the same, and know of the calls before only.

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/collective/peer_buffers.h"
#include "engine/common/ab_tuner.h"
#include "engine/team/team.h"

namespace mobius::engine {

// From here on a look at where the memory lies costs less than a copy, and private memory is worth
// a try: the kernel's copy begins with a system call.
inline constexpr size_t kDirectBytes = size_t{16} << 10;

enum class CollectiveKind { kBroadcast, kGather, kAllgather, kScatter, kAlltoall, kFold };

// All calls are collective, and one at a time, as those that they are about.
class CollectiveTuning final : public TeamExtension {
 public:
  // That of a team, made at its first use.
  static CollectiveTuning& of(Team& team);

  struct Way {
    bool asks = true;       // what is lent
    bool attaches = false;  // private memory is lent
    AbTuner* trial = nullptr;
    int64_t begin_ns = 0;
  };

  // `bytes`: the same at all members.
  mob_status_t choose(Team& team, CollectiveKind kind, size_t bytes, Way* way);
  // At the end of a call that went one of the two ways. What counts is how long members take from
  // when the last one came, on average: who is through early goes on.
  static mob_status_t note(Team& team, const Way& way);
  // Whether anything was lent in a call that asked without attaching.
  void note_asked(CollectiveKind kind, bool lent);

 private:
  enum class Attaching { kUnknown, kNever, kAlways, kByTrial };
  static constexpr size_t kKinds = 6;
  static constexpr size_t kSizes = 7;  // each twice the one before
  // Calls of one kind that do not ask.
  struct Silence {
    uint32_t left = 0;
    uint32_t next = 1;  // as many after the next call that asks in vain
    static constexpr uint32_t kLongest = 16;
  };

  static mob_status_t try_attaching(Team& team, Attaching* result);

  Attaching attaching_ = Attaching::kUnknown;
  std::array<std::array<AbTuner, kSizes>, kKinds> trials_;  // first: attached
  std::array<Silence, kKinds> silences_;
};

// A collective call of `bytes` bytes, the same at all members: `directly(lending, &done)`, if
// memory of so much is lent, and `in_rounds()` if that has done nothing.
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
    PeerBuffers lending(team, way.attaches);
    status = directly(lending, &done);
    has_private = lending.has_private();
    if (!way.attaches) CollectiveTuning::of(team).note_asked(kind, done);
  }
  if (status == MOB_OK && !done) status = in_rounds();
  // Other memory than private takes the same way in both turns.
  const bool counts = way.attaches ? done && has_private : !done;
  if (status != MOB_OK || way.trial == nullptr || !counts) return status;
  return CollectiveTuning::note(team, way);
}

}  // namespace mobius::engine
