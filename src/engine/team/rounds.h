// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The members of a team exchange data in rounds, through memory they share.
//
// The sequence of rounds of a collective call follows from its arguments alone, so all members
// count the same rounds. In a round a member may write its own line (a flag with a little data
// beside it) and its own bulk memory, post them, read those of other members that posted, and end
// the round. Rounds have no acknowledgements: a member that only writes goes on at once. It waits
// for its readers only before it uses the same memory again, several rounds later.
//
// A call that has members write into the bulk memory of others defines which one writes where.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/settings.h"
#include "engine/segment/segment_layout.h"
#include "engine/team/consensus.h"
#include "engine/team/team_failure.h"
#include "engine/team/team_map.h"
#include "engine/team/team_services.h"
#include "os/sync/futex.h"
#include "os/sync/waiter.h"

namespace mobius::engine {

// Most bytes of data beside the flag.
inline constexpr size_t kInlineBytes = 56;
// Most bytes of bulk data in one round. There is twice as much bulk memory, so that the next round
// can be written while one is read.
inline constexpr size_t kBulkBytes = size_t{30} << 10;

inline constexpr unsigned kRoundLines = 8;

// A team's area has room for two independent series of rounds: the team's calls and, in the world,
// the end of the job. A member at its end takes no part in the other members' calls any more.
enum class Series { kCalls, kEnd };
inline constexpr size_t kSeries = 2;

// The area of a team: a header and one block per member. Valid as zeros.
struct TeamHeader {
  struct Meeting {
    alignas(64) std::atomic<uint32_t> arrived;  // in the meeting under way
    alignas(64) std::atomic<uint32_t> generation;
    alignas(64) std::atomic<uint32_t> done_waiters;  // members that wait for others' Lines::done
    std::atomic<TeamFailure> loss;                   // the first that a member has reported
  } meetings[kSeries];
  std::atomic<uint32_t> departed;  // members that do not use the area any more
  ConsensusHeader consensus;
};

struct TeamMember {
  struct Line {
    alignas(128) std::atomic<uint32_t> round;  // the last one posted here
    alignas(8) unsigned char data[kInlineBytes];
    alignas(64) std::atomic<uint32_t> row;  // the last round in which the member's row was complete
                                            // (GridBarrier)
  };
  struct Lines {
    Line lines[kRoundLines];                  // used in turn
    alignas(128) std::atomic<uint32_t> done;  // rounds that this member has ended
  } series[kSeries];
  ConsensusRecord consensus;
  alignas(4096) unsigned char bulk[2 * kBulkBytes];  // for Series::kCalls only
};
static_assert(sizeof(TeamMember) == size_t{64} << 10);

class Rounds {
 public:
  enum class Role { kReads, kWrites };
  // Bulk memory of a round. kNone: none. kNext: the next place, which is never that of the round
  // before; rounds of one size use as many places as fit. kMet: as kNext, with two places, for a
  // round in which all members meet. kSame: the place of the round before, which stays readable.
  enum class Bulk { kNone, kNext, kMet, kSame };

  // A part of the bulk memory, the same in all members' blocks.
  struct Place {
    size_t begin = 0;
    size_t end = 0;

    bool overlaps(const Place& other) const { return begin < other.end && other.begin < end; }
  };

  // The bulk memory of the `turn`th round that takes a place (kNext, kMet).
  static Place place_of(size_t turn, Bulk bulk, size_t bytes);

  // `area` is shared memory of area_bytes(map.size()) that is zero before the first member comes.
  // The map outlives this. Rounds of kEnd have no bulk memory.
  Rounds(const TeamServices& services, const TeamMap& map, mob_rank_t rank, void* area,
         Series series);

  static size_t area_bytes(mob_rank_t size) {
    return sizeof(TeamHeader) + kHeaderPadding + static_cast<size_t>(size) * sizeof(TeamMember);
  }

  // Starts a round. A member that kWrites may write when this returns: all others have ended the
  // round that used the memory before. Uses `bytes` of each member's bulk memory, up to kBulkBytes;
  // all members pass the same number. Functions that wait return MOB_ERR_PEER when a member died;
  // the team is unusable then.
  mob_status_t begin(Role role, Bulk bulk, size_t bytes = 0);

  // The own data is complete. A member that kWrites calls at most one of these three per round.
  void post_to(mob_rank_t reader);
  void post_to_all();
  // Posts to all members and returns when all have posted: all that any member wrote before, here
  // or elsewhere, is visible after it. If the others are expected within `expected_ns`, and each
  // has a processor, the member spins that long before it sleeps and has to be woken.
  mob_status_t meet(uint64_t expected_ns = 0);

  // Whether members read each other's flags in meet().
  bool meets_by_flags() const { return meet_by_ != base::MeetBy::kCount; }

  // Waits until another member has posted, or all others have.
  mob_status_t await(mob_rank_t rank);
  mob_status_t await_all();

  // For a member that reads what one other writes, in this round and the next ones: fetches the
  // line and the bulk memory of a later round, if they are small.
  void fetch_of_later_round(mob_rank_t writer) const;

  // This member does not read data of the round any more.
  void end();

  // Data of a member in this round. Its owner writes it.
  unsigned char* line(mob_rank_t rank) const { return line_of(rank).data; }
  unsigned char* bulk(mob_rank_t rank) const { return member(rank).bulk + place_.begin; }

  // A round without data.
  mob_status_t barrier();

  // Whether a round was given up because a member died or left.
  bool is_broken() const { return broken_; }

  // Makes the calls of all members fail from now on, also calls in progress. Any member may call
  // it. The first failure reported stays.
  void give_up(const TeamFailure& loss);
  // The failure that this member has found or was told of.
  TeamFailure loss() const;

  // What the members need for Consensus.
  ConsensusHeader& consensus() const { return static_cast<TeamHeader*>(area_)->consensus; }
  ConsensusRecord& consensus(mob_rank_t rank) const { return member(rank).consensus; }

  // Not collective: this member does not use the area any more. Returns whether no member does.
  bool depart() {
    // Both: the last member has seen the others' last use of the area.
    return static_cast<TeamHeader*>(area_)->departed.fetch_add(1, std::memory_order_acq_rel) + 1 ==
           static_cast<uint32_t>(map_.size());
  }

 private:
  // Another member, as this one reaches it.
  struct LocalPeer {
    TeamMember::Lines* lines;
    ProcessBlock::Doorbell* doorbell;
  };
  using LocalPeers = std::vector<LocalPeer>;

  // Members' blocks start on a page.
  static constexpr size_t kHeaderPadding = 4096 - sizeof(TeamHeader);

  TeamHeader::Meeting& header() const {
    return static_cast<TeamHeader*>(area_)->meetings[static_cast<size_t>(series_)];
  }
  TeamMember& member(mob_rank_t rank) const { return members_[rank]; }
  TeamMember::Lines& lines_of(mob_rank_t rank) const {
    return *reinterpret_cast<TeamMember::Lines*>(first_lines_ +
                                                 static_cast<size_t>(rank) * sizeof(TeamMember));
  }
  TeamMember::Line& line_of(mob_rank_t rank) const {
    return lines_of(rank).lines[round_ % kRoundLines];
  }
  bool has_posted(mob_rank_t rank) const { return has_posted(lines_of(rank)); }
  bool has_posted(const TeamMember::Lines& lines) const {
    // Acquire pairs with the release in post().
    return lines.lines[round_ % kRoundLines].round.load(std::memory_order_acquire) == round_;
  }
  // Whether a member is at an end that excludes it from these rounds.
  bool has_left_these(mob_rank_t rank) const;
  // `lacks(rank)`: whether that member's part is awaited and is missing.
  template <typename Done, typename Lacks>
  mob_status_t wait_until(Done done, Lacks lacks, os::Wakeup wakeup = os::Wakeup::kRung);
  // For a wait that fails if a member leaves without having posted. A member that has posted may
  // leave before others know that all have.
  template <typename Done>
  mob_status_t wait_for_those_who_come(Done done) {
    return wait_until(done, [this](mob_rank_t member) { return !has_posted(member); });
  }
  // For a wait during which no member leaves, unless it made `done` impossible.
  template <typename Done>
  mob_status_t wait_for_all(Done done) {
    return wait_until(done, [](mob_rank_t) { return true; });
  }
  uint32_t take_place(Bulk bulk, size_t bytes);
  void fetch_next_place() const;
  void post();
  void ring_all();
  void tell_done_waiters();
  void find_local_peers();
  mob_status_t meet_by_flags(uint64_t expected_ns);
  mob_status_t meet_other_rows();
  mob_status_t meet_by_count();
  // Waits until all others have ended a round.
  mob_status_t await_done(uint32_t round) {
    return static_cast<int32_t>(all_done_ - round) >= 0 ? MOB_OK : await_done_slowly(round);
  }
  mob_status_t await_done_slowly(uint32_t round);

  const TeamServices& services_;
  const TeamMap& map_;
  const mob_rank_t rank_;
  const base::MeetBy meet_by_;
  bool posted_ = false;  // in this round
  bool broken_ = false;
  TeamFailure loss_;  // the failure that broke it, as this member has found
  const Series series_;
  void* const area_;
  TeamMember* const members_;
  char* const first_lines_;  // of the first member, of this series
  TeamMember::Lines* own_lines_ = nullptr;
  // Members whose flags this one reads first: all others in a small team; the others of its row in
  // a grid. In a grid also the members of other rows whose flags this one reads, and those that
  // read the flag of this one.
  LocalPeers local_peers_;
  LocalPeers other_rows_;
  LocalPeers onlookers_;
  // Round numbers wrap; only numbers close to each other are compared.
  uint32_t round_ = 0;
  uint32_t all_done_ = 0;    // all members are known to have ended this round
  size_t turn_ = 0;          // which place comes next
  Place place_;              // of the last round that used bulk memory
  Place used_[kRoundLines];  // by the last rounds
};

}  // namespace mobius::engine
