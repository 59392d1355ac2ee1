// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Memory that the members of a team on one host lend each other for the time of a collective call:
// they read and write it where it lies, through the window or, if it is private, by cross-memory
// attach.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/team/team.h"

namespace mobius::engine {

// Where something lies that a member lends.
struct PeerBuffer {
  enum class Kind : uint64_t { kNone, kWindow, kPrivate };
  Kind kind = Kind::kNone;
  uint64_t at = 0;  // in the window; an address of its owner
};

// What a member lends in one call.
struct PeerBufferList {
  PeerBuffer in;
  PeerBuffer out;
  PeerBuffer list;          // displacements, where only their owner knows them
  uint64_t may_attach = 1;  // 0: this member can neither reach private memory nor be reached
};

class PeerBuffers {
 public:
  // `attaches`: private memory is lent, too.
  PeerBuffers(Team& team, bool attaches) : team_(team), attaches_(attaches) {}

  Team& team() const { return team_; }

  // Of kNone if the others cannot reach it. What has no bytes is never reached, wherever it lies.
  PeerBuffer lend(const void* memory, size_t bytes) const;

  // Collective, each member with its own: all have what all lend, which is less than they offered
  // if a member has lost the right to attach to the others. of() says what counts.
  mob_status_t exchange(PeerBufferList mine);
  const PeerBufferList& of(mob_rank_t member) const { return all_[static_cast<size_t>(member)]; }
  // Whether any of it is private; the same at all members.
  bool has_private() const;

  // Bytes of what another member lends, as a pointer; null if it has none here.
  const unsigned char* look(mob_rank_t member, const PeerBuffer& loan, size_t offset,
                            size_t bytes) const;
  // Copies from, or to, what another member lends. Errors are kept for settle().
  void get(mob_rank_t member, const PeerBuffer& loan, size_t offset, void* to, size_t bytes) {
    copy(member, loan, offset, to, bytes, false);
  }
  void put(mob_rank_t member, const PeerBuffer& loan, size_t offset, const void* from,
           size_t bytes) {
    copy(member, loan, offset, const_cast<void*>(from), bytes, true);
  }

  // Whether all copies so far were made.
  bool is_well() const { return unreached_ < 0; }

  // Collective, at the end: MOB_OK if all that all did was done; nothing is lent after it.
  // Otherwise all fail, and the team is as good as before unless a member died.
  mob_status_t settle();

 private:
  void await_death(mob_rank_t rank);
  uintptr_t address(mob_rank_t member, const PeerBuffer& loan, size_t offset) const;
  void copy(mob_rank_t member, const PeerBuffer& loan, size_t offset, void* local, size_t bytes,
            bool put);

  Team& team_;
  const bool attaches_;
  std::vector<PeerBufferList> all_;
  mob_rank_t unreached_ = -1;  // a member whose memory could not be read or written
  bool is_gone_ = false;       // because it died
  uint64_t began_ns_ = 0;
};

}  // namespace mobius::engine
