// SPDX-License-Identifier: BSD-3-Clause

// Both sides of a desk, as two ranks that are threads: what is done, withdrawn and refused.

#include "engine/desk.h"

#include <mobius/mobius.h>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace mobius::engine {
namespace {

// What the two threads share beside the library.
struct Pair {
  std::function<void(Pair&)> origin;
  std::function<void(Pair&)> target = {};
  std::vector<unsigned char> memory = std::vector<unsigned char>(256 << 10);
  uintptr_t at(size_t offset) { return reinterpret_cast<uintptr_t>(memory.data()) + offset; }
};

void run(void* argument) {
  auto& pair = *static_cast<Pair*>(argument);
  ASSERT_EQ(mob_init(), MOB_OK) << mob_last_error();
  if (mob_rank() == 1) {
    ASSERT_EQ(engine().desk().require(), MOB_OK);
    ASSERT_EQ(mob_barrier(), MOB_OK);
    if (pair.target) pair.target(pair);
  } else {
    ASSERT_EQ(mob_barrier(), MOB_OK);
    pair.origin(pair);
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
  ASSERT_EQ(mob_finalize(), MOB_OK) << mob_last_error();
}

using Part = std::function<void(Pair&)>;

void run_pair(Part origin, Part target = {}) {
  Pair pair{std::move(origin), std::move(target)};
  // Waiters look, however few processors there are.
  ASSERT_EQ(setenv("MOBIUS_SPIN_NS", "1000000", 1), 0);
  ASSERT_EQ(mob_threads_run(2, run, &pair), MOB_OK) << mob_last_error();
}

std::vector<unsigned char> counted(size_t bytes, unsigned first) {
  std::vector<unsigned char> data(bytes);
  std::iota(data.begin(), data.end(), static_cast<unsigned char>(first));
  return data;
}

// Until the target has come to wait, and whenever it was not quick enough.
template <typename Ask>
void until_done(Ask ask) {
  while (!ask()) {
  }
}

TEST(Desk, StretchesWhileTheOwnerWaits) {
  run_pair([](Pair& pair) {
    Desk& desk = engine().desk();
    for (const size_t bytes : {1, 8, 32, 33, 56, 57, 4095, 65536}) {
      const auto data = counted(bytes, static_cast<unsigned>(bytes));
      std::vector<unsigned char> back(bytes);
      until_done([&] { return desk.copy(1, pair.at(3), data.data(), bytes, true); });
      ASSERT_EQ(std::memcmp(&pair.memory[3], data.data(), bytes), 0) << bytes;
      ASSERT_EQ(pair.memory[3 + bytes], 0) << bytes;
      until_done([&] { return desk.copy(1, pair.at(3), back.data(), bytes, false); });
      ASSERT_EQ(back, data);
    }
    unsigned char one = 1;
    EXPECT_FALSE(desk.copy(1, pair.at(0), &one, Desk::kMostBytes + 1, true));
  });
}

TEST(Desk, BoxesAndListsWhileTheOwnerWaits) {
  run_pair([](Pair& pair) {
    Desk& desk = engine().desk();
    for (const size_t rows : {2, 100}) {
      auto data = counted(rows * 40, 5);
      const ptrdiff_t stride = 100;
      const ptrdiff_t packed = 40;
      mob_transfer_t box{};
      box.kind = MOB_PUT;
      box.shape = MOB_STRIDED;
      box.rank = 1;
      box.remote = &pair.memory[0];
      box.local = data.data();
      box.bytes = 40;
      box.dimensions = 1;
      box.counts = &rows;
      box.remote_strides = &stride;
      box.local_strides = &packed;
      transport::Shape shape;
      ASSERT_EQ(transport::normalise("test", box, &shape), MOB_OK);
      until_done([&] { return desk.move(1, shape, true, false) == Desk::Outcome::kDone; });
      for (size_t row = 0; row < rows; ++row) {
        ASSERT_EQ(std::memcmp(&pair.memory[row * 100], &data[row * 40], 40), 0) << row;
        ASSERT_EQ(pair.memory[row * 100 + 40], 0) << row;
      }
      const mob_span_t remote[] = {{&pair.memory[100], 7}, {&pair.memory[0], 13}};
      std::vector<unsigned char> back(20);
      const mob_span_t local[] = {{back.data(), 20}};
      mob_transfer_t list{};
      list.kind = MOB_GET;
      list.shape = MOB_SPANS;
      list.rank = 1;
      list.remote_spans = remote;
      list.remote_span_count = 2;
      list.local_spans = local;
      list.local_span_count = 1;
      ASSERT_EQ(transport::normalise("test", list, &shape), MOB_OK);
      until_done([&] { return desk.move(1, shape, false, true) == Desk::Outcome::kDone; });
      ASSERT_EQ(std::memcmp(back.data(), &data[40], 7), 0);
      ASSERT_EQ(std::memcmp(&back[7], &data[0], 13), 0);
    }
  });
}

// All on one processor, where nobody sees another one look; and asleep there, since it waits longer
// than anybody spins.
TEST(Desk, WhoSleepsOrRunsOnTheSameProcessorIsCalled) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  static std::atomic<int> called = 0;
  called = 0;
  run_pair(
      [&](Pair& pair) {
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        Desk& desk = engine().desk();
        const mob_rank_t index = engine().host_index(1);
        const auto& doorbell = engine().process(index).doorbell;
        std::vector<unsigned char> back(4096);
        for (unsigned round = 0; round < 200; ++round) {
          const auto data = counted(back.size(), round);
          transport::Shape shape;
          shape.total_bytes = shape.run_bytes = data.size();
          shape.remote = reinterpret_cast<char*>(pair.memory.data());
          shape.local = reinterpret_cast<char*>(const_cast<unsigned char*>(data.data()));
          if (round % 4 == 0) {
            while (doorbell.sleepers.load() == 0) std::this_thread::yield();
            // A small request does not wake it.
            EXPECT_FALSE(desk.copy(1, pair.at(0), data.data(), 8, true));
          }
          until_done([&] { return desk.move(1, shape, true, true) == Desk::Outcome::kDone; });
          ASSERT_EQ(std::memcmp(pair.memory.data(), data.data(), data.size()), 0) << round;
          shape.local = reinterpret_cast<char*>(back.data());
          until_done([&] { return desk.move(1, shape, false, true) == Desk::Outcome::kDone; });
          ASSERT_EQ(back, data);
        }
        called = 1;
        ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
      },
      [&](Pair&) {
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        static_cast<void>(
            engine().wait_until([] { return called.load() == 1; }, nullptr, os::Wakeup::kMaybe));
        ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
      });
}

// It looks as if it waited, but does not look at its desk: the request must not be done later.
TEST(Desk, WhatNobodyTakesUpIsWithdrawn) {
  static std::atomic<int> step = 0;
  const auto await = [](int wanted) {
    while (step.load() != wanted) std::this_thread::yield();
  };
  run_pair(
      [&](Pair& pair) {
        await(1);
        const uint64_t value = 1;
        for (int i = 0; i < 100; ++i) {
          ASSERT_FALSE(engine().desk().copy(1, pair.at(0), &value, sizeof value, true));
        }
        transport::Shape shape;
        shape.total_bytes = shape.run_bytes = sizeof value;
        shape.remote = reinterpret_cast<char*>(pair.memory.data());
        shape.local = reinterpret_cast<char*>(const_cast<uint64_t*>(&value));
        for (int i = 0; i < 10; ++i) {
          ASSERT_EQ(engine().desk().move(1, shape, true, true), Desk::Outcome::kNobodyCame);
        }
        step = 2;
      },
      [&](Pair& pair) {
        engine().progress().join();
        step = 1;
        await(2);
        engine().progress().leave();
        EXPECT_EQ(engine().desk().serve(), os::Work::kNone);
        EXPECT_EQ(pair.memory[0], 0);
      });
}

TEST(Desk, WhatIsNotMappedIsRefused) {
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  run_pair([page](Pair& pair) {
    Desk& desk = engine().desk();
    uint64_t value = 7;
    const auto address = reinterpret_cast<uintptr_t>(page);
    until_done([&] { return desk.copy(1, address, &value, sizeof value, false); });
    EXPECT_EQ(value, 0u);
    for (int i = 0; i < 100; ++i) {
      until_done([&] { return desk.copy(1, pair.at(0), &value, sizeof value, true); });
      ASSERT_FALSE(desk.copy(1, address, &value, sizeof value, true));
    }
  });
  munmap(page, 4096);
}

}  // namespace
}  // namespace mobius::engine
