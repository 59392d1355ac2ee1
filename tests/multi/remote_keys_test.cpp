// SPDX-License-Identifier: BSD-3-Clause

// Large puts, repeatedly to the same memory, while allocations are made, grow and are freed.
// Between hosts the origin asks the target for the first put to an allocation, and writes the later
// ones by itself. Shorter puts do so too, after first ones that are messages; of short gets, the
// first is a message.

#include <mobius/mobius.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "fixture.h"

namespace {

using mobius_test::barrier;
using mobius_test::holds;
using mobius_test::left_of;
using mobius_test::patterned;
using mobius_test::right_of;
using mobius_test::Shared;

using Bytes = std::vector<unsigned char>;

// More than is moved in messages by default, and less than that limit where the origin has a key.
constexpr size_t kLarge = (size_t{200} << 10) + 8;
constexpr size_t kShorter = (size_t{70} << 10) + 8;

void put(mob_rank_t rank, void* there, const Bytes& bytes) {
  EXPECT_EQ(mob_put(rank, there, bytes.data(), bytes.size()), MOB_OK) << mob_last_error();
}

// On one host there are no keys: there these tests say no more than other tests of puts.
int rounds(int all, int few) { return mobius_test::one_host() ? 4 : mobius_test::rounds(all, few); }

void flush(mob_rank_t rank) { EXPECT_EQ(mob_flush(rank), MOB_OK) << mob_last_error(); }

class Rkeys : public ::testing::TestWithParam<size_t> {
 protected:
  const size_t large_ = GetParam();
};

TEST_P(Rkeys, EachPutArrivesWhole) {
  // More than is written in one piece, and then more than is written at a time.
  constexpr size_t kAll = (size_t{20} << 20) + 40;
  const Shared memory(kAll + 1);
  const mob_rank_t target = right_of(mob_rank());
  const mob_rank_t origin = left_of(mob_rank());
  int round = 0;
  for (const size_t bytes : {large_, large_, 2 * large_ + 5, (size_t{5} << 20) + 3, kAll, large_}) {
    const size_t at = round % 2 == 0 ? 0 : kAll - bytes + 1;
    put(target, memory.at(target, at), patterned(bytes, mob_rank(), round));
    flush(target);
    barrier();
    EXPECT_TRUE(holds(memory.local() + at, patterned(bytes, origin, round), bytes)) << bytes;
    barrier();
    ++round;
  }
}

TEST_P(Rkeys, ManyAreUnderWayAtOnce) {
  constexpr size_t kMany = 24;
  const Shared memory(kMany * large_);
  const mob_rank_t target = right_of(mob_rank());
  for (int round = 0; round < 3; ++round) {
    const Bytes bytes = patterned(kMany * large_, mob_rank(), round);
    // Back to front; those of the first round together with puts that need a request.
    for (size_t i = kMany; i-- > 0;) {
      const unsigned char* from = bytes.data() + i * large_;
      EXPECT_EQ(mob_put_nbi(target, memory.at(target, i * large_), from, large_), MOB_OK);
    }
    flush(target);
    barrier();
    const Bytes expected = patterned(kMany * large_, left_of(mob_rank()), round);
    EXPECT_TRUE(holds(memory.local(), expected, expected.size())) << round;
    barrier();
  }
}

// Puts that are written without a request neither overtake puts that were sent as messages before a
// fence, nor are overtaken.
TEST_P(Rkeys, AFenceOrdersThemAndSmallPuts) {
  const Shared memory(large_);
  const mob_rank_t target = right_of(mob_rank());
  unsigned char* const there = memory.at(target);
  put(target, there, Bytes(large_, 0));
  flush(target);
  for (int round = 0; round < rounds(400, 40); ++round) {
    const auto early = static_cast<unsigned char>(round + 1);
    const auto late = static_cast<unsigned char>(round + 101);
    const bool is_large_last = round % 2 == 0;
    const Bytes small(64, is_large_last ? early : late);
    const Bytes large(large_, is_large_last ? late : early);
    const auto put_small = [&] {
      for (size_t at = 0; at + small.size() <= large_; at += 8 * small.size()) {
        EXPECT_EQ(mob_put_nbi(target, there + at, small.data(), small.size()), MOB_OK);
      }
    };
    const auto put_large = [&] {
      EXPECT_EQ(mob_put_nbi(target, there, large.data(), large.size()), MOB_OK);
    };
    is_large_last ? put_small() : put_large();
    EXPECT_EQ(mob_fence(), MOB_OK);
    is_large_last ? put_large() : put_small();
    flush(target);
    barrier();
    Bytes expected(large_, is_large_last ? late : early);
    for (size_t at = 0; !is_large_last && at + small.size() <= large_; at += 8 * small.size()) {
      std::memset(&expected[at], late, small.size());
    }
    EXPECT_TRUE(holds(memory.local(), expected, large_)) << round;
    barrier();
  }
}

// The fence belongs to one context, the later puts to another.
TEST_P(Rkeys, AFenceOrdersThemAndWhatOtherContextsPut) {
  const Shared memory(large_);
  const mob_rank_t target = right_of(mob_rank());
  put(target, memory.at(target), Bytes(large_, 0));
  flush(target);
  mob_context_t context = nullptr;
  ASSERT_EQ(mob_context_create(&context), MOB_OK);
  for (int round = 0; round < 20; ++round) {
    const Bytes small(64, static_cast<unsigned char>(round + 1));
    const Bytes large(large_, static_cast<unsigned char>(round + 101));
    EXPECT_EQ(mob_context_use(context), MOB_OK);
    EXPECT_EQ(mob_put_nbi(target, memory.at(target, 640), small.data(), small.size()), MOB_OK);
    EXPECT_EQ(mob_fence(), MOB_OK);
    EXPECT_EQ(mob_context_use(nullptr), MOB_OK);
    put(target, memory.at(target), large);
    flush(target);
    EXPECT_EQ(mob_context_use(context), MOB_OK);
    flush(target);
    EXPECT_EQ(mob_context_use(nullptr), MOB_OK);
    barrier();
    EXPECT_TRUE(holds(memory.local(), large, large_)) << round;
    barrier();
  }
  EXPECT_EQ(mob_context_free(context), MOB_OK);
}

// A rank that a signal informs finds the bytes.
TEST_P(Rkeys, ASignalFollowsItsBytes) {
  const Shared memory(large_ + 8);
  const mob_rank_t target = right_of(mob_rank());
  const mob_rank_t origin = left_of(mob_rank());
  auto* const word = reinterpret_cast<uint64_t*>(memory.local() + large_);
  auto* const word_there = reinterpret_cast<uint64_t*>(memory.at(target, large_));
  for (int round = 0; round < 12; ++round) {
    const Bytes bytes = patterned(large_, mob_rank(), round);
    if (round % 3 == 0) {
      put(target, memory.at(target), bytes);
      EXPECT_EQ(mob_fence(), MOB_OK);
      EXPECT_EQ(mob_put8(target, word_there, static_cast<uint64_t>(round + 1)), MOB_OK);
    } else {
      EXPECT_EQ(mob_put_signal(target, memory.at(target), bytes.data(), large_, word_there,
                               static_cast<uint64_t>(round + 1), MOB_SIGNAL_SET),
                MOB_OK);
    }
    EXPECT_EQ(mob_wait_until_u8(word, MOB_EQ, static_cast<uint64_t>(round + 1)), MOB_OK);
    EXPECT_TRUE(holds(memory.local(), patterned(large_, origin, round), large_)) << round;
    flush(target);
    barrier();
  }
}

// The next allocation has the place of the former one.
TEST_P(Rkeys, MemoryThatIsFreedIsNotWrittenAnyMore) {
  const mob_rank_t target = right_of(mob_rank());
  const mob_rank_t origin = left_of(mob_rank());
  for (int round = 0; round < rounds(200, 25); ++round) {
    const size_t bytes = large_ + static_cast<size_t>(round % 5) * 70'000;
    const Shared memory(bytes);
    for (int i = 0; i < 3; ++i) {
      put(target, memory.at(target), patterned(bytes, mob_rank(), round + i));
      flush(target);
      barrier();
      EXPECT_TRUE(holds(memory.local(), patterned(bytes, origin, round + i), bytes)) << round;
      barrier();
    }
  }
}

// A process outside the team may have a key too, and takes no part when the team frees the memory.
TEST_P(Rkeys, ProcessesOutsideTheTeamLetGo) {
  const mob_rank_t target = right_of(mob_rank());
  mob_team_t alone = nullptr;
  ASSERT_EQ(mob_team_split(MOB_TEAM_WORLD, mob_rank(), 0, &alone), MOB_OK) << mob_last_error();
  for (int round = 0; round < 10; ++round) {
    mob_mem_t memory = nullptr;
    ASSERT_EQ(mob_team_alloc(alone, large_, 0, &memory), MOB_OK) << mob_last_error();
    void* const there = mobius_test::exchange_address(mob_mem_local(memory));
    for (int i = 0; i < 2; ++i) put(target, there, patterned(large_, mob_rank(), round + i));
    flush(target);
    barrier();
    const Bytes expected = patterned(large_, left_of(mob_rank()), round + 1);
    EXPECT_TRUE(holds(static_cast<unsigned char*>(mob_mem_local(memory)), expected, large_));
    // One half after the other, while the holders of keys wait for something else.
    for (const int half : {0, 1}) {
      if ((round + mob_rank()) % 2 == half) {
        EXPECT_EQ(mob_mem_free(memory), MOB_OK) << mob_last_error();
      }
      barrier();
    }
  }
  EXPECT_EQ(mob_team_free(alone), MOB_OK);
}

TEST_P(Rkeys, OfMemoryThatGrows) {
  const mob_rank_t target = right_of(mob_rank());
  const mob_rank_t origin = left_of(mob_rank());
  mob_heap_t heap = nullptr;
  ASSERT_EQ(mob_heap_create(MOB_TEAM_WORLD, large_, 20 * large_, &heap), MOB_OK)
      << mob_last_error();
  std::vector<void*> blocks;
  for (int round = 0; round < 12; ++round) {
    void* block = nullptr;
    ASSERT_EQ(mob_heap_malloc(heap, large_, &block), MOB_OK) << mob_last_error();
    blocks.push_back(block);
    void* there = nullptr;
    ASSERT_EQ(mob_heap_address(heap, target, block, &there), MOB_OK) << mob_last_error();
    for (int i = 0; i < 2; ++i) {
      put(target, there, patterned(large_, mob_rank(), round + i));
      flush(target);
      barrier();
      EXPECT_TRUE(
          holds(static_cast<unsigned char*>(block), patterned(large_, origin, round + i), large_));
      barrier();
    }
  }
  for (void* block : blocks) EXPECT_EQ(mob_heap_free(heap, block), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_heap_destroy(heap), MOB_OK) << mob_last_error();
}

TEST_P(Rkeys, ThreadsShareThem) {
  constexpr size_t kThreads = 3;
  const Shared memory(kThreads * large_);
  const mob_rank_t target = right_of(mob_rank());
  for (int round = 0; round < 4; ++round) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int turn = 0; turn < 5; ++turn) {
          const Bytes bytes = patterned(large_, mob_rank(), round + turn, i * large_);
          put(target, memory.at(target, i * large_), bytes);
          flush(target);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    barrier();
    const Bytes expected = patterned(kThreads * large_, left_of(mob_rank()), round + 4);
    EXPECT_TRUE(holds(memory.local(), expected, expected.size())) << round;
    barrier();
  }
}

// The bytes of a get are different each time, at a place of an earlier get or at a new one.
TEST_P(Rkeys, EachGetIsOfNow) {
  const mob_rank_t target = right_of(mob_rank());
  Bytes exposed(large_);
  mob_exposed_t handle = nullptr;
  ASSERT_EQ(mob_expose(exposed.data(), large_, 0, &handle), MOB_OK) << mob_last_error();
  void* const exposed_there = mobius_test::exchange_address(exposed.data());
  for (int turn = 0; turn < 4; ++turn) {
    const Shared memory(2 * large_ + 1);
    for (int round = 0; round < 6; ++round) {
      const size_t at = round % 3 == 0 ? 0 : large_ + 1;
      const Bytes mine = patterned(large_, mob_rank(), turn * 10 + round);
      std::memcpy(memory.local() + at, mine.data(), large_);
      std::memcpy(exposed.data(), mine.data(), large_);
      barrier();
      Bytes got(large_);
      Bytes started(large_);
      Bytes from_exposed(large_);
      EXPECT_EQ(mob_get(target, memory.at(target, at), got.data(), large_), MOB_OK);
      EXPECT_EQ(mob_get_nbi(target, memory.at(target, at), started.data(), large_), MOB_OK);
      EXPECT_EQ(mob_get(target, exposed_there, from_exposed.data(), large_), MOB_OK);
      flush(target);
      const Bytes expected = patterned(large_, target, turn * 10 + round);
      EXPECT_TRUE(got == expected && started == expected && from_exposed == expected) << round;
      barrier();
    }
  }
  EXPECT_EQ(mob_withdraw(handle), MOB_OK) << mob_last_error();
  barrier();
}

// The owner, which frees the memory and reuses it, waits for gets of a process that has a key.
TEST_P(Rkeys, MemoryIsNotFreedWhileItIsGot) {
  if (mobius_test::one_host()) GTEST_SKIP() << "only between hosts";
  if (std::getenv("MOBIUS_RMA_KEYS") != nullptr || std::getenv("MOBIUS_PROVIDER") != nullptr) {
    GTEST_SKIP() << "there may be no keys for gets";
  }
  constexpr size_t kMany = 64;  // more than the buffers between the two hold
  const mob_rank_t target = right_of(mob_rank());
  mob_team_t alone = nullptr;
  ASSERT_EQ(mob_team_split(MOB_TEAM_WORLD, mob_rank(), 0, &alone), MOB_OK) << mob_last_error();
  const Shared started(8);
  auto* const word = reinterpret_cast<uint64_t*>(started.local());
  auto* const word_there = reinterpret_cast<uint64_t*>(started.at(target));
  for (int round = 1; round <= 10; ++round) {
    mob_mem_t memory = nullptr;
    ASSERT_EQ(mob_team_alloc(alone, large_, 0, &memory), MOB_OK) << mob_last_error();
    void* const there = mobius_test::exchange_address(mob_mem_local(memory));
    put(target, there, patterned(large_, mob_rank(), round));  // brings the key
    flush(target);
    std::vector<Bytes> got(kMany, Bytes(large_));
    for (Bytes& each : got) {
      EXPECT_EQ(mob_get_nbi(target, there, each.data(), large_), MOB_OK) << mob_last_error();
    }
    EXPECT_EQ(mob_put8(target, word_there, static_cast<uint64_t>(round)), MOB_OK);
    EXPECT_EQ(mob_wait_until_u8(word, MOB_GE, static_cast<uint64_t>(round)), MOB_OK);
    EXPECT_EQ(mob_mem_free(memory), MOB_OK) << mob_last_error();
    ASSERT_EQ(mob_team_alloc(alone, large_, 0, &memory), MOB_OK) << mob_last_error();
    std::memset(mob_mem_local(memory), 255, large_);
    flush(target);
    const Bytes expected = patterned(large_, mob_rank(), round);
    for (const Bytes& each : got) EXPECT_TRUE(each == expected) << round;
    EXPECT_EQ(mob_mem_free(memory), MOB_OK) << mob_last_error();
    barrier();
  }
  EXPECT_EQ(mob_team_free(alone), MOB_OK);
}

INSTANTIATE_TEST_SUITE_P(Of, Rkeys, ::testing::Values(kLarge, kShorter));

}  // namespace
