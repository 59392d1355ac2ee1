// SPDX-License-Identifier: BSD-3-Clause

// Access that is only started: for its thread's transfers it is as good as access; its promises of
// order, completion and errors.

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "access.h"
#include "fixture.h"

namespace mobius_test {
namespace {

// A rank on another host, if all hosts have the same number of ranks.
mob_rank_t far_rank() { return (mob_rank() + mob_size() / 2) % mob_size(); }
bool has_far_rank() { return mob_host_size() * 2 <= mob_size(); }

uint64_t word_of(const unsigned char* at) {
  uint64_t value = 0;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

// Threads of all ranks keep two words of rank 0 equal, by both kinds of locking, and add to a
// third.
TEST(AccessNbi, ExcludesByItsMode) {
  constexpr int kThreads = 2;
  constexpr uint64_t kTimes = 120;
  const Shared memory(192);
  const Access access;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const uint64_t one = 1;
      for (uint64_t i = 0; i < kTimes; ++i) {
        const bool writes = i % 3 == 0;
        const mob_access_mode_t mode = writes ? MOB_EXCLUSIVE : MOB_SHARED;
        int bad = (i + static_cast<uint64_t>(t)) % 4 == 0
                      ? mob_access_lock(access, 0, mode, nullptr)
                      : mob_access_lock_nbi(access, 0, mode);
        uint64_t first = 0;
        uint64_t second = 1;
        if (i % 2 == 0) {
          bad |= mob_get8(0, memory.at(0), &first) | mob_get8(0, memory.at(0, 64), &second);
        } else {
          bad |= mob_get_nbi(0, memory.at(0), &first, 8);
          bad |= mob_get_nbi(0, memory.at(0, 64), &second, 8) | mob_flush(0);
        }
        if (first != second) ++wrong;
        if (writes) {
          bad |= mob_put8(0, memory.at(0), first + 1) | mob_put8(0, memory.at(0, 64), first + 1);
          bad |= mob_accumulate(0, memory.at(0, 128), &one, 1, MOB_UINT64, MOB_SUM);
        }
        bad |= mob_access_unlock(access, 0);
        if (bad != 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
  barrier();
  const uint64_t expected = static_cast<uint64_t>(mob_size()) * kThreads * ((kTimes + 2) / 3);
  for (const size_t offset : {size_t{0}, size_t{64}, size_t{128}}) {
    uint64_t total = 0;
    EXPECT_EQ(mob_get8(0, memory.at(0, offset), &total), MOB_OK);
    EXPECT_EQ(total, expected) << offset;
  }
  barrier();
}

// Only operations that fit in one message: every rank adds, by accumulates and by puts.
TEST(AccessNbi, UnlockedDataIsAtItsTarget) {
  constexpr uint64_t kTimes = 100;
  const Shared memory(64 * static_cast<size_t>(mob_size() + 1));
  const Access access;
  const uint64_t one = 1;
  for (uint64_t i = 1; i <= kTimes; ++i) {
    for (mob_rank_t target = 0; target < mob_size(); ++target) {
      const size_t own = 64 * static_cast<size_t>(mob_rank() + 1);
      ASSERT_EQ(mob_access_lock_nbi(access, target, MOB_EXCLUSIVE), MOB_OK);
      ASSERT_EQ(mob_put8(target, memory.at(target, own), i), MOB_OK);
      ASSERT_EQ(mob_accumulate(target, memory.at(target), &one, 1, MOB_UINT64, MOB_SUM), MOB_OK);
      ASSERT_EQ(mob_access_unlock(access, target), MOB_OK);
    }
  }
  barrier();
  EXPECT_EQ(word_of(memory.local()), static_cast<uint64_t>(mob_size()) * kTimes);
  for (mob_rank_t rank = 0; rank < mob_size(); ++rank) {
    EXPECT_EQ(word_of(memory.at(mob_rank(), 64 * static_cast<size_t>(rank + 1))), kTimes);
  }
  barrier();
}

// The same if the put continues an earlier put that was made without a lock.
TEST(AccessNbi, ANeighbourOfWhatWasPutBeforeWaitsForTheLock) {
  if (!has_far_rank()) GTEST_SKIP() << "needs another host";
  constexpr size_t kPiece = 48;
  constexpr size_t kPieces = 200;
  const mob_rank_t target = mob_size() / 2;  // on the host of rank 0
  const Shared memory((kPieces + 1) * kPiece);
  const Access access;
  const std::vector<unsigned char> ones((kPieces + 1) * kPiece, 1);
  const auto put = [&](size_t i) {
    ASSERT_EQ(mob_put_nbi(target, memory.at(target, i * kPiece), ones.data() + i * kPiece, kPiece),
              MOB_OK);
  };
  for (int round = 0; round < 20; ++round) {
    std::memset(memory.local(), 0, (kPieces + 1) * kPiece);
    if (mob_rank() == target) {
      ASSERT_EQ(mob_access_lock(access, target, MOB_EXCLUSIVE, nullptr), MOB_OK);
    }
    barrier();
    if (mob_rank() == 0) {
      for (size_t i = 0; i < kPieces; ++i) put(i);
      ASSERT_EQ(mob_access_lock_nbi(access, target, MOB_EXCLUSIVE), MOB_OK);
      put(kPieces);
      for (int poll = 0; poll < 1000; ++poll) ASSERT_EQ(mob_poll(), MOB_OK);
      ASSERT_EQ(mob_access_unlock(access, target), MOB_OK);
    } else if (mob_rank() == target) {
      const auto* last = memory.local() + kPieces * kPiece - sizeof(uint64_t);
      ASSERT_EQ(mob_wait_until_u8(reinterpret_cast<const uint64_t*>(last), MOB_NE, 0), MOB_OK);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(word_of(memory.local() + kPieces * kPiece), 0u) << round;
      ASSERT_EQ(mob_access_unlock(access, target), MOB_OK);
    }
    barrier();
    if (mob_rank() == target) {
      EXPECT_NE(word_of(memory.local() + kPieces * kPiece), 0u) << round;
    }
    barrier();
  }
}

TEST(AccessNbi, AFlushCompletesGetsAndKeepsTheAccess) {
  const Shared memory(256);
  const Access access;
  const mob_rank_t target = far_rank();
  for (const mob_access_mode_t mode : {MOB_SHARED, MOB_EXCLUSIVE}) {
    std::memset(memory.local(), static_cast<int>(mode) + 1, 64);
    barrier();
    std::array<unsigned char, 64> got{};
    uint64_t word = 0;
    ASSERT_EQ(mob_access_lock_nbi(access, target, mode), MOB_OK);
    ASSERT_EQ(mob_get_nbi(target, memory.at(target), got.data(), got.size()), MOB_OK);
    ASSERT_EQ(mob_flush(target), MOB_OK);
    EXPECT_EQ(got[5], static_cast<unsigned char>(mode) + 1);
    ASSERT_EQ(mob_put8(target, memory.at(target, 128), 7), MOB_OK);
    ASSERT_EQ(mob_get8(target, memory.at(target, 128), &word), MOB_OK);
    EXPECT_EQ(word, 7u);
    int acquired = 9;
    std::thread([&] {
      EXPECT_EQ(mob_access_trylock(access, target, MOB_EXCLUSIVE, &acquired, nullptr), MOB_OK);
    }).join();
    EXPECT_EQ(acquired, 0);
    ASSERT_EQ(mob_access_unlock(access, target), MOB_OK);
    barrier();
  }
}

// Locks of one thread are taken in the order of its calls. All ranks take them in the same order,
// so none deadlocks.
TEST(AccessNbi, SeveralLocksOfOneThread) {
  const Shared memory(64);
  const Access access;
  mob_mutexes_t mutexes = nullptr;
  ASSERT_EQ(mob_mutexes_create(MOB_TEAM_WORLD, 1, &mutexes), MOB_OK);
  constexpr uint64_t kTimes = 60;
  const uint64_t one = 1;
  const mob_rank_t last = mob_size() - 1;
  for (uint64_t i = 0; i < kTimes; ++i) {
    ASSERT_EQ(mob_access_lock_nbi(access, 0, MOB_EXCLUSIVE), MOB_OK);
    ASSERT_EQ(mob_accumulate(0, memory.at(0), &one, 1, MOB_UINT64, MOB_SUM), MOB_OK);
    if (last != 0) {
      ASSERT_EQ(mob_access_lock_nbi(access, last, MOB_EXCLUSIVE), MOB_OK);
      ASSERT_EQ(mob_accumulate(last, memory.at(last), &one, 1, MOB_UINT64, MOB_SUM), MOB_OK);
    }
    if (i % 2 == 0) {
      uint64_t seen = 0;
      ASSERT_EQ(mob_mutex_lock(mutexes, 0, last, nullptr), MOB_OK);
      ASSERT_EQ(mob_get8(last, memory.at(last, 8), &seen), MOB_OK);
      ASSERT_EQ(mob_put8(last, memory.at(last, 8), seen + 1), MOB_OK);
      ASSERT_EQ(mob_mutex_unlock(mutexes, 0, last), MOB_OK);
    }
    if (last != 0 && i % 3 == 0) {
      ASSERT_EQ(mob_access_unlock(access, 0), MOB_OK);
      ASSERT_EQ(mob_access_unlock(access, last), MOB_OK);
    } else {
      if (last != 0) {
        ASSERT_EQ(mob_access_unlock(access, last), MOB_OK);
      }
      ASSERT_EQ(mob_access_unlock(access, 0), MOB_OK);
    }
  }
  barrier();
  for (const mob_rank_t rank : {mob_rank_t{0}, last}) {
    uint64_t total = 0;
    EXPECT_EQ(mob_get8(rank, memory.at(rank), &total), MOB_OK);
    EXPECT_EQ(total, static_cast<uint64_t>(mob_size()) * kTimes);
  }
  uint64_t total = 0;
  EXPECT_EQ(mob_get8(last, memory.at(last, 8), &total), MOB_OK);
  EXPECT_EQ(total, static_cast<uint64_t>(mob_size()) * kTimes / 2);
  ASSERT_EQ(mob_mutexes_free(mutexes), MOB_OK);
}

// More than one message, of operations that may share a message and others; a get sees earlier
// puts.
TEST(AccessNbi, ManyOperationsOfAllKinds) {
  constexpr size_t kWords = 3000;
  constexpr size_t kLong = 200'000;
  const Shared memory(kWords * 64 + 2 * kLong);
  const Access access;
  const mob_rank_t target = right_of(mob_rank());
  const auto data = patterned(kLong, mob_rank(), 1);
  std::vector<uint64_t> values(kWords);
  std::vector<uint64_t> got(kWords);
  std::vector<unsigned char> long_got(kLong);
  for (const size_t count : {size_t{1}, size_t{10}, size_t{1000}, kWords}) {
    ASSERT_EQ(mob_access_lock_nbi(access, target, MOB_EXCLUSIVE), MOB_OK);
    for (size_t i = 0; i < count; ++i) {
      values[i] = 1000 * count + i;
      const size_t at = i * 7 % kWords * 64;
      ASSERT_EQ(mob_put_nbi(target, memory.at(target, at), &values[i], 8), MOB_OK);
      if (i % 5 == 0) {
        ASSERT_EQ(mob_fence(), MOB_OK);
      }
      ASSERT_EQ(mob_get_nbi(target, memory.at(target, at), &got[i], 8), MOB_OK);
    }
    const size_t bytes = kLong / 3000 * count;
    ASSERT_EQ(mob_put_nbi(target, memory.at(target, kWords * 64), data.data(), bytes), MOB_OK);
    ASSERT_EQ(mob_put(target, memory.at(target, kWords * 64 + kLong), data.data(), bytes), MOB_OK);
    // A long get may overtake a long put: no order holds between them without a flush.
    ASSERT_EQ(mob_flush(target), MOB_OK);
    mob_handle_t handle = MOB_HANDLE_DONE;
    ASSERT_EQ(mob_get_nb(target, memory.at(target, kWords * 64), long_got.data(), bytes, &handle),
              MOB_OK);
    ASSERT_EQ(mob_wait(&handle), MOB_OK);
    ASSERT_EQ(mob_access_unlock(access, target), MOB_OK);
    if (!reorders()) {
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(got[i], values[i]) << i;
      EXPECT_TRUE(holds(long_got.data(), data, bytes));
    }
    barrier();
    const auto theirs = patterned(kLong, left_of(mob_rank()), 1);
    EXPECT_TRUE(holds(memory.local() + kWords * 64, theirs, bytes));
    EXPECT_TRUE(holds(memory.local() + kWords * 64 + kLong, theirs, bytes));
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(word_of(memory.local() + i * 7 % kWords * 64), 1000 * count + i) << i;
    }
    barrier();
  }
}

// Updates that are waited for, alone and behind others.
TEST(AccessNbi, UpdatesOfWords) {
  const Shared memory(64);
  const Access access;
  constexpr uint64_t kTimes = 50;
  for (uint64_t i = 0; i < kTimes; ++i) {
    uint64_t old = 0;
    ASSERT_EQ(mob_access_lock_nbi(access, 0, MOB_SHARED), MOB_OK);
    ASSERT_EQ(mob_fetch_add8(0, memory.at(0), 1, &old), MOB_OK);
    ASSERT_EQ(mob_access_unlock(access, 0), MOB_OK);
    ASSERT_EQ(mob_access_lock_nbi(access, 0, MOB_EXCLUSIVE), MOB_OK);
    ASSERT_EQ(mob_get8(0, memory.at(0, 8), &old), MOB_OK);
    uint64_t swapped = 0;
    ASSERT_EQ(mob_compare_swap8(0, memory.at(0, 8), old, old + 1, &swapped), MOB_OK);
    EXPECT_EQ(swapped, old);
    ASSERT_EQ(mob_access_unlock(access, 0), MOB_OK);
  }
  barrier();
  for (const size_t offset : {size_t{0}, size_t{8}}) {
    uint64_t total = 0;
    EXPECT_EQ(mob_get8(0, memory.at(0, offset), &total), MOB_OK);
    EXPECT_EQ(total, static_cast<uint64_t>(mob_size()) * kTimes) << offset;
  }
  barrier();
}

// A flush of another thread does not wait for the access.
TEST(AccessNbi, OtherThreadsDoNotWaitForIt) {
  const Shared memory(64);
  const Access access;
  const mob_rank_t target = far_rank();
  ASSERT_EQ(mob_access_lock_nbi(access, target, MOB_EXCLUSIVE), MOB_OK);
  ASSERT_EQ(mob_put8(target, memory.at(target), 5), MOB_OK);
  std::thread([&] {
    EXPECT_EQ(mob_put8(target, memory.at(target, 8), 6), MOB_OK);
    EXPECT_EQ(mob_flush_all(), MOB_OK);
    EXPECT_EQ(mob_fence(), MOB_OK);
    uint64_t got = 0;
    EXPECT_EQ(mob_get8(target, memory.at(target, 8), &got), MOB_OK);
    EXPECT_EQ(got, 6u);
  }).join();
  ASSERT_EQ(mob_access_unlock(access, target), MOB_OK);
  barrier();
  EXPECT_EQ(word_of(memory.local()), 5u);
  barrier();
}

// The access waits for its present holder even if the thread makes no transfers.
TEST(AccessNbi, WithoutTransfersItIsGainedOnce) {
  const Shared memory(64);
  const Access access;
  const mob_rank_t target = far_rank();
  for (int i = 0; i < 10; ++i) {
    const mob_access_mode_t mode = i % 2 == 0 ? MOB_EXCLUSIVE : MOB_SHARED;
    std::atomic<bool> is_over{false};
    ASSERT_EQ(mob_access_lock(access, mob_rank(), MOB_EXCLUSIVE, nullptr), MOB_OK);
    barrier();
    std::thread other([&] {
      EXPECT_EQ(mob_access_lock_nbi(access, target, mode), MOB_OK);
      EXPECT_EQ(mob_access_unlock(access, target), MOB_OK);
      is_over = true;
    });
    if (!same_host(target)) {
      ASSERT_EQ(mob_get8(target, memory.at(target), reinterpret_cast<uint64_t*>(memory.local())),
                MOB_OK);
      EXPECT_FALSE(is_over);
    }
    barrier();
    ASSERT_EQ(mob_access_unlock(access, mob_rank()), MOB_OK);
    other.join();
    EXPECT_TRUE(is_over);
    barrier();
  }
}

TEST(AccessNbi, AnErrorOfOneLeavesTheOthersAndEndsTheAccess) {
  if (!has_far_rank()) GTEST_SKIP() << "on one host the call itself fails";
  const Shared memory(64);
  const Access access;
  const mob_rank_t target = far_rank();
  ASSERT_EQ(mob_access_lock_nbi(access, target, MOB_EXCLUSIVE), MOB_OK);
  ASSERT_EQ(mob_put8(target, memory.at(target), 1), MOB_OK);
  const uint64_t lost = 1;
  ASSERT_EQ(mob_put(target, reinterpret_cast<void*>(64), &lost, 8), MOB_OK);
  ASSERT_EQ(mob_put8(target, memory.at(target, 8), 2), MOB_OK);
  EXPECT_EQ(mob_access_unlock(access, target), MOB_ERR_RANGE);
  EXPECT_NE(std::strstr(mob_last_error(), "not in one of its allocations"), nullptr)
      << mob_last_error();
  EXPECT_EQ(mob_access_unlock(access, target), MOB_ERR_STATE);
  EXPECT_EQ(mob_flush(target), MOB_OK);
  // If an operation is waited for, its call reports the error, and the access is gained.
  uint64_t got = 0;
  ASSERT_EQ(mob_access_lock_nbi(access, target, MOB_SHARED), MOB_OK);
  EXPECT_EQ(mob_get(target, reinterpret_cast<void*>(64), &got, 8), MOB_ERR_RANGE);
  EXPECT_EQ(mob_access_unlock(access, target), MOB_OK);
  barrier();
  EXPECT_EQ(word_of(memory.local()), 1u);
  EXPECT_EQ(word_of(memory.local() + 8), 2u);
  barrier();
}

TEST(AccessNbi, BadInput) {
  const mob_rank_t target = far_rank();
  mob_access_t access = nullptr;
  ASSERT_EQ(mob_access_create(MOB_TEAM_WORLD, &access), MOB_OK);
  EXPECT_EQ(mob_access_lock_nbi(nullptr, target, MOB_SHARED), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_access_lock_nbi(access, mob_size(), MOB_SHARED), MOB_ERR_RANK);
  EXPECT_EQ(mob_access_lock_nbi(access, target, static_cast<mob_access_mode_t>(7)),
            MOB_ERR_ARGUMENT);
  EXPECT_NE(std::strstr(mob_last_error(), "mob_access_lock_nbi: mode 7"), nullptr);
  barrier();
  ASSERT_EQ(mob_access_lock_nbi(access, target, MOB_EXCLUSIVE), MOB_OK);
  EXPECT_EQ(mob_access_free(access), MOB_ERR_STATE);
  EXPECT_EQ(mob_access_lock_nbi(access, target, MOB_SHARED), MOB_ERR_STATE);
  EXPECT_NE(std::strstr(mob_last_error(), "already"), nullptr) << mob_last_error();
  EXPECT_EQ(mob_access_unlock(access, target), MOB_OK);
  EXPECT_EQ(mob_access_unlock(access, target), MOB_ERR_STATE);
  EXPECT_EQ(mob_access_free(access), MOB_OK) << mob_last_error();
}

}  // namespace mobius_test
