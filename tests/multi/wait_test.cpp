// SPDX-License-Identifier: BSD-3-Clause

// Waiting for words that other ranks change by plain puts.

#include <sched.h>

#include <atomic>
#include <climits>
#include <string>
#include <thread>

#include "fixture.h"

using mobius_test::barrier;
using mobius_test::expect_text;
using mobius_test::right_of;
using mobius_test::Shared;

namespace {

template <typename T>
const T* words_of(const Shared& memory) {
  return reinterpret_cast<const T*>(memory.local());
}

// One value for all words of `memory`.
template <typename T>
mob_wait_set_t set_of(const Shared& memory, size_t count, mob_type_t type, mob_compare_t compare,
                      const T* value, const int* excluded = nullptr) {
  return {memory.local(), count, type, compare, value, 1, excluded};
}

}  // namespace

TEST(Wait, APutOfEveryWidthIsNoticed) {
  constexpr int kTurns = 200;
  const Shared memory(64);
  const mob_rank_t to = right_of(mob_rank());
  for (int turn = 1; turn <= kTurns; ++turn) {
    const auto value = static_cast<uint32_t>(turn);
    EXPECT_EQ(mob_put8(to, memory.at(to), value), MOB_OK);
    EXPECT_EQ(mob_wait_until_u8(words_of<uint64_t>(memory), MOB_GE, value), MOB_OK);
    EXPECT_EQ(mob_put4(to, memory.at(to, 8), value), MOB_OK);
    EXPECT_EQ(mob_wait_until_i4(words_of<int32_t>(memory) + 2, MOB_GE, turn), MOB_OK);
  }
  barrier();
}

TEST(Wait, EveryComparisonOfEveryType) {
  const Shared memory(8);
  auto* const raw = memory.local();
  const auto check = [&](auto smaller, auto equal, auto larger, auto test) {
    std::memcpy(raw, &equal, sizeof equal);
    const auto* word = reinterpret_cast<const decltype(equal)*>(raw);
    struct {
      mob_compare_t compare;
      int with_smaller, with_equal, with_larger;
    } const cases[] = {{MOB_EQ, 0, 1, 0}, {MOB_NE, 1, 0, 1}, {MOB_GT, 1, 0, 0},
                       {MOB_GE, 1, 1, 0}, {MOB_LT, 0, 0, 1}, {MOB_LE, 0, 1, 1}};
    for (const auto& c : cases) {
      int done[3] = {-1, -1, -1};
      EXPECT_EQ(test(word, c.compare, smaller, &done[0]), MOB_OK);
      EXPECT_EQ(test(word, c.compare, equal, &done[1]), MOB_OK);
      EXPECT_EQ(test(word, c.compare, larger, &done[2]), MOB_OK);
      EXPECT_EQ(done[0], c.with_smaller) << c.compare;
      EXPECT_EQ(done[1], c.with_equal) << c.compare;
      EXPECT_EQ(done[2], c.with_larger) << c.compare;
    }
  };
  check(int32_t{-5}, int32_t{-1}, int32_t{3}, mob_test_until_i4);
  check(uint32_t{5}, UINT32_MAX - 1, UINT32_MAX, mob_test_until_u4);
  check(int64_t{INT64_MIN}, int64_t{-1}, int64_t{3}, mob_test_until_i8);
  check(uint64_t{5}, UINT64_MAX - 1, UINT64_MAX, mob_test_until_u8);
}

TEST(Wait, ForAllWordsOfASet) {
  const auto ranks = static_cast<size_t>(mob_size());
  const Shared memory(ranks * sizeof(int64_t));
  const size_t own = static_cast<size_t>(mob_rank()) * sizeof(int64_t);
  for (int64_t turn = 1; turn <= 50; ++turn) {
    for (mob_rank_t r = 0; r < mob_size(); ++r) {
      EXPECT_EQ(mob_put8(r, memory.at(r, own), static_cast<uint64_t>(-turn)), MOB_OK);
    }
    const int64_t wanted = -turn;
    const auto set = set_of(memory, ranks, MOB_INT64, MOB_LE, &wanted);
    EXPECT_EQ(mob_wait_until_all(&set), MOB_OK);
    int done = 0;
    EXPECT_EQ(mob_test_until_all(&set, &done), MOB_OK);
    EXPECT_EQ(done, 1);
  }
  barrier();
}

TEST(Wait, ForSomeUntilAllCame) {
  const auto ranks = static_cast<size_t>(mob_size());
  const Shared memory(ranks * sizeof(uint32_t));
  const size_t own = static_cast<size_t>(mob_rank()) * sizeof(uint32_t);
  std::vector<uint32_t> values(ranks);
  for (size_t i = 0; i < ranks; ++i) values[i] = static_cast<uint32_t>(i) + 7;
  std::vector<int> excluded(ranks, 0);
  const mob_wait_set_t set = {memory.local(), ranks, MOB_UINT32,     MOB_EQ,
                              values.data(),  0,     excluded.data()};
  for (mob_rank_t r = 0; r < mob_size(); ++r) {
    EXPECT_EQ(mob_put4(r, memory.at(r, own), static_cast<uint32_t>(mob_rank()) + 7), MOB_OK);
  }
  size_t came = 0;
  std::vector<size_t> indices(ranks);
  while (came < ranks && !HasFailure()) {
    size_t found = 0;
    EXPECT_EQ(mob_wait_until_some(&set, indices.data(), &found), MOB_OK);
    EXPECT_GE(found, 1u);
    for (size_t i = 0; i < found; ++i) {
      EXPECT_EQ(excluded[indices[i]], 0);
      EXPECT_TRUE(i == 0 || indices[i] > indices[i - 1]);
      excluded[indices[i]] = 1;
    }
    came += found;
  }
  EXPECT_EQ(came, ranks);
  // No word is left to wait for.
  size_t found = 5;
  EXPECT_EQ(mob_wait_until_some(&set, indices.data(), &found), MOB_OK);
  EXPECT_EQ(found, 0u);
  size_t index = 5;
  EXPECT_EQ(mob_wait_until_any(&set, &index), MOB_OK);
  EXPECT_EQ(index, ranks);
  EXPECT_EQ(mob_wait_until_all(&set), MOB_OK);
  barrier();
}

TEST(Wait, ForAnyWordPassesOverExcludedOnes) {
  const Shared memory(4 * sizeof(uint64_t));
  const mob_rank_t to = right_of(mob_rank());
  const uint64_t zero = 0;
  const int excluded[] = {1, 0, 0, 0};
  const auto set = set_of(memory, 4, MOB_UINT64, MOB_NE, &zero, excluded);
  EXPECT_EQ(mob_put8(to, memory.at(to), 1), MOB_OK);
  barrier();
  size_t index = 99;
  EXPECT_EQ(mob_test_until_any(&set, &index), MOB_OK);
  EXPECT_EQ(index, 4u);
  size_t indices[4] = {};
  EXPECT_EQ(mob_test_until_some(&set, indices, &index), MOB_OK);
  EXPECT_EQ(index, 0u);
  int done = 7;
  EXPECT_EQ(mob_test_until_all(&set, &done), MOB_OK);
  EXPECT_EQ(done, 0);
  barrier();
  EXPECT_EQ(mob_put8(to, memory.at(to, 16), 1), MOB_OK);
  EXPECT_EQ(mob_wait_until_any(&set, &index), MOB_OK);
  EXPECT_EQ(index, 2u);
  barrier();
}

TEST(Notify, ComesAfterThePutsBeforeIt) {
  constexpr size_t kWords = 100;
  const Shared memory(kWords * sizeof(uint64_t));
  const mob_rank_t to = right_of(mob_rank());
  const mob_rank_t from = mobius_test::left_of(mob_rank());
  uint32_t before = 0;
  EXPECT_EQ(mob_notify(to), MOB_OK);
  EXPECT_EQ(mob_notify_wait(from, &before), MOB_OK);
  int wrong = 0;
  for (uint32_t turn = 1; turn <= 100; ++turn) {
    const std::vector<uint64_t> data(kWords, turn);
    wrong += mob_put(to, memory.at(to), data.data(), kWords * sizeof(uint64_t)) != MOB_OK;
    wrong += mob_notify(to) != MOB_OK;
    uint32_t count = 0;
    wrong += mob_notify_wait(from, &count) != MOB_OK || count != before + turn;
    for (size_t i = 0; i < kWords; ++i) wrong += words_of<uint64_t>(memory)[i] != turn;
    barrier();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Notify, EveryoneNotifiesEveryoneAndThreadsShare) {
  constexpr uint32_t kEach = 20;
  for (mob_rank_t r = 0; r < mob_size(); ++r) {
    for (uint32_t i = 0; i < 2 * kEach; ++i) EXPECT_EQ(mob_notify(r), MOB_OK);
  }
  const auto take = [] {
    for (mob_rank_t r = 0; r < mob_size(); ++r) {
      for (uint32_t i = 0; i < kEach; ++i) EXPECT_EQ(mob_notify_wait(r, nullptr), MOB_OK);
    }
  };
  std::thread other(take);
  take();
  other.join();
  barrier();
}

TEST(WaitBadInput, RanksOutsideTheJob) {
  uint32_t count = 77;
  for (const mob_rank_t rank : {-1, mob_size(), INT_MAX, INT_MIN}) {
    EXPECT_EQ(mob_notify(rank), MOB_ERR_RANK);
    expect_text("mob_notify", "not in this job");
    EXPECT_EQ(mob_notify_wait(rank, &count), MOB_ERR_RANK);
    expect_text("mob_notify_wait", "not in this job");
  }
  EXPECT_EQ(count, 77u);
}

TEST(WaitBadInput, EveryArgument) {
  const Shared memory(64);
  const auto* word = words_of<uint64_t>(memory);
  const auto* odd = reinterpret_cast<const uint64_t*>(memory.local() + 4);
  const auto* odder = reinterpret_cast<const int32_t*>(memory.local() + 2);
  const auto unknown = static_cast<mob_compare_t>(MOB_COMPARE_COUNT);
  const auto negative = static_cast<mob_compare_t>(-1);
  EXPECT_EQ(mob_wait_until_u8(nullptr, MOB_EQ, 0), MOB_ERR_ARGUMENT);
  expect_text("mob_wait_until_u8", "null");
  EXPECT_EQ(mob_wait_until_u8(odd, MOB_EQ, 0), MOB_ERR_ARGUMENT);
  expect_text("mob_wait_until_u8", "aligned");
  EXPECT_EQ(mob_wait_until_i4(odder, MOB_EQ, 0), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_wait_until_u8(word, unknown, 0), MOB_ERR_ARGUMENT);
  expect_text("mob_wait_until_u8", "comparison 6");
  EXPECT_EQ(mob_wait_until_u8(word, negative, 0), MOB_ERR_ARGUMENT);
  int done = 3;
  EXPECT_EQ(mob_test_until_u8(nullptr, MOB_EQ, 0, &done), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_test_until_u8(odd, MOB_EQ, 0, &done), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_test_until_u8(word, unknown, 0, &done), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_test_until_u8(word, MOB_NE, 0, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(done, 3);
}

TEST(WaitBadInput, EveryMemberOfASet) {
  const Shared memory(64);
  const uint64_t zero = 0;
  const mob_wait_set_t good = set_of(memory, 2, MOB_UINT64, MOB_EQ, &zero);
  size_t index = 77;
  size_t indices[2] = {77, 77};
  int done = 77;
  const auto expect_refused = [&](const mob_wait_set_t* set, mob_status_t status) {
    EXPECT_EQ(mob_wait_until_all(set), status);
    EXPECT_EQ(mob_test_until_all(set, &done), status);
    EXPECT_EQ(mob_wait_until_any(set, &index), status);
    EXPECT_EQ(mob_test_until_any(set, &index), status);
    EXPECT_EQ(mob_wait_until_some(set, indices, &index), status);
    EXPECT_EQ(mob_test_until_some(set, indices, &index), status);
  };
  expect_refused(nullptr, MOB_ERR_ARGUMENT);
  mob_wait_set_t bad = good;
  bad.words = nullptr;
  expect_refused(&bad, MOB_ERR_ARGUMENT);
  bad.words = memory.local() + 4;
  expect_refused(&bad, MOB_ERR_ARGUMENT);
  bad = good;
  bad.values = nullptr;
  expect_refused(&bad, MOB_ERR_ARGUMENT);
  for (const int type : {static_cast<int>(MOB_INT16), static_cast<int>(MOB_DOUBLE), -1, 1000}) {
    bad = good;
    bad.type = static_cast<mob_type_t>(type);
    expect_refused(&bad, MOB_ERR_ARGUMENT);
  }
  bad = good;
  bad.compare = static_cast<mob_compare_t>(17);
  expect_refused(&bad, MOB_ERR_ARGUMENT);
  bad = good;
  bad.count = SIZE_MAX / 2;
  expect_refused(&bad, MOB_ERR_RANGE);
  EXPECT_EQ(mob_test_until_all(&good, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_wait_until_any(&good, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_test_until_any(&good, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_wait_until_some(&good, nullptr, &index), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_test_until_some(&good, indices, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(index, 77u);
  EXPECT_EQ(indices[0], 77u);
  EXPECT_EQ(done, 77);
  // A set without words needs no memory.
  const mob_wait_set_t empty = {nullptr, 0, MOB_INT32, MOB_EQ, nullptr, 0, nullptr};
  EXPECT_EQ(mob_wait_until_all(&empty), MOB_OK);
  EXPECT_EQ(mob_wait_until_any(&empty, &index), MOB_OK);
  EXPECT_EQ(index, 0u);
}

namespace {

std::atomic<uint64_t>* hook_flag = nullptr;

}  // namespace

// Rank 0 waits for a notification that rank 1 sends only once it has seen the hook of rank 0 run:
// while rank 0 spins, yields, and, in the second round, has slept.
TEST(WaitHook, RunsWhileTheThreadWaits) {
  if (mob_size() < 2) return;
  mob_mem_t mem = nullptr;
  ASSERT_EQ(mob_mem_alloc(64, &mem), MOB_OK);
  void* flag = nullptr;
  ASSERT_EQ(mob_mem_address(mem, 0, 0, &flag), MOB_OK);
  for (const uint64_t calls : {1, 500}) {
    if (mob_rank() == 0) {
      hook_flag = static_cast<std::atomic<uint64_t>*>(flag);
      hook_flag->store(0);
      barrier();
      uint64_t mine = 0;
      mob_wait_hook(
          [](void* count) {
            hook_flag->fetch_add(1);
            ++*static_cast<uint64_t*>(count);
          },
          &mine);
      EXPECT_EQ(mob_notify_wait(1, nullptr), MOB_OK) << mob_last_error();
      mob_wait_hook(nullptr, nullptr);
      EXPECT_GE(mine, calls);
      const uint64_t before = hook_flag->load();
      barrier();
      EXPECT_EQ(hook_flag->load(), before);
    } else {
      barrier();
      if (mob_rank() == 1) {
        uint64_t seen = 0;
        while (seen < calls) {
          ASSERT_EQ(mob_get8(0, flag, &seen), MOB_OK);
          sched_yield();
        }
        EXPECT_EQ(mob_notify(0), MOB_OK);
      }
      barrier();
    }
  }
  barrier();
  EXPECT_EQ(mob_mem_free(mem), MOB_OK);
}
