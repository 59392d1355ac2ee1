// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Peer buffers: memory that the members of a team on one host lend each other during a collective
// call. The others read and write it in place, through the window or, if it is private, by
// cross-memory attach.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/team/team.h"

namespace mobius::engine {

// Where a buffer lies that a member lends.
struct PeerBuffer {
  enum class Kind : uint64_t { kNone, kWindow, kPrivate };
  Kind kind = Kind::kNone;
  uint64_t at = 0;  // offset in the window, or address in the owner
};

// The buffers that a member lends in one call.
struct PeerBufferList {
  PeerBuffer in;
  PeerBuffer out;
  PeerBuffer list;  // displacements, if only the owner knows them
  uint64_t may_attach =
      1;  // 0: this member can neither reach others' private memory nor be reached
};

class PeerBuffers {
 public:
  // `attaches`: members lend private memory, too.
  PeerBuffers(Team& team, bool attaches) : team_(team), attaches_(attaches) {}

  Team& team() const { return team_; }

  // Returns kNone if the others cannot reach the memory. An empty buffer can always be lent:
  // nothing reads it.
  PeerBuffer lend(const void* memory, size_t bytes) const;

  // Collective, each member with its own list: every member gets the lists of all. Private buffers
  // are dropped from all lists if a member has lost the right to attach. of() returns what remains.
  mob_status_t exchange(PeerBufferList mine);
  const PeerBufferList& of(mob_rank_t member) const { return all_[static_cast<size_t>(member)]; }
  // Whether any buffer is private; the same at all members.
  bool has_private() const;

  // The bytes of another member's buffer as a pointer; null if they are not mapped here.
  const unsigned char* look(mob_rank_t member, const PeerBuffer& buffer, size_t offset,
                            size_t bytes) const;
  // Copies from, or to, another member's buffer. settle() reports errors.
  void get(mob_rank_t member, const PeerBuffer& buffer, size_t offset, void* to, size_t bytes) {
    copy(member, buffer, offset, to, bytes, false);
  }
  void put(mob_rank_t member, const PeerBuffer& buffer, size_t offset, const void* from,
           size_t bytes) {
    copy(member, buffer, offset, const_cast<void*>(from), bytes, true);
  }

  // Whether all copies so far have succeeded.
  bool is_well() const { return unreached_ < 0; }

  // Collective, at the end. MOB_OK if every member's copies succeeded; from then on nothing is
  // lent. Otherwise it fails at all members, and the team stays usable unless a member died.
  mob_status_t settle();

 private:
  void await_death(mob_rank_t rank);
  uintptr_t address(mob_rank_t member, const PeerBuffer& buffer, size_t offset) const;
  void copy(mob_rank_t member, const PeerBuffer& buffer, size_t offset, void* local, size_t bytes,
            bool put);

  Team& team_;
  const bool attaches_;
  std::vector<PeerBufferList> all_;
  mob_rank_t unreached_ = -1;  // a member whose memory could not be read or written
  bool is_gone_ = false;       // because that member died
  uint64_t began_ns_ = 0;
};

}  // namespace mobius::engine
