// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How the members of a team hand each other data: in rounds, through memory they share.
//
// Every collective call is a sequence of rounds that follows from its arguments alone, so all
// members count the same rounds. In a round a member may write its own line (a flag with a little
// data beside it) and its own bulk memory, post them, read those of others who posted, and end the
// round. Nothing in a round is answered: a member that only writes goes on at once, and looks at
// what the others have read no sooner than it comes to use the same memory again, several rounds
// later.
//
// Who may write into whose bulk memory other than the own is agreed on by the call that uses it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/settings.h"
#include "engine/segment/segment_layout.h"
#include "engine/team/team_failure.h"
#include "engine/team/team_map.h"
#include "engine/team/team_services.h"
#include "os/futex.h"

namespace mobius::engine {

// Data that fits beside the flag.
inline constexpr size_t kInlineBytes = 56;
// Data of one round otherwise, at most: while some read it, the next is written.
inline constexpr size_t kBulkBytes = size_t{30} << 10;

inline constexpr unsigned kRoundLines = 8;

// A team's area has room for two series of rounds, which do not touch each other: of its calls,
// and, in the world, of the end of the job. Who is at its end never takes part in a call of the
// others.
enum class Series { kCalls, kEnd };
inline constexpr size_t kSeries = 2;

// What the members of a team share: a header and one block per member. Valid as zeros.
struct TeamHeader {
  struct Meeting {
    alignas(64) std::atomic<uint32_t> arrived;  // in the meeting that is under way
    alignas(64) std::atomic<uint32_t> generation;
    alignas(64) std::atomic<uint32_t> done_waiters;  // members that wait for others' Lines::done
    std::atomic<TeamFailure> loss;                   // the first that a member has told of
  } meetings[kSeries];
  std::atomic<uint32_t> departed;  // members that will not look at the area again
};

struct TeamMember {
  struct Line {
    alignas(128) std::atomic<uint32_t> round;  // the last one posted here
    alignas(8) unsigned char data[kInlineBytes];
    alignas(64) std::atomic<uint32_t> row;  // of the last one that its row came to (GridBarrier)
  };
  struct Lines {
    Line lines[kRoundLines];                  // used in turn
    alignas(128) std::atomic<uint32_t> done;  // rounds that this member is through with
  } series[kSeries];
  alignas(4096) unsigned char bulk[2 * kBulkBytes];  // of the calls alone
};
static_assert(sizeof(TeamMember) == size_t{64} << 10);

class Rounds {
 public:
  enum class Role { kReads, kWrites };
  // Bulk memory of a round: none; the next, which is never that of the round before, and of rounds
  // of one size that of as many as there is room for; the same for a round in which all meet, of
  // two; or that of the round before, which stays readable.
  enum class Bulk { kNone, kNext, kMet, kSame };

  // A part of the bulk memory; of all members the same.
  struct Place {
    size_t begin = 0;
    size_t end = 0;

    bool overlaps(const Place& other) const { return begin < other.end && other.begin < end; }
  };

  // Where bulk memory of the `turn`th round that takes some (kNext, kMet) lies.
  static Place place_of(size_t turn, Bulk bulk, size_t bytes);

  // `area` is shared memory of area_bytes(map.size()), zero before the first member comes. The map
  // outlives this. Rounds of kEnd have no bulk memory.
  Rounds(const TeamServices& services, const TeamMap& map, mob_rank_t rank, void* area,
         Series series);

  static size_t area_bytes(mob_rank_t size) {
    return sizeof(TeamHeader) + kHeaderPadding + static_cast<size_t>(size) * sizeof(TeamMember);
  }

  // Starts a round. Who kWrites may write when it returns: all others are through with what was
  // there before. `bytes` of bulk memory of each member are used, up to kBulkBytes; all members say
  // the same. Waiting calls return MOB_ERR_PEER when a member died; the team is of no use then.
  mob_status_t begin(Role role, Bulk bulk, size_t bytes = 0);

  // Own data is complete. At most one of the three per round, by a member that kWrites.
  void post_to(mob_rank_t reader);
  void post_to_all();
  // Everyone posts to everyone, and returns when all have: what any member wrote before, here or
  // elsewhere, is visible to all after it.
  // Others who are expected within some time are worth spinning for so long, where there is a
  // processor for each, before one falls asleep and has to be woken.
  mob_status_t meet(uint64_t expected_ns = 0);

  // Whether members look at each other's flags in meet().
  bool meets_by_flags() const { return meet_by_ != base::MeetBy::kCount; }

  // Waits until another member has posted, or all others have.
  mob_status_t await(mob_rank_t rank);
  mob_status_t await_all();

  // This member reads nothing of the round any more.
  void end();

  // Data of a member in this round; the own one's to be written.
  unsigned char* line(mob_rank_t rank) const { return line_of(rank).data; }
  unsigned char* bulk(mob_rank_t rank) const { return member(rank).bulk + place_.begin; }

  // A round without data.
  mob_status_t barrier();

  // Whether a round was given up because a member died or left.
  bool is_broken() const { return broken_; }

  // Has the calls of all members fail from now on, those in which they are, too. Any member. What
  // was said first stays.
  void give_up(const TeamFailure& loss);
  // Why: as this member has found, or was told.
  TeamFailure loss() const;

  // Says, not collectively, that this member is done with the area; whether all are.
  bool depart() {
    // Both: who is last has seen the others' last use of the area.
    return static_cast<TeamHeader*>(area_)->departed.fetch_add(1, std::memory_order_acq_rel) + 1 ==
           static_cast<uint32_t>(map_.size());
  }

 private:
  // Another member as this one sees it.
  struct Mate {
    TeamMember::Lines* lines;
    ProcessBlock::Doorbell* doorbell;
  };
  using Mates = std::vector<Mate>;

  // Members start on a page.
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
    // Pairs with the release in post().
    return lines.lines[round_ % kRoundLines].round.load(std::memory_order_acquire) == round_;
  }
  // Whether a member is at its end, which has no part in these rounds.
  bool has_left_these(mob_rank_t rank) const;
  // `lacks(rank)`: the part of that member is awaited, and is not there.
  template <typename Done, typename Lacks>
  mob_status_t wait_until(Done done, Lacks lacks);
  // Who leaves without having come keeps it from being done. Who has come may leave before others
  // know that all have.
  template <typename Done>
  mob_status_t wait_for_those_who_come(Done done) {
    return wait_until(done, [this](mob_rank_t member) { return !has_posted(member); });
  }
  // Nobody leaves before `done`, unless it made it impossible.
  template <typename Done>
  mob_status_t wait_for_all(Done done) {
    return wait_until(done, [](mob_rank_t) { return true; });
  }
  uint32_t take_place(Bulk bulk, size_t bytes);
  void fetch_next_place() const;
  void post();
  void ring_all_after_fence();
  void tell_done_waiters_after_fence();
  void find_mates();
  mob_status_t meet_by_flags(uint64_t expected_ns);
  mob_status_t meet_other_rows();
  mob_status_t meet_by_count();
  // Waits until all others are done with a round.
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
  TeamFailure loss_;  // that broke it, as this member has found
  const Series series_;
  void* const area_;
  TeamMember* const members_;
  char* const first_lines_;  // the first member's, of this series
  TeamMember::Lines* own_lines_ = nullptr;
  // Whose flags are looked at, and who looks at the own one: all others in a small team; in a grid
  // those of the row. Then, in a grid, one member of each other row, and who looks at this one.
  Mates mates_;
  Mates across_;
  Mates onlookers_;
  // Numbers of rounds wrap; those compared are close to each other.
  uint32_t round_ = 0;
  uint32_t all_done_ = 0;    // everyone is known to be through with this one
  size_t turn_ = 0;          // which place comes next
  Place place_;              // of the last round that used bulk memory
  Place used_[kRoundLines];  // by the last rounds
};

}  // namespace mobius::engine
