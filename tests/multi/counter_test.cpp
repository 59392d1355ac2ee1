// SPDX-License-Identifier: BSD-3-Clause

// Completion counters, and signal words.

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "errors.h"
#include "fixture.h"
#include "serve.h"

using mobius_test::barrier;
using mobius_test::expect_error;
using mobius_test::Shared;

namespace {

// A counter of every rank, freed when no operation counts it any more.
class SharedCounter {
 public:
  SharedCounter() : handles_(sizeof(mob_counter_t)) {
    EXPECT_EQ(mob_counter_create(&own_), MOB_OK) << mob_last_error();
    std::memcpy(handles_.local(), &own_, sizeof own_);
    barrier();
  }
  ~SharedCounter() {
    barrier();
    EXPECT_EQ(mob_counter_free(own_), MOB_OK) << mob_last_error();
  }
  SharedCounter(const SharedCounter&) = delete;
  SharedCounter& operator=(const SharedCounter&) = delete;

  mob_counter_t own() const { return own_; }
  mob_counter_t of(mob_rank_t rank) const {
    mob_counter_t counter = nullptr;
    EXPECT_EQ(mob_get(rank, handles_.at(rank), &counter, sizeof counter), MOB_OK);
    return counter;
  }

 private:
  Shared handles_;
  mob_counter_t own_ = nullptr;
};

uint64_t value_of(mob_counter_t counter) {
  uint64_t value = UINT64_MAX;
  EXPECT_EQ(mob_counter_get(counter, &value), MOB_OK) << mob_last_error();
  return value;
}

}  // namespace

TEST(Counters, EveryKindOfTransferCountsAllThree) {
  const SharedCounter target_counter;
  const Shared memory(256);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  mob_counter_t origin = nullptr;
  mob_counter_t completion = nullptr;
  EXPECT_EQ(mob_counter_create(&origin), MOB_OK);
  EXPECT_EQ(mob_counter_create(&completion), MOB_OK);
  std::vector<int64_t> local(8, 1);
  std::vector<int64_t> fetched(8);
  uint64_t started = 0;
  for (const mob_kind_t kind : {MOB_PUT, MOB_GET, MOB_ACCUMULATE, MOB_FETCH_ACCUMULATE}) {
    for (const size_t bytes : {size_t{0}, size_t{64}}) {
      mob_transfer_t transfer{};
      transfer.kind = kind;
      transfer.rank = target;
      transfer.remote = memory.at(target, static_cast<size_t>(kind) * 64);
      transfer.local = local.data();
      transfer.bytes = bytes;
      transfer.type = MOB_INT64;
      transfer.fetched = fetched.data();
      transfer.origin_counter = origin;
      transfer.completion_counter = completion;
      transfer.target_counter = target_counter.of(target);
      mob_handle_t handle = MOB_HANDLE_DONE;
      EXPECT_EQ(mob_transfer(&transfer), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_transfer_nb(&transfer, &handle), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_wait(&handle), MOB_OK);
      EXPECT_EQ(mob_transfer_nbi(&transfer), MOB_OK) << mob_last_error();
      started += 3;
    }
  }
  uint64_t left = 99;
  EXPECT_EQ(mob_counter_wait(origin, started, &left), MOB_OK);
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(mob_counter_wait(completion, started - 1, &left), MOB_OK);
  EXPECT_LE(left, 1u);  // the last one may be complete at the origin and not yet at the target
  EXPECT_EQ(mob_flush(target), MOB_OK);
  EXPECT_EQ(value_of(completion), 1u);
  // The left neighbour does here what this rank does at its right neighbour.
  EXPECT_EQ(mob_counter_wait(target_counter.own(), started, &left), MOB_OK);
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(mob_flush_all(), MOB_OK);
  EXPECT_EQ(mob_counter_free(origin), MOB_OK);
  EXPECT_EQ(mob_counter_free(completion), MOB_OK);
}

// A thread that waited for the target counter finds the data, without any other synchronisation.
TEST(Counters, TargetCounterComesAfterTheData) {
  constexpr size_t kBytes = 2000;
  const SharedCounter arrived;
  const SharedCounter free_again;
  const Shared memory(kBytes);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  const mob_rank_t origin = mobius_test::left_of(mob_rank());
  mob_transfer_t nothing{};
  nothing.rank = origin;
  nothing.target_counter = free_again.of(origin);
  for (int round = 0; round < 100; ++round) {
    auto data = mobius_test::patterned(kBytes, mob_rank(), round);
    mob_transfer_t transfer{};
    transfer.rank = target;
    transfer.remote = memory.at(target);
    transfer.local = data.data();
    transfer.bytes = kBytes;
    transfer.target_counter = arrived.of(target);
    EXPECT_EQ(mob_transfer(&transfer), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_counter_wait(arrived.own(), 1, nullptr), MOB_OK);
    EXPECT_TRUE(
        mobius_test::holds(memory.local(), mobius_test::patterned(kBytes, origin, round), kBytes));
    EXPECT_EQ(mob_transfer(&nothing), MOB_OK);
    EXPECT_EQ(mob_counter_wait(free_again.own(), 1, nullptr), MOB_OK);
  }
}

// Several waiting threads continue as far as the counter suffices for each of them.
TEST(Counters, WaitsOfSeveralThreadsShareACounter) {
  const SharedCounter counter;
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  mob_transfer_t nothing{};
  nothing.rank = target;
  nothing.target_counter = counter.of(target);
  std::atomic<uint64_t> taken{0};
  {
    std::vector<std::jthread> threads;
    for (uint64_t amount = 1; amount <= 3; ++amount) {
      threads.emplace_back([&, amount] {
        for (int i = 0; i < 50; ++i) {
          EXPECT_EQ(mob_counter_wait(counter.own(), amount, nullptr), MOB_OK);
          taken += amount;
        }
      });
    }
    for (int i = 0; i < 50 * (1 + 2 + 3); ++i) EXPECT_EQ(mob_transfer(&nothing), MOB_OK);
  }
  EXPECT_EQ(taken.load(), 300u);
  EXPECT_EQ(value_of(counter.own()), 0u);
}

TEST(Counters, SetWakesWaiters) {
  mob_counter_t counter = nullptr;
  EXPECT_EQ(mob_counter_create(&counter), MOB_OK);
  uint64_t left = 0;
  {
    const std::jthread waiter([&] { EXPECT_EQ(mob_counter_wait(counter, 7, &left), MOB_OK); });
    EXPECT_EQ(mob_counter_set(counter, 10), MOB_OK);
  }
  EXPECT_EQ(left, 3u);
  EXPECT_EQ(mob_counter_wait(counter, 0, &left), MOB_OK);
  EXPECT_EQ(value_of(counter), 3u);
  EXPECT_EQ(mob_counter_free(counter), MOB_OK);
  barrier();
}

TEST(Counters, AreFreshAndDistinct) {
  std::set<mob_counter_t> all;
  for (int i = 0; i < 300; ++i) {
    mob_counter_t counter = nullptr;
    EXPECT_EQ(mob_counter_create(&counter), MOB_OK);
    EXPECT_EQ(value_of(counter), 0u);
    EXPECT_EQ(mob_counter_set(counter, 1), MOB_OK);
    all.insert(counter);
  }
  EXPECT_EQ(all.size(), 300u);
  for (mob_counter_t counter : all) EXPECT_EQ(mob_counter_free(counter), MOB_OK);
  mob_counter_t again = nullptr;
  EXPECT_EQ(mob_counter_create(&again), MOB_OK);
  EXPECT_EQ(value_of(again), 0u);
  EXPECT_EQ(mob_counter_free(again), MOB_OK);
  barrier();
}

namespace {

// Polls the caller's own memory, as a receiver does.
void await(const Shared& memory, size_t offset, uint64_t expected) {
  for (uint64_t seen = ~expected; seen != expected; std::this_thread::yield()) {
    mobius_test::serve_other_hosts();
    EXPECT_EQ(mob_get8(mob_rank(), memory.at(mob_rank(), offset), &seen), MOB_OK);
  }
}

}  // namespace

// Places are used again, handles are not.
TEST(Counters, OneThatWasFreedIsNotTakenForAnother) {
  mob_counter_t before = nullptr;
  EXPECT_EQ(mob_counter_create(&before), MOB_OK);
  EXPECT_EQ(mob_counter_free(before), MOB_OK);
  for (int i = 0; i < 10; ++i) {
    mob_counter_t now = nullptr;
    EXPECT_EQ(mob_counter_create(&now), MOB_OK);
    EXPECT_NE(now, before);
    expect_error(mob_counter_free(before), MOB_ERR_HANDLE, "mob_counter_free",
                 "not a live counter");
    expect_error(mob_counter_set(before, 3), MOB_ERR_HANDLE, "mob_counter_set", "freed before");
    EXPECT_EQ(value_of(now), 0u);
    EXPECT_EQ(mob_counter_free(now), MOB_OK) << mob_last_error();
    before = now;
  }
}

TEST(Signals, PutSignalComesAfterTheData) {
  constexpr size_t kBytes = 1000;
  const Shared memory(kBytes + 24);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  const mob_rank_t origin = mobius_test::left_of(mob_rank());
  auto* word = reinterpret_cast<uint64_t*>(memory.at(target, kBytes));
  auto* answer = reinterpret_cast<uint64_t*>(memory.at(origin, kBytes + 8));
  for (int round = 1; round <= 100; ++round) {
    const auto number = static_cast<uint64_t>(round);
    const auto data = mobius_test::patterned(kBytes, mob_rank(), round);
    const bool set = round % 2 == 0;
    EXPECT_EQ(mob_put_signal(target, memory.at(target), data.data(), kBytes, word, set ? number : 1,
                             set ? MOB_SIGNAL_SET : MOB_SIGNAL_ADD),
              MOB_OK)
        << mob_last_error();
    await(memory, kBytes, number);
    EXPECT_TRUE(
        mobius_test::holds(memory.local(), mobius_test::patterned(kBytes, origin, round), kBytes));
    EXPECT_EQ(mob_put_signal(origin, nullptr, nullptr, 0, answer, 1, MOB_SIGNAL_ADD), MOB_OK);
    await(memory, kBytes + 8, number);
  }
  barrier();
}

// The owner may overwrite data that it was told has been read.
TEST(Signals, GetSignalComesAfterTheDataHasLeft) {
  constexpr size_t kBytes = 1000;
  const Shared memory(kBytes + 16);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  auto* word = reinterpret_cast<uint64_t*>(memory.at(target, kBytes));
  std::vector<unsigned char> got(kBytes);
  for (int round = 1; round <= 30; ++round) {
    const auto own = mobius_test::patterned(kBytes, mob_rank(), round);
    std::memcpy(memory.local(), own.data(), kBytes);
    barrier();
    EXPECT_EQ(
        mob_get_signal(target, memory.at(target), got.data(), kBytes, word, 1, MOB_SIGNAL_ADD),
        MOB_OK)
        << mob_last_error();
    await(memory, kBytes, static_cast<uint64_t>(round));
    std::memset(memory.local(), 0xEE, kBytes);
    EXPECT_EQ(got, mobius_test::patterned(kBytes, target, round));
  }
  barrier();
}

namespace {

uint64_t load(const uint64_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }

// Puts and gets that count words, at a target's address of any kind.
void count_words_at(unsigned char* remote, uint64_t* remote_word) {
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  uint64_t origin = 0;
  uint64_t completion = 0;
  constexpr uint64_t kTimes = 50;
  for (uint64_t i = 0; i < kTimes; ++i) {
    const uint64_t data = 1000 * static_cast<uint64_t>(mob_rank()) + i;
    EXPECT_EQ(
        mob_put_counted(target, remote, &data, sizeof data, remote_word, &origin, &completion),
        MOB_OK)
        << mob_last_error();
    EXPECT_EQ(mob_wait_until_u8(&origin, MOB_EQ, 2 * i + 1), MOB_OK);
    EXPECT_EQ(mob_wait_until_u8(&completion, MOB_EQ, 2 * i + 1), MOB_OK);
    uint64_t back = 0;
    EXPECT_EQ(
        mob_get_counted(target, remote, &back, sizeof back, remote_word, &origin, &completion),
        MOB_OK)
        << mob_last_error();
    EXPECT_EQ(mob_wait_until_u8(&origin, MOB_EQ, 2 * i + 2), MOB_OK);
    EXPECT_EQ(back, data);
    EXPECT_EQ(mob_wait_until_u8(&completion, MOB_EQ, 2 * i + 2), MOB_OK);
  }
  // Only counting.
  EXPECT_EQ(mob_put_counted(target, nullptr, nullptr, 0, remote_word, &origin, nullptr), MOB_OK);
  EXPECT_EQ(mob_flush_all(), MOB_OK);
  EXPECT_EQ(load(origin), 2 * kTimes + 1);
}

}  // namespace

TEST(CountedWords, OfAllocatedMemory) {
  const Shared memory(64);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  count_words_at(memory.at(target), reinterpret_cast<uint64_t*>(memory.at(target, 32)));
  const auto* word = reinterpret_cast<const uint64_t*>(memory.local() + 32);
  EXPECT_EQ(mob_wait_until_u8(word, MOB_EQ, 101), MOB_OK);
  barrier();
}

TEST(CountedWords, OfExposedMemory) {
  struct {
    unsigned char data[32];
    uint64_t word;
  } stack = {};
  mob_exposed_t exposed = nullptr;
  EXPECT_EQ(mob_expose(&stack, sizeof stack, 0, &exposed), MOB_OK);
  std::vector<void*> all(static_cast<size_t>(mob_size()));
  EXPECT_EQ(mob_publish(MOB_TEAM_WORLD, &stack, all.data()), MOB_OK);
  auto* theirs =
      static_cast<unsigned char*>(all[static_cast<size_t>(mobius_test::right_of(mob_rank()))]);
  count_words_at(theirs, reinterpret_cast<uint64_t*>(theirs + 32));
  EXPECT_EQ(mob_wait_until_u8(&stack.word, MOB_EQ, 101), MOB_OK);
  barrier();
  EXPECT_EQ(mob_withdraw(exposed), MOB_OK);
}

TEST(CountedWords, OfADescribedTransfer) {
  const Shared memory(64);
  uint64_t origin = 0;
  uint64_t completion = 0;
  const int64_t local[4] = {1, 2, 3, 4};
  mob_transfer_t transfer{};
  transfer.kind = MOB_ACCUMULATE;
  transfer.rank = mobius_test::right_of(mob_rank());
  transfer.remote = memory.at(transfer.rank);
  transfer.local = const_cast<int64_t*>(local);
  transfer.bytes = sizeof local;
  transfer.type = MOB_INT64;
  transfer.op = MOB_SUM;
  transfer.origin_word = &origin;
  transfer.completion_word = &completion;
  EXPECT_EQ(mob_transfer_nbi(&transfer), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_wait_until_u8(&origin, MOB_EQ, 1), MOB_OK);
  EXPECT_EQ(mob_wait_until_u8(&completion, MOB_EQ, 1), MOB_OK);
  barrier();
  EXPECT_EQ(std::memcmp(memory.local(), local, sizeof local), 0);
  barrier();
}

TEST(CountedWords, BadInputCountsNothing) {
  const Shared memory(64);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  unsigned char* remote = memory.at(target);
  auto* word = reinterpret_cast<uint64_t*>(memory.at(target, 32));
  alignas(8) unsigned char local[24] = {};
  uint64_t origin = 0;
  auto* misaligned = reinterpret_cast<uint64_t*>(local + 1);
  const auto put = [&](mob_rank_t rank, void* to, const void* from, uint64_t* at, uint64_t* own) {
    return mob_put_counted(rank, to, from, 8, at, own, nullptr);
  };
  EXPECT_EQ(put(mob_size(), remote, local, word, &origin), MOB_ERR_RANK);
  EXPECT_EQ(put(-1, remote, local, word, &origin), MOB_ERR_RANK);
  EXPECT_EQ(put(target, remote, nullptr, word, &origin), MOB_ERR_ARGUMENT);
  EXPECT_EQ(put(target, nullptr, local, word, &origin), MOB_ERR_ARGUMENT);
  EXPECT_EQ(put(target, remote, local, word, misaligned), MOB_ERR_ARGUMENT);
  EXPECT_EQ(put(target, remote, local, reinterpret_cast<uint64_t*>(remote + 33), &origin),
            MOB_ERR_ARGUMENT);
  EXPECT_EQ(put(target, remote + (1 << 30), local, word, &origin), MOB_ERR_RANGE);
  EXPECT_EQ(put(target, remote, local, reinterpret_cast<uint64_t*>(remote + (1 << 30)), &origin),
            MOB_ERR_RANGE);
  EXPECT_EQ(load(origin), 0u);
  barrier();
  EXPECT_TRUE(mobius_test::all_are(memory.local(), 64, 0));
  barrier();
}
