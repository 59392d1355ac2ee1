// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Agreement among the living members of a team on one host, also while members die.
//
// Shared memory outlives the processes that write to it, so one word that is set once per turn is
// enough. Each member writes its flags into a record of its own. The living member with the lowest
// rank waits until every other member has come or is gone, writes a proposal into its record, and
// sets the word to its rank; if it dies before, the next member does so. All members take the
// proposal of the member that the word names, even if that one has died since.

#include <mobius/job.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/team/team_map.h"
#include "engine/team/team_services.h"
#include "job/control.h"

namespace mobius::engine {

class Rounds;

// A set of members, by their ranks in the team.
class MemberSet {
 public:
  void clear() { words_ = {}; }
  void add(mob_rank_t member) { words_[word(member)] |= bit(member); }
  bool has(mob_rank_t member) const { return (words_[word(member)] & bit(member)) != 0; }

 private:
  static constexpr unsigned kBits = 64;
  static size_t word(mob_rank_t member) { return static_cast<size_t>(member) / kBits; }
  static uint64_t bit(mob_rank_t member) {
    return uint64_t{1} << (static_cast<unsigned>(member) % kBits);
  }

  std::array<uint64_t, job::kMostLocalPeers / kBits> words_{};
};

// In the area of a team (rounds.h). Valid as zeros.
struct ConsensusHeader {
  alignas(64) std::atomic<uint64_t> decided;  // turn | rank, plus 1, of the member that decided
};

struct ConsensusRecord {
  alignas(64) std::atomic<uint64_t> brought;  // turn | flags
  // The proposal of this member. Written before the member sets `decided`, and not again before all
  // living members have come to the next turn.
  uint32_t flags;
  mob_rank_t against;
  mob_status_t status;
  uint64_t offset;
  MemberSet survivors;
};

class Consensus {
 public:
  // What the member that decides adds for all.
  struct Proposal {
    mob_status_t status = MOB_OK;
    uint64_t offset = 0;
  };

  // The same at all members that live, but for is_mine.
  struct Decision {
    uint32_t flags = 0;       // those that all survivors brought
    mob_rank_t against = -1;  // the first survivor that brought no flag
    Proposal proposal;
    MemberSet survivors;
    bool is_mine = false;  // this member decided
  };

  // For a team on one host. The arguments outlive this.
  Consensus(const TeamServices& services, const TeamMap& map, mob_rank_t rank, const Rounds& rounds)
      : services_(services), map_(map), rank_(rank), rounds_(rounds) {}

  // A turn: each member calls begin(); those where it returns true call propose(); then all call
  // end(). All three allocate nothing.
  //
  // Waits until a member has decided, or this one is to propose: then it returns true, and
  // survivors() and all_brought_flags() tell about the members that live.
  bool begin(uint32_t flags);
  mob_rank_t survivors() const { return survivors_; }
  bool all_brought_flags() const;
  void propose(const Proposal& proposal);
  // MOB_ERR_PEER in a process that the others take for dead.
  mob_status_t end(const char* call, Decision* decision);

  // A turn in which the proposal is empty.
  mob_status_t decide(const char* call, uint32_t flags, Decision* decision) {
    if (begin(flags)) propose({});
    return end(call, decision);
  }

  // As Team::agree(), with the same outcome at all living members: MOB_OK if all of them passed
  // MOB_OK; otherwise a member that passed an error gets it, and the others get MOB_ERR_PEER.
  mob_status_t agree(const char* call, mob_status_t mine);

 private:
  bool is_decided() const;
  bool has_come(mob_rank_t member) const;
  bool is_gone(mob_rank_t member) const;
  bool is_to_propose(mob_rank_t* next) const;
  void gather();

  const TeamServices& services_;
  const TeamMap& map_;
  const mob_rank_t rank_;
  const Rounds& rounds_;
  uint32_t turn_ = 0;  // wraps; only numbers close to each other are compared
  mob_rank_t survivors_ = 0;
};

}  // namespace mobius::engine
