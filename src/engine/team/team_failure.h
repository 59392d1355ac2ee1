// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/job.h>
#include <mobius/status.h>

#include <atomic>
#include <cstdint>

namespace mobius::engine {

struct TeamServices;

// Why a team's collective calls cannot complete any more. Members tell each other in shared memory
// and in team messages. Valid as zeros.
// Aligned to its size, as Clang loads no other structure as one word.
struct alignas(uint64_t) TeamFailure {
  enum class Kind : uint32_t {
    kNone,
    kDead,      // or cannot be reached
    kLeft,      // is in mob_finalize
    kNoMemory,  // for a collective call
    kFailed     // in a collective call, for another reason
  };

  Kind kind = Kind::kNone;
  mob_rank_t rank = 0;  // in the job

  explicit operator bool() const { return kind != Kind::kNone; }
  // Whether the values are valid: they may come from another host.
  bool is_sound(mob_rank_t ranks) const {
    return kind > Kind::kNone && kind <= Kind::kFailed && rank >= 0 && rank < ranks;
  }
};
static_assert(std::atomic<TeamFailure>::is_always_lock_free);

// Both record an error and return its status: fail_for() in the call that lost a member,
// refuse_for() in later calls.
mob_status_t fail_for(const TeamServices& services, const TeamFailure& loss);
mob_status_t refuse_for(const TeamServices& services, const TeamFailure& loss);

}  // namespace mobius::engine
