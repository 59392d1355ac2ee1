// SPDX-License-Identifier: BSD-3-Clause

// Handles of several transfers at once, and flushes of one of several targets.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "closed.h"
#include "fixture.h"

using mobius_test::barrier;
using mobius_test::Shared;

namespace {

constexpr size_t kTransfers = 20;
constexpr size_t kPutBytes = 300;
constexpr unsigned kQuiet = MOB_MAX_HANDLERS - 3;  // used by no other test

// Puts and gets in turn, between this rank and its right neighbour.
class Started {
 public:
  Started() : memory_(2 * kTransfers * kPutBytes), handles_(kTransfers), got_(kTransfers) {
    const auto own = mobius_test::patterned(kTransfers * kPutBytes, mob_rank(), 1);
    std::memcpy(memory_.local(), own.data(), own.size());
    barrier();
    const mob_rank_t target = mobius_test::right_of(mob_rank());
    data_ = mobius_test::patterned(kTransfers * kPutBytes, mob_rank(), 2);
    for (size_t i = 0; i < kTransfers; ++i) {
      got_[i].resize(kPutBytes);
      const mob_status_t status =
          i % 2 == 0 ? mob_get_nb(target, memory_.at(target, i * kPutBytes), got_[i].data(),
                                  kPutBytes, &handles_[i])
                     : mob_put_nb(target, memory_.at(target, (kTransfers + i) * kPutBytes),
                                  &data_[i * kPutBytes], kPutBytes, &handles_[i]);
      EXPECT_EQ(status, MOB_OK) << mob_last_error();
    }
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  // All were waited for: the gets have arrived, and the puts have arrived after a barrier.
  ~Started() {
    const auto theirs =
        mobius_test::patterned(kTransfers * kPutBytes, mobius_test::right_of(mob_rank()), 1);
    const auto put =
        mobius_test::patterned(kTransfers * kPutBytes, mobius_test::left_of(mob_rank()), 2);
    EXPECT_TRUE(std::ranges::all_of(handles_, [](auto h) { return h == MOB_HANDLE_DONE; }));
    for (size_t i = 0; i < kTransfers; i += 2) {
      EXPECT_EQ(std::memcmp(got_[i].data(), &theirs[i * kPutBytes], kPutBytes), 0) << i;
    }
    barrier();
    for (size_t i = 1; i < kTransfers; i += 2) {
      EXPECT_EQ(std::memcmp(memory_.local() + (kTransfers + i) * kPutBytes, &put[i * kPutBytes],
                            kPutBytes),
                0)
          << i;
    }
    barrier();
  }

  mob_handle_t* handles() { return handles_.data(); }

 private:
  Shared memory_;
  std::vector<mob_handle_t> handles_;
  std::vector<std::vector<unsigned char>> got_;
  std::vector<unsigned char> data_;
};

}  // namespace

TEST(Handles, AreWaitedForInAnyOrder) {
  Started started;
  for (size_t i = kTransfers; i-- > 0;) {
    EXPECT_EQ(mob_wait(&started.handles()[i]), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_wait(&started.handles()[i]), MOB_OK) << "done handles may be waited for";
  }
}

TEST(Handles, AreWaitedForTogether) {
  Started started;
  EXPECT_EQ(mob_wait_all(started.handles(), kTransfers), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_wait_all(nullptr, 0), MOB_OK);
}

TEST(Handles, AnyTakesOneAtATimeUntilAllAreDone) {
  Started started;
  size_t index = 0;
  for (size_t calls = 0; calls <= kTransfers && index < kTransfers; ++calls) {
    EXPECT_EQ(mob_wait_any(started.handles(), kTransfers, &index), MOB_OK) << mob_last_error();
    if (index < kTransfers) {
      EXPECT_EQ(started.handles()[index], MOB_HANDLE_DONE);
    }
  }
  EXPECT_EQ(index, kTransfers);
}

TEST(Handles, SomeTakesThemInAscendingOrder) {
  Started started;
  size_t seen = 0;
  for (size_t completed = 1; completed > 0;) {
    size_t indices[kTransfers];
    EXPECT_EQ(mob_wait_some(started.handles(), kTransfers, indices, &completed), MOB_OK);
    EXPECT_TRUE(std::is_sorted(indices, indices + completed));
    seen += completed;
  }
  EXPECT_LE(seen, kTransfers);
}

TEST(Handles, TestingCompletesThem) {
  Started started;
  for (size_t i = 0; i < kTransfers; ++i) {
    for (int done = 0; done == 0;) {
      EXPECT_EQ(mob_test(&started.handles()[i], &done), MOB_OK) << mob_last_error();
      EXPECT_EQ(done == 1, started.handles()[i] == MOB_HANDLE_DONE);
    }
  }
}

namespace {

// Polls during its lifetime, so that another thread than the waiter completes transfers.
class Poller {
 public:
  Poller() : thread_([this] { poll(); }) {}
  ~Poller() {
    ends_ = true;
    thread_.join();
  }
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

 private:
  void poll() {
    while (!ends_) {
      EXPECT_EQ(mob_poll(), MOB_OK);
      std::this_thread::yield();
    }
  }

  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

uint64_t value_of(mob_counter_t counter) {
  uint64_t value = 0;
  EXPECT_EQ(mob_counter_get(counter, &value), MOB_OK) << mob_last_error();
  return value;
}

}  // namespace

// The counter may be freed when the wait is over.
TEST(ExposedHandles, CountBeforeTheWaitEnds) {
  constexpr int kRounds = 3000;
  uint64_t exposed[2] = {0, 0};
  mob_exposed_t handle = nullptr;
  EXPECT_EQ(mob_expose(exposed, sizeof exposed, 0, &handle), MOB_OK) << mob_last_error();
  void* const theirs = mobius_test::exchange_address(exposed);
  mob_counter_t origin = nullptr;
  mob_counter_t completion = nullptr;
  EXPECT_EQ(mob_counter_create(&origin), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_counter_create(&completion), MOB_OK) << mob_last_error();
  {
    const Poller poller;
    int late = 0;
    for (uint64_t round = 1; round <= kRounds; ++round) {
      uint64_t here = 0;
      uint64_t there = 0;
      mob_transfer_t transfer{};
      transfer.kind = MOB_GET;
      transfer.rank = mobius_test::right_of(mob_rank());
      transfer.remote = theirs;
      uint64_t got[2];
      transfer.local = got;
      transfer.bytes = sizeof got;
      transfer.origin_word = &here;
      transfer.completion_word = &there;
      transfer.origin_counter = origin;
      transfer.completion_counter = completion;
      mob_handle_t started = MOB_HANDLE_DONE;
      EXPECT_EQ(mob_transfer_nb(&transfer, &started), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_wait(&started), MOB_OK) << mob_last_error();
      late += __atomic_load_n(&here, __ATOMIC_RELAXED) != 1 || value_of(origin) != round;
      EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
      late += __atomic_load_n(&there, __ATOMIC_RELAXED) != 1 || value_of(completion) != round;
    }
    EXPECT_EQ(late, 0);
  }
  EXPECT_EQ(mob_counter_free(origin), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_counter_free(completion), MOB_OK) << mob_last_error();
  barrier();
  EXPECT_EQ(mob_withdraw(handle), MOB_OK) << mob_last_error();
}

namespace {

// A process of this machine that is stopped for a while.
class Stopped {
 public:
  explicit Stopped(pid_t pid) : pid_(pid) {
    EXPECT_EQ(kill(pid_, SIGSTOP), 0);
    while (state() != 'T') std::this_thread::yield();
  }
  ~Stopped() { go_on(); }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;
  void go_on() const { EXPECT_EQ(kill(pid_, SIGCONT), 0); }

 private:
  char state() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string text;
    std::getline(file, text);
    const size_t name_end = text.rfind(')');
    return name_end + 2 < text.size() ? text[name_end + 2] : 'T';
  }

  const pid_t pid_;
};

}  // namespace

// The flush does not wait for operations to a process that does not answer.
TEST(Flush, OfOneTargetDoesNotWaitForOthers) {
  if (mob_size() < 3) GTEST_SKIP() << "takes three processes";
  constexpr size_t kSmall = 64;
  constexpr size_t kLarge = 300'000;
  const mob_rank_t silent = mob_size() - 1;
  const mob_rank_t other = mob_size() - 2;
  const Shared memory(kSmall + kLarge);
  const Shared pids(static_cast<size_t>(mob_size()) * sizeof(uint64_t));
  const size_t mine = static_cast<size_t>(mob_rank()) * sizeof(uint64_t);
  EXPECT_EQ(mob_put8(0, pids.at(0, mine), static_cast<uint64_t>(getpid())), MOB_OK);
  barrier();
  const auto data = mobius_test::patterned(kSmall + kLarge, 0, 1);
  if (mob_rank() == 0) {
    uint64_t pid = 0;
    std::memcpy(&pid, pids.at(0, static_cast<size_t>(silent) * sizeof pid), sizeof pid);
    const Stopped stopped(static_cast<pid_t>(pid));
    uint64_t arrived[2] = {0, 0};
    for (const mob_rank_t target : {silent, other}) {
      EXPECT_EQ(mob_put_nbi(target, memory.at(target, kSmall), data.data() + kSmall, kLarge),
                MOB_OK);
      EXPECT_EQ(mob_put_counted(target, memory.at(target), data.data(), kSmall, nullptr, nullptr,
                                &arrived[target == silent ? 0 : 1]),
                MOB_OK);
    }
    EXPECT_EQ(mob_flush_local(other), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_flush(other), MOB_OK) << mob_last_error();
    // The library's thread may count them meanwhile.
    const auto has_arrived = [&](int which) {
      return __atomic_load_n(&arrived[which], __ATOMIC_ACQUIRE);
    };
    EXPECT_EQ(has_arrived(1), 1u);
    if (!mobius_test::same_host(silent)) {
      EXPECT_EQ(has_arrived(0), 0u);
    }
    std::vector<unsigned char> got(kSmall + kLarge);
    EXPECT_EQ(mob_get(other, memory.at(other), got.data(), got.size()), MOB_OK);
    EXPECT_EQ(got, data);
    stopped.go_on();
    EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
    EXPECT_EQ(has_arrived(0), 1u);
  }
  barrier();
  if (mob_rank() >= other) {
    EXPECT_TRUE(mobius_test::holds(memory.local(), data, data.size()));
  }
  barrier();
}

// An operation that waits for earlier ones leaves their error to the flush.
TEST(Flush, ReportsFailuresBeforeAFetchOp) {
  if (mob_size() < 2) GTEST_SKIP() << "takes two processes";
  const Shared memory(sizeof(uint64_t));
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  const mobius_test::Closed closed;
  for (int round = 0; round < 3; ++round) {
    closed.start_failing();
    // Between hosts, the answer to this operation comes after the error.
    uint64_t value = 0;
    EXPECT_EQ(mob_get(target, memory.at(target), &value, sizeof value), MOB_OK);
    EXPECT_EQ(mob_fence(), MOB_OK) << mob_last_error();
    uint64_t old = 0;
    const uint64_t one = 1;
    EXPECT_EQ(mob_fetch_op(target, memory.at(target), MOB_UINT64, MOB_SUM, &one, &old), MOB_OK)
        << mob_last_error();
    EXPECT_EQ(old, static_cast<uint64_t>(round));
    EXPECT_EQ(mob_flush_all(), MOB_ERR_RANGE);
    EXPECT_EQ(mob_flush_all(), MOB_OK) << mob_last_error();
  }
  barrier();
}

// The error text names the flush, or the call that failed, and the rank once.
TEST(Flush, NamesFailedOperations) {
  if (mob_size() < 2) GTEST_SKIP() << "takes two processes";
  const mobius_test::Closed closed;
  const std::string rank = "rank " + std::to_string(mobius_test::right_of(mob_rank()));
  for (const mob_kind_t kind : {MOB_PUT, MOB_ACCUMULATE}) {
    const mob_status_t started = closed.start(kind);
    EXPECT_EQ(started == MOB_OK ? mob_flush_all() : started, MOB_ERR_RANGE);
    const std::string text = mob_last_error();
    EXPECT_TRUE(text.starts_with("mob_flush_all: ") || text.starts_with("mob_transfer_nbi: "))
        << text;
    EXPECT_NE(text.find(rank), std::string::npos) << text;
    EXPECT_EQ(text.find(rank), text.rfind(rank)) << text;
  }
  barrier();
}

// A flush between hosts does not ask about operations that were already answered.
TEST(Flush, NeedsNoNewsOfPutsThatWereAnsweredBesideMessages) {
  if (mob_size() < 2) GTEST_SKIP() << "takes two processes";
  const mob_rank_t silent = mob_size() - 1;
  const Shared memory(sizeof(uint64_t));
  const Shared pids(sizeof(uint64_t));
  EXPECT_EQ(mob_handler_register(
                kQuiet, [](const mob_message_t*, void*, mob_delivery_t*) {}, nullptr),
            MOB_OK);
  if (mob_rank() == silent) {
    EXPECT_EQ(mob_put8(0, pids.at(0), static_cast<uint64_t>(getpid())), MOB_OK);
  }
  barrier();
  if (mob_rank() == 0) {
    EXPECT_EQ(mob_message_send(silent, kQuiet, nullptr, 0, nullptr, 0, nullptr), MOB_OK);
    EXPECT_EQ(mob_message_flush(silent), MOB_OK) << mob_last_error();
    const uint64_t value = 4711;
    uint64_t arrived = 0;
    EXPECT_EQ(mob_put_counted(silent, memory.at(silent), &value, sizeof value, nullptr, nullptr,
                              &arrived),
              MOB_OK);
    EXPECT_EQ(mob_wait_until_u8(&arrived, MOB_EQ, 1), MOB_OK);
    uint64_t pid = 0;
    std::memcpy(&pid, pids.local(), sizeof pid);
    const Stopped stopped(static_cast<pid_t>(pid));
    // Ends a loop that would otherwise never end.
    std::atomic<bool> flushed = false;
    std::atomic<bool> was_needed = false;
    std::thread watchdog([&] {
      for (int i = 0; i < 1000 && !flushed; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      if (flushed) return;
      was_needed = true;
      stopped.go_on();
    });
    EXPECT_EQ(mob_flush(silent), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_message_flush(silent), MOB_OK) << mob_last_error();
    flushed = true;
    watchdog.join();
    EXPECT_FALSE(was_needed);
    stopped.go_on();
  }
  barrier();
  if (mob_rank() == silent) {
    uint64_t value = 0;
    std::memcpy(&value, memory.local(), sizeof value);
    EXPECT_EQ(value, 4711u);
  }
  barrier();
}
