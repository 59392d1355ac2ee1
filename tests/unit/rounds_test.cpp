// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/rounds.h"

#include <mobius/status.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/settings.h"
#include "engine/common/instrumentation.h"
#include "engine/common/peers.h"
#include "engine/progress/waiter.h"
#include "engine/segment/segment.h"
#include "fake_job.h"

namespace mobius::engine {
namespace {

using Bulk = Rounds::Bulk;
using Place = Rounds::Place;

constexpr size_t kSizes[] = {1,    56,   64,     200,    512,    513,    2048,
                             7680, 8192, 10'240, 12'000, 15'361, 26'000, kBulkBytes};

TEST(Rounds, PlacesAreInside) {
  for (size_t turn = 0; turn < 20; ++turn) {
    for (const Bulk bulk : {Bulk::kNext, Bulk::kMet}) {
      for (const size_t bytes : kSizes) {
        const Place place = Rounds::place_of(turn, bulk, bytes);
        EXPECT_EQ(place.end - place.begin, bytes);
        EXPECT_EQ(place.begin % 64, 0u);
        EXPECT_LE(place.end, sizeof TeamMember::bulk);
      }
    }
  }
}

// A member that waits for the readers of the round before would miss them: they have posted there,
// and now wait for that member.
TEST(Rounds, NoPlaceIsThatOfTheRoundBefore) {
  for (size_t turn = 0; turn < 20; ++turn) {
    for (const Bulk before : {Bulk::kNext, Bulk::kMet}) {
      for (const Bulk after : {Bulk::kNext, Bulk::kMet}) {
        for (const size_t first : kSizes) {
          for (const size_t second : kSizes) {
            EXPECT_FALSE(Rounds::place_of(turn, before, first)
                             .overlaps(Rounds::place_of(turn + 1, after, second)))
                << turn << ": " << first << ", " << second;
          }
        }
      }
    }
  }
}

TEST(Rounds, AMemberThatOnlyGivesHasAsManyPlacesAsFit) {
  const auto distinct = [](Bulk bulk, size_t bytes) {
    size_t turn = 1;
    while (!Rounds::place_of(0, bulk, bytes).overlaps(Rounds::place_of(turn, bulk, bytes))) ++turn;
    return turn;
  };
  EXPECT_EQ(distinct(Bulk::kNext, 100), kRoundLines);
  EXPECT_EQ(distinct(Bulk::kNext, 7680), kRoundLines);
  EXPECT_EQ(distinct(Bulk::kNext, 8192), 6u);
  EXPECT_EQ(distinct(Bulk::kNext, kBulkBytes), 2u);
  EXPECT_EQ(distinct(Bulk::kMet, 8192), 2u);
}

class TeamOfThreads {
 public:
  TeamOfThreads(mob_rank_t size, const char* meeting) : map_(TeamMap::strided(0, 1, size)) {
    const std::string setting = std::string("MOBIUS_MEETING=") + meeting;
    const char* const environment[] = {setting.c_str(), nullptr};
    EXPECT_EQ(settings_.load(environment), MOB_OK);
    give_memory(segment_, size);
    const size_t bytes = Rounds::area_bytes(size);
    area_.reset(std::aligned_alloc(4096, bytes));
    std::memset(area_.get(), 0, bytes);
  }

  FakeWaiter& waiter() { return waiter_; }
  ProcessBlock::Doorbell& doorbell(mob_rank_t rank) { return segment_.doorbell(rank); }

  // Calls member(rounds, rank) for each member at once.
  template <typename Member>
  void run(Member member) {
    std::vector<std::thread> threads;
    for (mob_rank_t rank = 0; rank < map_.size(); ++rank) {
      threads.emplace_back([this, rank, member] {
        Rounds rounds(services_, map_, rank, area_.get(), Series::kCalls);
        member(rounds, rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  base::Settings settings_;
  Instrumentation instrumentation_;
  FakeReports reports_;
  NothingRemapped remapped_;
  Peers peers_{reports_};
  Segment segment_{peers_, remapped_};
  FakeWaiter waiter_{peers_, segment_};
  const TeamServices services_{settings_,
                               instrumentation_,
                               peers_,
                               segment_,
                               untouched<KernelCopy>(),
                               waiter_,
                               untouched<Completion>(),
                               untouched<Network>(),
                               untouched<Scheduler>(),
                               untouched<Router>(),
                               untouched<RemoteObjects>(),
                               untouched<TeamMessages>()};
  const TeamMap map_;
  std::unique_ptr<void, Free> area_;
};

constexpr const char* kMeetings[] = {"flags", "grid", "count"};

// Each member sees in each round exactly the lines that the others wrote in that round.
TEST(RoundsOfThreads, EveryMemberSeesTheLinesOfTheRound) {
  constexpr mob_rank_t kMostMembers = 5;
  constexpr uint32_t kRounds = 100;
  for (const char* const meeting : kMeetings) {
    for (mob_rank_t size = 1; size <= kMostMembers; ++size) {
      SCOPED_TRACE(std::string(meeting) + ", " + std::to_string(size) + " members");
      TeamOfThreads team(size, meeting);
      std::atomic<uint32_t> wrong = 0;
      team.run([&](Rounds& rounds, mob_rank_t rank) {
        for (uint32_t round = 0; round < kRounds; ++round) {
          bool is_right = rounds.begin(Rounds::Role::kWrites, Bulk::kNone) == MOB_OK;
          const uint32_t mine = round * 100 + static_cast<uint32_t>(rank);
          std::memcpy(rounds.line(rank), &mine, sizeof mine);
          is_right &= rounds.meet() == MOB_OK;
          for (mob_rank_t other = 0; other < size; ++other) {
            uint32_t theirs = 0;
            std::memcpy(&theirs, rounds.line(other), sizeof theirs);
            is_right &= theirs == round * 100 + static_cast<uint32_t>(other);
          }
          rounds.end();
          if (!is_right) wrong.fetch_add(1);
        }
      });
      EXPECT_EQ(wrong.load(), 0u);
    }
  }
}

// A member that only writes runs ahead of its readers, but never overwrites lines that they still
// read.
TEST(RoundsOfThreads, TheWriterDoesNotOvertakeItsReaders) {
  constexpr mob_rank_t kMembers = 3;
  constexpr size_t kBytes = 20'000;  // two places in turn: fewer than there are lines
  constexpr uint32_t kRounds = 100;
  TeamOfThreads team(kMembers, "flags");
  std::atomic<uint32_t> wrong = 0;
  team.run([&](Rounds& rounds, mob_rank_t rank) {
    for (uint32_t round = 0; round < kRounds; ++round) {
      const auto value = static_cast<int>(round % 251);
      const bool writes = rank == 0;
      bool is_right = rounds.begin(writes ? Rounds::Role::kWrites : Rounds::Role::kReads,
                                   Bulk::kNext, kBytes) == MOB_OK;
      if (writes) {
        std::memset(rounds.bulk(0), value, kBytes);
        rounds.post_to_all();
      } else {
        is_right &= rounds.await(0) == MOB_OK;
        const unsigned char* const bulk = rounds.bulk(0);
        if (rank == 1) std::this_thread::yield();
        for (size_t i = 0; i < kBytes; ++i) is_right &= bulk[i] == value;
      }
      rounds.end();
      if (!is_right) wrong.fetch_add(1);
    }
  });
  EXPECT_EQ(wrong.load(), 0u);
}

// A sleeper looks at its condition now and then in any case, so no other test fails without this.
TEST(RoundsOfThreads, ThoseWhoComeRingTheSleepers) {
  constexpr mob_rank_t kMembers = 5;
  for (const char* const meeting : kMeetings) {
    SCOPED_TRACE(meeting);
    TeamOfThreads team(kMembers, meeting);
    for (mob_rank_t rank = 0; rank < kMembers; ++rank) team.doorbell(rank).sleepers.store(1);
    team.run([](Rounds& rounds, mob_rank_t) { EXPECT_EQ(rounds.barrier(), MOB_OK); });
    int rung = 0;
    for (mob_rank_t rank = 0; rank < kMembers; ++rank) {
      if (team.doorbell(rank).bell.load() != 0) ++rung;
    }
    // Where one counter is shared, the last to come rings all others.
    EXPECT_EQ(rung, std::string(meeting) == "count" ? kMembers - 1 : kMembers);
  }
}

// A call that one member gives up fails for the members that wait for it, and so does every later
// call.
TEST(RoundsOfThreads, ARoundThatAMemberGivesUpFailsForAll) {
  constexpr mob_rank_t kMembers = 3;
  for (const char* const meeting : kMeetings) {
    SCOPED_TRACE(meeting);
    TeamOfThreads team(kMembers, meeting);
    std::atomic<int> failed = 0;
    team.run([&](Rounds& rounds, mob_rank_t rank) {
      EXPECT_EQ(rounds.barrier(), MOB_OK);
      if (rank == 2) {
        rounds.give_up({TeamFailure::Kind::kNoMemory, 2});
        team.waiter().let_watch();
      } else {
        EXPECT_EQ(rounds.barrier(), MOB_ERR_PEER);
        EXPECT_NE(std::string(mob_last_error()).find("rank 2 has no memory left"),
                  std::string::npos)
            << mob_last_error();
        failed.fetch_add(1);
      }
      EXPECT_TRUE(rounds.is_broken());
      EXPECT_EQ(rounds.barrier(), MOB_ERR_PEER);
      EXPECT_NE(std::string(mob_last_error()).find("of no use any more"), std::string::npos)
          << mob_last_error();
    });
    EXPECT_EQ(failed.load(), 2);
  }
}

}  // namespace
}  // namespace mobius::engine
