// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared and exclusive access to the members of a team.
//
// Each member has a gate: a lock that who has exclusive access holds throughout. Each process
// counts, in words of its own for each member, the shared accesses it has. To gain shared access
// when nobody is at the gate it counts itself, then looks at the gate; who has passed the gate
// looks at all the counts, so that of the two at least one sees the other, and it is the reader
// that steps back. Readers that find somebody at the gate queue up there too, which makes the order
// fair.
//
// Every word says whose it is, so that what a dead process left can be taken back.

#include <atomic>
#include <memory>

#include "engine/team_area.h"
#include "os/hybrid_lock.h"

namespace mobius::engine {

class Access {
 public:
  // Collective over the team. `mine` as in TeamArea::make().
  static mob_status_t make(Team& team, mob_status_t mine, std::unique_ptr<Access>* access);
  // Collective. While a member has access, fails everywhere and frees nothing.
  mob_status_t release();

  Team& team() const { return area_.team(); }

  // Members by their ranks in the team; `call` names the public function in errors. Of the results,
  // `recovered` may be null.
  mob_status_t lock_exclusive(const char* call, mob_rank_t target, int* recovered);
  mob_status_t lock_shared(const char* call, mob_rank_t target, int* recovered);
  mob_status_t try_exclusive(const char* call, mob_rank_t target, int* acquired, int* recovered);
  mob_status_t try_shared(const char* call, mob_rank_t target, int* acquired, int* recovered);
  mob_status_t unlock(const char* call, mob_rank_t target);

  mob_status_t lock_all(const char* call, int* recovered);
  mob_status_t unlock_all(const char* call);

 private:
  class ReadersWatch;

  os::HybridLockWord& gate(mob_rank_t target) const {
    return static_cast<os::PaddedHybridLockWord*>(area_.memory())[target];
  }
  // Shared accesses to `target` that `reader` has. One reader's words lie together: it is their
  // only writer while it lives.
  std::atomic<uint32_t>& shared(mob_rank_t reader, mob_rank_t target) const;
  bool has_exclusive(mob_rank_t target) const;
  bool is_read(mob_rank_t target, mob_rank_t* next) const;
  bool enter_shared(mob_rank_t target);
  bool leave_shared(mob_rank_t target);
  void forget_dead_readers(mob_rank_t target);

  TeamArea area_;
};

}  // namespace mobius::engine
