// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/waiter.h"

#include <gtest/gtest.h>

#include <thread>

#include "os/sync/futex.h"
#include "shared_processes.h"

namespace mobius::os {
namespace {

using mobius_test::Children;
using mobius_test::SharedZeros;

// Ends the wait at a given call of look().
class GiveUpAt : public Watch {
 public:
  explicit GiveUpAt(int look) : last_(look) {}
  mob_status_t look() override { return ++looks_ == last_ ? MOB_ERR_PEER : MOB_OK; }
  int looks() const { return looks_; }

 private:
  int last_;
  int looks_ = 0;
};

class Waiter : public testing::TestWithParam<WaitPolicy> {};

// Passes a counter to and fro; a lost wake-up would hang.
void play_on_a_word(WaitWord& word, uint32_t parity, uint32_t turns, const WaitPolicy& policy) {
  for (uint32_t turn = parity; turn < turns; turn += 2) {
    while (true) {
      const uint32_t seen = word.value.load(std::memory_order_acquire);
      if (seen == turn) break;
      wait_while_equal(word.value, seen, word.sleepers, policy);
    }
    word.value.store(turn + 1, std::memory_order_release);
    wake_all(word.value, word.sleepers);
  }
}

TEST_P(Waiter, NoWakeUpIsLostBetweenThreads) {
  constexpr uint32_t kTurns = 20'000;
  WaitWord word{};
  std::thread other([&] { play_on_a_word(word, 1, kTurns, GetParam()); });
  play_on_a_word(word, 0, kTurns, GetParam());
  other.join();
  EXPECT_EQ(word.value.load(), kTurns);
  EXPECT_EQ(word.sleepers.load(), 0u);
}

TEST_P(Waiter, NoWakeUpIsLostBetweenProcesses) {
  constexpr uint32_t kTurns = 20'000;
  SharedZeros<WaitWord> word;
  Children children;
  children.start([&] {
    play_on_a_word(*word, 1, kTurns, GetParam());
    return true;
  });
  play_on_a_word(*word, 0, kTurns, GetParam());
  children.expect_success();
  EXPECT_EQ(word->value.load(), kTurns);
  EXPECT_EQ(word->sleepers.load(), 0u);
}

struct Relay {
  std::atomic<uint64_t> turn;
  WaitWord bell;
};

// More players than processors share one bell, so most rings are for another player.
TEST_P(Waiter, NoWakeUpIsLostOnASharedBell) {
  constexpr uint64_t kPlayers = 5;
  constexpr uint64_t kTurns = 5'000;
  SharedZeros<Relay> relay;
  const auto play = [&](uint64_t player) {
    for (uint64_t turn = player; turn < kTurns; turn += kPlayers) {
      const mob_status_t status =
          wait_until([&] { return relay->turn.load(std::memory_order_acquire) == turn; },
                     relay->bell.value, relay->bell.sleepers, GetParam());
      if (status != MOB_OK) return false;
      relay->turn.store(turn + 1, std::memory_order_release);
      ring(relay->bell.value, relay->bell.sleepers);
    }
    return true;
  };
  Children children;
  for (uint64_t player = 1; player < kPlayers; ++player) {
    children.start([&play, player] { return play(player); });
  }
  EXPECT_TRUE(play(0));
  children.expect_success();
  EXPECT_EQ(relay->turn.load(), kTurns);
  EXPECT_EQ(relay->bell.sleepers.load(), 0u);
}

struct Given {
  std::atomic<uint32_t> given;
  std::atomic<bool> finished;
  WaitWord bell;
};

// Each piece of work is given only after the one before was done, by a waiter that may be asleep.
// The sides alternate, and neither fences between its change and its read of the sleepers.
TEST_P(Waiter, NoWakeUpIsLostWithoutAFence) {
  constexpr uint32_t kTurns = 2'000;
  struct Side {
    alignas(64) std::atomic<uint32_t> turn{0};
    std::atomic<uint32_t> bell{0};
    std::atomic<uint32_t> sleepers{0};
  } sides[2];
  const auto play = [&](Side& own, Side& other, bool first) {
    for (uint32_t turn = 1; turn <= kTurns; ++turn) {
      if (first) other.turn.store(turn, std::memory_order_release);
      if (first && other.sleepers.load(std::memory_order_relaxed) != 0) ring_sleepers(other.bell);
      wait_until([&] { return own.turn.load(std::memory_order_acquire) == turn; }, own.bell,
                 own.sleepers, GetParam(), nullptr, NothingToPoll{}, Wakeup::kUnfenced);
      if (!first) other.turn.store(turn, std::memory_order_release);
      if (!first && other.sleepers.load(std::memory_order_relaxed) != 0) ring_sleepers(other.bell);
    }
  };
  std::thread other([&] { play(sides[1], sides[0], false); });
  play(sides[0], sides[1], true);
  other.join();
  EXPECT_EQ(sides[0].turn.load(), kTurns);
}

TEST_P(Waiter, AChangeThatNobodyRingsForIsNoticed) {
  std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> bell{0};
  std::atomic<uint32_t> sleepers{0};
  std::thread other([&] {
    while (sleepers.load() == 0) std::this_thread::yield();
    word.store(1, std::memory_order_release);
  });
  EXPECT_EQ(wait_until([&] { return word.load(std::memory_order_acquire) == 1; }, bell, sleepers,
                       GetParam(), nullptr, NothingToPoll{}, Wakeup::kMaybe),
            MOB_OK);
  other.join();
  EXPECT_EQ(bell.load(), 0u);
}

TEST_P(Waiter, PollsWhileItWaitsAndIsWokenForWork) {
  constexpr uint32_t kPieces = 2'000;
  Given work{};
  WaitWord done_word{};
  std::thread giver([&] {
    for (uint32_t piece = 1; piece <= kPieces; ++piece) {
      work.given.store(piece, std::memory_order_release);
      ring(work.bell.value, work.bell.sleepers);
      wait_while_equal(done_word.value, piece - 1, done_word.sleepers, GetParam());
    }
    work.finished.store(true, std::memory_order_release);
    ring(work.bell.value, work.bell.sleepers);
  });
  uint32_t done = 0;
  const auto poll = [&] {
    if (work.given.load(std::memory_order_acquire) == done) return Work::kNone;
    done_word.value.store(++done, std::memory_order_release);
    wake_all(done_word.value, done_word.sleepers);
    return done % 2 == 0 ? Work::kSome : Work::kForNear;
  };
  EXPECT_EQ(wait_until([&] { return work.finished.load(std::memory_order_acquire); },
                       work.bell.value, work.bell.sleepers, GetParam(), nullptr, poll),
            MOB_OK);
  giver.join();
  EXPECT_EQ(done, kPieces);
}

TEST_P(Waiter, AWatchEndsAWaitOnAWord) {
  WaitWord word{};
  GiveUpAt watch(2);
  EXPECT_EQ(wait_while_equal(word.value, 0, word.sleepers, GetParam(), &watch), MOB_ERR_PEER);
  EXPECT_EQ(watch.looks(), 2);
  EXPECT_EQ(word.sleepers.load(), 0u);
}

TEST_P(Waiter, AWatchEndsAWaitOnACondition) {
  WaitWord bell{};
  GiveUpAt watch(1);
  EXPECT_EQ(wait_until([] { return false; }, bell.value, bell.sleepers, GetParam(), &watch),
            MOB_ERR_PEER);
  EXPECT_EQ(bell.sleepers.load(), 0u);
}

TEST_P(Waiter, AWatchLooksAlsoWhenThereIsWorkWithoutEnd) {
  WaitWord bell{};
  GiveUpAt watch(2);
  EXPECT_EQ(wait_until([] { return false; }, bell.value, bell.sleepers, GetParam(), &watch,
                       [] { return Work::kSome; }),
            MOB_ERR_PEER);
}

TEST_P(Waiter, AWatchThatIsContentLetsTheWaitGoOn) {
  WaitWord word{};
  GiveUpAt watch(0);
  std::thread other([&] {
    WaitWord never{};
    GiveUpAt soon(2);  // the other wait calls look() twice meanwhile
    wait_while_equal(never.value, 0, never.sleepers, {}, &soon);
    word.value.store(1, std::memory_order_release);
    wake_all(word.value, word.sleepers);
  });
  EXPECT_EQ(wait_while_equal(word.value, 0, word.sleepers, GetParam(), &watch), MOB_OK);
  other.join();
  EXPECT_EQ(word.sleepers.load(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Policies, Waiter,
                         testing::Values(WaitPolicy{.spin_ns = 0, .yields = 0},
                                         WaitPolicy{.spin_ns = 0, .yields = 4},
                                         WaitPolicy{.spin_ns = 20'000, .yields = 16}));

TEST(WaiterWithoutEnd, IsWatchedWhileItSpins) {
  const WaitPolicy spins_for_ever{.spin_ns = UINT64_C(1) << 62, .yields = 0};
  WaitWord word{};
  GiveUpAt watch(2);
  EXPECT_EQ(wait_while_equal(word.value, 0, word.sleepers, spins_for_ever, &watch), MOB_ERR_PEER);
}

TEST(WaiterThatYields, SleepsNoEarlierThanItsTimeIsOver) {
  const WaitPolicy policy = {.spin_ns = 1000, .yields = 1, .yield_ns = 5'000'000};
  Patience patience(policy, nullptr);
  const uint64_t begin = now_ns();
  while (patience.next() != Patience::Step::kSleep) {
  }
  EXPECT_GE(now_ns() - begin, policy.yield_ns);
  // Work that it found starts the wait over.
  EXPECT_EQ(patience.next(Work::kSome), Patience::Step::kAgain);
  const uint64_t again = now_ns();
  while (patience.next() != Patience::Step::kSleep) {
  }
  EXPECT_GE(now_ns() - again, policy.yield_ns);
}

TEST(WaiterThatAlwaysFindsWork, RunsItsHook) {
  const WaitPolicy policy = {.spin_ns = 1000, .yields = 1, .yield_ns = 5'000'000};
  int runs = 0;
  idle_hook = {[](void* count) { ++*static_cast<int*>(count); }, &runs};
  Patience patience(policy, nullptr);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(patience.next(Work::kSome), Patience::Step::kAgain);
  }
  idle_hook = {};
  EXPECT_GE(runs, 10);
}

TEST(WaiterThatYields, NotAtAllIfItNeedNot) {
  const WaitPolicy policy = {};
  EXPECT_EQ(Patience(policy, nullptr).next(), Patience::Step::kSleep);
}

TEST(WaiterWithoutPatience, DoesNotWaitForATrueCondition) {
  WaitWord word{};
  GiveUpAt never(1);
  EXPECT_EQ(wait_while_equal(word.value, 1, word.sleepers, {}, &never), MOB_OK);
  EXPECT_EQ(wait_until([] { return true; }, word.value, word.sleepers, {}, &never), MOB_OK);
  EXPECT_EQ(never.looks(), 0);
}

TEST(WaiterWithoutPatience, ASleeperThatWasKilledDoesNotHarmTheOthers) {
  SharedZeros<WaitWord> word;
  Children children;
  const pid_t killed = children.start([&] {
    wait_while_equal(word->value, 0, word->sleepers, {});
    return true;
  });
  while (word->sleepers.load() == 0) std::this_thread::yield();
  children.kill_one(killed);
  EXPECT_EQ(word->sleepers.load(), 1u);
  play_on_a_word(*word, 0, 1, {});
  children.start([&] {
    play_on_a_word(*word, 1, 1'000, {});
    return true;
  });
  play_on_a_word(*word, 2, 1'000, {});
  children.expect_success();
  EXPECT_EQ(word->value.load(), 1'000u);
}

}  // namespace
}  // namespace mobius::os
