// SPDX-License-Identifier: BSD-3-Clause

// Both sides of a delegation, as two ranks that are threads: requests that are carried out,
// withdrawn and refused.

#include "engine/rma/delegation.h"

#include <mobius/mobius.h>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "os/memory/pages.h"

namespace mobius::engine {
namespace {

// The state that the two threads share beside the library.
struct Pair {
  std::function<void(Pair&)> origin;
  std::function<void(Pair&)> target = {};
  std::vector<unsigned char> memory = std::vector<unsigned char>(3 << 20);
  uintptr_t at(size_t offset) { return reinterpret_cast<uintptr_t>(memory.data()) + offset; }
};

// Pins the calling thread to one of its processors, each rank to another. An owner does not serve
// an origin that shares its processor, and the kernel may leave two busy threads where they are.
void settle(int rank) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int processor = -1;
  for (int seen = -1; seen < rank;) seen += CPU_ISSET(++processor, &allowed) ? 1 : 0;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(processor, &own);
  ASSERT_EQ(sched_setaffinity(0, sizeof own, &own), 0);
}

bool has_two_processors() {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) >= 2;
}

void run(void* argument) {
  auto& pair = *static_cast<Pair*>(argument);
  ASSERT_EQ(mob_init(), MOB_OK) << mob_last_error();
  settle(mob_rank());
  if (mob_rank() == 1) {
    ASSERT_EQ(engine().delegation().require(), MOB_OK);
    ASSERT_EQ(mob_barrier(), MOB_OK);
    if (pair.target) pair.target(pair);
  } else {
    ASSERT_EQ(mob_barrier(), MOB_OK);
    pair.origin(pair);
  }
  ASSERT_EQ(mob_barrier(), MOB_OK);
  ASSERT_EQ(mob_finalize(), MOB_OK) << mob_last_error();
}

using Region = std::function<void(Pair&)>;

void run_pair(Region origin, Region target = {}) {
  if (!has_two_processors()) GTEST_SKIP() << "needs two processors";
  Pair pair{std::move(origin), std::move(target)};
  // Waiters spin, however few processors there are.
  ASSERT_EQ(setenv("MOBIUS_SPIN_NS", "1000000", 1), 0);
  ASSERT_EQ(mob_threads_run(2, run, &pair), MOB_OK) << mob_last_error();
}

std::vector<unsigned char> counted(size_t bytes, unsigned first) {
  std::vector<unsigned char> data(bytes);
  std::iota(data.begin(), data.end(), static_cast<unsigned char>(first));
  return data;
}

// The step that the two threads of a test have reached; each test begins with 0.
std::atomic<int> step;

void await(int wanted) {
  while (step.load() != wanted) std::this_thread::yield();
}

// Repeats the request until the target waits, and whenever the target was not quick enough.
template <typename Ask>
void until_done(Ask ask) {
  while (!ask()) {
  }
}

TEST(Delegation, CopiesWhileTheOwnerWaits) {
  run_pair([](Pair& pair) {
    Delegation& delegation = engine().delegation();
    for (const size_t bytes : {size_t{1}, size_t{8}, size_t{32}, size_t{33}, size_t{56}, size_t{57},
                               size_t{4095}, Delegation::kPieceBytes, Delegation::kPieceBytes + 1,
                               5 * Delegation::kPieceBytes + 7, Delegation::kMostBytes}) {
      const auto data = counted(bytes, static_cast<unsigned>(bytes));
      std::vector<unsigned char> back(bytes);
      until_done([&] { return delegation.copy(1, pair.at(3), data.data(), bytes, true); });
      ASSERT_EQ(std::memcmp(&pair.memory[3], data.data(), bytes), 0) << bytes;
      ASSERT_EQ(pair.memory[3 + bytes], 0) << bytes;
      until_done([&] { return delegation.copy(1, pair.at(3), back.data(), bytes, false); });
      ASSERT_EQ(back, data);
    }
    const std::vector<unsigned char> too_much(Delegation::kMostBytes + 1);
    EXPECT_FALSE(delegation.copy(1, pair.at(0), too_much.data(), too_much.size(), true));
  });
}

TEST(Delegation, BoxesAndListsWhileTheOwnerWaits) {
  run_pair([](Pair& pair) {
    Delegation& delegation = engine().delegation();
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
      until_done(
          [&] { return delegation.move(1, shape, true, false) == Delegation::Outcome::kDone; });
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
      until_done(
          [&] { return delegation.move(1, shape, false, true) == Delegation::Outcome::kDone; });
      ASSERT_EQ(std::memcmp(back.data(), &data[40], 7), 0);
      ASSERT_EQ(std::memcmp(&back[7], &data[0], 13), 0);
    }
  });
}

// Moves rows of planes, from the last plane to the first, with gaps on both sides; `put` and back.
void move_planes(Delegation& delegation, Pair& pair, size_t row_bytes, size_t rows, size_t planes) {
  const auto stride = static_cast<ptrdiff_t>(row_bytes);
  const std::vector<size_t> counts = {rows, planes};
  const auto plane = static_cast<ptrdiff_t>(rows) * (stride + 8);
  const std::vector<ptrdiff_t> there = {stride + 8, -plane};
  const std::vector<ptrdiff_t> here = {stride + 3, static_cast<ptrdiff_t>(rows) * (stride + 3)};
  const size_t first = (planes - 1) * static_cast<size_t>(plane);
  const auto data = counted(planes * static_cast<size_t>(here[1]), 1);
  std::vector<unsigned char> back(data.size(), 0);
  std::ranges::fill(pair.memory, static_cast<unsigned char>(0));
  mob_transfer_t box{};
  box.shape = MOB_STRIDED;
  box.rank = 1;
  box.remote = &pair.memory[first];
  box.bytes = row_bytes;
  box.dimensions = 2;
  box.counts = counts.data();
  box.remote_strides = there.data();
  box.local_strides = here.data();
  for (const bool put : {true, false}) {
    box.kind = put ? MOB_PUT : MOB_GET;
    box.local = put ? const_cast<unsigned char*>(data.data()) : back.data();
    transport::Shape shape;
    ASSERT_EQ(transport::normalise("test", box, &shape), MOB_OK) << mob_last_error();
    ASSERT_LE(shape.total_bytes, Delegation::kMostBytes);
    until_done([&] { return delegation.move(1, shape, put, put) == Delegation::Outcome::kDone; });
  }
  size_t wrong = 0;
  for (size_t i = 0; i < planes; ++i) {
    for (size_t j = 0; j < rows; ++j) {
      const unsigned char* to = &pair.memory[first] + static_cast<ptrdiff_t>(i) * there[1] +
                                static_cast<ptrdiff_t>(j) * there[0];
      const size_t from = i * static_cast<size_t>(here[1]) + j * static_cast<size_t>(here[0]);
      for (size_t k = 0; k < row_bytes; ++k) {
        wrong += to[k] != data[from + k] || back[from + k] != data[from + k] ? 1 : 0;
      }
      wrong += to[row_bytes] != 0 ? 1 : 0;           // the gap at the target
      wrong += back[from + row_bytes] != 0 ? 1 : 0;  // and at the origin
    }
  }
  EXPECT_EQ(wrong, 0u) << row_bytes << " bytes, " << rows << " rows, " << planes << " planes";
}

TEST(Delegation, LargeBoxesComeInPieces) {
  run_pair([](Pair& pair) {
    Delegation& delegation = engine().delegation();
    move_planes(delegation, pair, 8, 300, 4);
    move_planes(delegation, pair, 8, 5000, 3);  // a plane is more than a piece
    move_planes(delegation, pair, 1000, 10, 30);
    move_planes(delegation, pair, Delegation::kPieceBytes, 3, 3);
    move_planes(delegation, pair, 3 * Delegation::kPieceBytes + 5, 2, 4);
  });
}

// Pages far apart: the memory between them is unmapped, and not needed.
TEST(Delegation, BoxesAroundUnmappedMemory) {
  const size_t page = os::page_bytes();
  constexpr size_t kRows = 20;
  auto* memory = static_cast<unsigned char*>(
      mmap(nullptr, 3 * kRows * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  for (size_t i = 0; i < kRows; ++i) ASSERT_EQ(munmap(memory + (3 * i + 1) * page, page), 0);
  run_pair([&](Pair&) {
    Delegation& delegation = engine().delegation();
    const auto data = counted(kRows * page, 9);
    const auto stride = static_cast<ptrdiff_t>(3 * page);
    transport::Shape shape;
    shape.kind = MOB_STRIDED;
    shape.run_bytes = page;
    shape.total_bytes = data.size();
    shape.dimensions = 1;
    shape.counts[0] = kRows;
    shape.remote_strides[0] = stride;
    shape.local_strides[0] = static_cast<ptrdiff_t>(page);
    shape.remote = reinterpret_cast<char*>(memory);
    shape.local = reinterpret_cast<char*>(const_cast<unsigned char*>(data.data()));
    shape.lowest = reinterpret_cast<uintptr_t>(memory);
    shape.highest = shape.lowest + (kRows - 1) * 3 * page + page;
    until_done(
        [&] { return delegation.move(1, shape, true, false) == Delegation::Outcome::kDone; });
    for (size_t i = 0; i < kRows; ++i) {
      ASSERT_EQ(std::memcmp(memory + 3 * i * page, &data[i * page], page), 0) << i;
    }
    // One row of the last piece is in a hole; afterwards the slot is free again.
    shape.remote += page;
    shape.lowest += page;
    shape.highest += page;
    for (int i = 0; i < 50; ++i) {
      ASSERT_NE(delegation.move(1, shape, true, false), Delegation::Outcome::kDone);
      uint64_t value = 0;
      until_done(
          [&] { return delegation.copy(1, shape.lowest - page, &value, sizeof value, false); });
      ASSERT_EQ(std::memcmp(&value, data.data(), sizeof value), 0);
    }
  });
  munmap(memory, 3 * kRows * page);
}

// Two threads of the target serve, and two of the origin request; none may disturb another.
TEST(Delegation, PiecesBetweenSeveralThreads) {
  static std::atomic<int> at_it = 0;
  at_it = 2;
  run_pair(
      [](Pair& pair) {
        const mob_rank_t self = mob_rank();
        ASSERT_EQ(self, 0);
        Delegation& delegation = engine().delegation();
        const auto ask = [&](size_t first) {
          std::vector<unsigned char> back(10 * Delegation::kPieceBytes);
          for (unsigned round = 0; round < 100; ++round) {
            const auto data = counted(back.size(), round + static_cast<unsigned>(first));
            until_done(
                [&] { return delegation.copy(1, pair.at(first), data.data(), data.size(), true); });
            until_done([&] {
              return delegation.copy(1, pair.at(first), back.data(), back.size(), false);
            });
            ASSERT_EQ(back, data) << round;
          }
          at_it.fetch_sub(1);
        };
        std::thread other(ask, size_t{1} << 20);
        ask(0);
        other.join();
      },
      [](Pair&) {
        const auto serve = [] {
          static_cast<void>(engine().waiter().wait_until([] { return at_it.load() == 0; }, nullptr,
                                                         os::Wakeup::kMaybe));
        };
        Engine& own = engine();
        std::thread other([&own] {
          while (at_it.load() != 0) own.delegation().serve();
        });
        serve();
        other.join();
      });
}

TEST(Delegation, UpdatesWhileTheOwnerWaits) {
  run_pair([](Pair& pair) {
    Delegation& delegation = engine().delegation();
    auto* there = reinterpret_cast<int32_t*>(pair.memory.data());
    int32_t expected = 0;  // value of every element
    for (const size_t count : {1, 2, 3, 14, 15, 1000, 8192, 8193, 16384}) {
      std::vector<int32_t> data(count, 3);
      std::vector<int32_t> back(count, -1);
      mob_transfer_t transfer{};
      transfer.rank = 1;
      transfer.remote = there;
      transfer.local = data.data();
      transfer.bytes = count * sizeof(int32_t);
      transfer.type = MOB_INT32;
      transfer.op = MOB_SUM;
      const auto done = [&](mob_kind_t kind) {
        transfer.kind = kind;
        transport::Shape shape;
        EXPECT_EQ(transport::normalise("test", transfer, &shape), MOB_OK);
        return delegation.combine(transfer, shape) == Delegation::Outcome::kDone;
      };
      const auto all_are = [&](int32_t value) {
        return std::all_of(there, there + count, [&](int32_t each) { return each == value; });
      };
      std::fill(there, there + count, expected);
      until_done([&] { return done(MOB_ACCUMULATE); });
      ASSERT_TRUE(all_are(expected += 3)) << count;
      const int32_t scale = -2;
      transfer.scale = &scale;
      until_done([&] { return done(MOB_ACCUMULATE); });
      ASSERT_TRUE(all_are(expected -= 6)) << count;
      transfer.scale = nullptr;
      transfer.fetched = back.data();
      if (transfer.bytes > Delegation::kMostAtOnce / 2) {
        ASSERT_FALSE(done(MOB_FETCH_ACCUMULATE));
        continue;
      }
      transfer.op = MOB_REPLACE;
      until_done([&] { return done(MOB_FETCH_ACCUMULATE); });
      ASSERT_EQ(back, std::vector<int32_t>(count, expected));
      ASSERT_TRUE(all_are(expected = 3)) << count;
      transfer.op = MOB_NO_OP;
      transfer.local = nullptr;
      until_done([&] { return done(MOB_FETCH_ACCUMULATE); });
      ASSERT_EQ(back, data);
    }
    // The largest number of elements, up to where they no longer fit.
    const std::vector<double> many(8193, 1.5);
    for (const size_t count : {8192, 8193}) {
      std::memset(pair.memory.data(), 0, many.size() * sizeof(double));
      mob_transfer_t transfer{};
      transfer.kind = MOB_ACCUMULATE;
      transfer.rank = 1;
      transfer.remote = there;
      transfer.local = const_cast<double*>(many.data());
      transfer.bytes = count * sizeof(double);
      transfer.type = MOB_DOUBLE;
      transfer.op = MOB_SUM;
      transport::Shape shape;
      ASSERT_EQ(transport::normalise("test", transfer, &shape), MOB_OK);
      if (transfer.bytes > Delegation::kMostAtOnce) {
        EXPECT_EQ(delegation.combine(transfer, shape), Delegation::Outcome::kNotDelegated);
      } else {
        until_done(
            [&] { return delegation.combine(transfer, shape) == Delegation::Outcome::kDone; });
        EXPECT_EQ(std::memcmp(there, many.data(), transfer.bytes), 0);
      }
    }
  });
}

TEST(Delegation, SwapsOfWordsWhileTheOwnerWaits) {
  run_pair([](Pair& pair) {
    Delegation& delegation = engine().delegation();
    for (const size_t bytes : {4, 8}) {
      const uint64_t before = uint64_t{0x0102030405060708} & (bytes == 4 ? UINT32_MAX : UINT64_MAX);
      std::memcpy(pair.memory.data(), &before, bytes);
      uint64_t old = 0;
      const auto swaps = [&](uint64_t expected, uint64_t desired) {
        until_done([&] {
          return delegation.compare_swap(1, pair.memory.data(), bytes, expected, desired, &old) ==
                 Delegation::Outcome::kDone;
        });
        EXPECT_EQ(old, before);
      };
      uint64_t now = 0;
      swaps(before + 1, 7);
      std::memcpy(&now, pair.memory.data(), bytes);
      EXPECT_EQ(now, before);
      swaps(before, 7);
      std::memcpy(&now, pair.memory.data(), bytes);
      EXPECT_EQ(now, 7u);
      EXPECT_EQ(pair.memory[bytes], 0) << "beyond the word";
      std::memset(pair.memory.data(), 0, 16);
    }
  });
}

// All on one processor, where no thread sees another one spin; and asleep there, because it waits
// longer than any thread spins.
TEST(Delegation, ATargetThatSleepsOrSharesTheProcessorIsWoken) {
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
        Delegation& delegation = engine().delegation();
        const mob_rank_t index = engine().peers().host_index(1);
        const auto& doorbell = engine().segment().process(index).doorbell;
        std::vector<unsigned char> back(4096);
        for (unsigned round = 0; round < 200; ++round) {
          const auto data = counted(back.size(), round);
          transport::Shape shape;
          shape.total_bytes = shape.run_bytes = data.size();
          shape.remote = reinterpret_cast<char*>(pair.memory.data());
          shape.local = reinterpret_cast<char*>(const_cast<unsigned char*>(data.data()));
          if (round % 4 == 0) {
            while (doorbell.sleepers.load() == 0) std::this_thread::yield();
            // A thread that is about to sleep checks once more.
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            // A small request does not wake it.
            EXPECT_FALSE(delegation.copy(1, pair.at(0), data.data(), 8, true));
          }
          until_done(
              [&] { return delegation.move(1, shape, true, true) == Delegation::Outcome::kDone; });
          ASSERT_EQ(std::memcmp(pair.memory.data(), data.data(), data.size()), 0) << round;
          shape.local = reinterpret_cast<char*>(back.data());
          until_done(
              [&] { return delegation.move(1, shape, false, true) == Delegation::Outcome::kDone; });
          ASSERT_EQ(back, data);
        }
        called = 1;
        ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
      },
      [&](Pair&) {
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        static_cast<void>(engine().waiter().wait_until([] { return called.load() == 1; }, nullptr,
                                                       os::Wakeup::kMaybe));
        ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
      });
}

TEST(Delegation, UnmappedMemoryIsRefused) {
  void* page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  run_pair([page](Pair& pair) {
    Delegation& delegation = engine().delegation();
    uint64_t value = 7;
    const auto address = reinterpret_cast<uintptr_t>(page);
    until_done([&] { return delegation.copy(1, address, &value, sizeof value, false); });
    EXPECT_EQ(value, 0u);
    for (int i = 0; i < 100; ++i) {
      until_done([&] { return delegation.copy(1, pair.at(0), &value, sizeof value, true); });
      ASSERT_FALSE(delegation.copy(1, address, &value, sizeof value, true));
      ASSERT_NE(delegation.compare_swap(1, page, 8, 0, 1, &value), Delegation::Outcome::kDone);
    }
  });
  munmap(page, 4096);
}

// The target checks a request again that was made during the wait before.
TEST(Delegation, MemoryFreedBetweenTwoWaitsIsRefused) {
  step = 0;
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  const auto wait_until = [](int wanted) {
    Delegation& delegation = engine().delegation();
    delegation.forget_memory();
    engine().progress().join();
    step.fetch_add(1);
    while (step.load() < wanted) delegation.serve();
    engine().progress().leave();
  };
  run_pair(
      [&](Pair& pair) {
        Delegation& delegation = engine().delegation();
        const auto address = reinterpret_cast<uintptr_t>(page);
        const uint64_t value = 7;
        await(1);
        until_done([&] { return delegation.copy(1, address, &value, sizeof value, true); });
        step = 2;
        await(3);
        for (int i = 0; i < 100; ++i) {
          until_done([&] { return delegation.copy(1, pair.at(0), &value, sizeof value, true); });
          ASSERT_FALSE(delegation.copy(1, address, &value, sizeof value, true));
        }
        step = 4;
        await(5);
        EXPECT_FALSE(
            delegation.copy(1, pair.at(0), &value, sizeof value, true));  // the memory is gone
        EXPECT_EQ(*reinterpret_cast<uint64_t*>(pair.at(0)), 7u);  // written by an earlier request
        EXPECT_FALSE(delegation.is_attended(1));                  // the origin knows that by now
        step = 6;
      },
      [&](Pair&) {
        wait_until(2);
        EXPECT_EQ(*static_cast<uint64_t*>(page), 7u);
        ASSERT_EQ(munmap(page, 4096), 0);
        wait_until(4);
        step = 5;
        await(6);
      });
}

}  // namespace
}  // namespace mobius::engine
