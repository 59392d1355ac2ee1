// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/accumulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

namespace mobius::transport {
namespace {

// Mutexes that count their uses.
class Locks {
 public:
  LockTable table() { return {this, &lock, &unlock, &words}; }
  void admit(WordsIn words) { words_ = words; }
  int taken() const { return taken_; }
  bool one_at_a_time() const { return one_at_a_time_; }
  int held() const { return held_; }

 private:
  static void lock(void* context, unsigned stripe) {
    auto* self = static_cast<Locks*>(context);
    ASSERT_LT(stripe, kLockStripes);
    self->mutexes_[stripe].lock();
    self->taken_ += 1;
    self->held_ += 1;
    self->one_at_a_time_ = self->one_at_a_time_ && self->held_ == 1;
  }
  static void unlock(void* context, unsigned stripe) {
    auto* self = static_cast<Locks*>(context);
    self->held_ -= 1;
    self->mutexes_[stripe].unlock();
  }

  static WordsIn words(void* context, uintptr_t block) {
    EXPECT_EQ(block % kLockBlockBytes, 0u);
    return static_cast<Locks*>(context)->words_;
  }

  std::mutex mutexes_[kLockStripes];
  WordsIn words_;
  int taken_ = 0;
  int held_ = 0;
  bool one_at_a_time_ = true;
};

Shape rows_of(void* remote, void* local, size_t bytes, size_t count, ptrdiff_t remote_stride,
              ptrdiff_t local_stride, mob_type_t type) {
  mob_transfer_t transfer = {};
  transfer.kind = MOB_ACCUMULATE;
  transfer.shape = MOB_STRIDED;
  transfer.remote = remote;
  transfer.local = local;
  transfer.bytes = bytes;
  transfer.dimensions = 1;
  transfer.counts = &count;
  transfer.remote_strides = &remote_stride;
  transfer.local_strides = &local_stride;
  transfer.type = type;
  Shape shape;
  EXPECT_EQ(normalise("test", transfer, &shape), MOB_OK) << mob_last_error();
  return shape;
}

TEST(Accumulate, RowsOfDoublesWithScaleAndFetch) {
  // Within one block of the locks, wherever the memory lies.
  alignas(kLockBlockBytes) static std::array<double, 1000> target;
  std::array<double, 1000> ones;
  ones.fill(1);
  target = ones;
  std::vector<double> origin(1000);
  for (size_t i = 0; i < origin.size(); ++i) origin[i] = static_cast<double>(i);
  std::vector<double> fetched(30, -1);
  const double scale = 3;
  Locks locks;
  // Ten rows of three; the target's rows go backwards.
  const Shape shape = rows_of(&target[900], origin.data(), 24, 10, -160, 24, MOB_DOUBLE);
  accumulate(shape, 0, {MOB_DOUBLE, MOB_SUM, &scale, fetched.data()}, locks.table());
  for (size_t row = 0; row < 10; ++row) {
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(target[900 - 20 * row + i], 1 + 3 * origin[3 * row + i]);
      target[900 - 20 * row + i] = 1;
    }
  }
  EXPECT_EQ(target, ones);
  EXPECT_EQ(fetched, std::vector<double>(30, 1));
  EXPECT_EQ(locks.held(), 0);
  EXPECT_TRUE(locks.one_at_a_time());
  EXPECT_EQ(locks.taken(), 1);  // rows of one block share one lock
}

TEST(Accumulate, FetchedElementsComeInTheOrderOfTheDescription) {
  alignas(128) int32_t target[24];  // within one block of the locks
  int32_t origin[24] = {};
  int32_t fetched[12] = {};
  for (int i = 0; i < 24; ++i) target[i] = i;
  const size_t counts[2] = {3, 4};
  const ptrdiff_t remote_strides[2] = {32, 8};  // the first dimension changes fastest
  const ptrdiff_t local_strides[2] = {4, 12};
  mob_transfer_t transfer = {};
  transfer.kind = MOB_FETCH_ACCUMULATE;
  transfer.shape = MOB_STRIDED;
  transfer.remote = target;
  transfer.local = origin;
  transfer.bytes = 4;
  transfer.dimensions = 2;
  transfer.counts = counts;
  transfer.remote_strides = remote_strides;
  transfer.local_strides = local_strides;
  transfer.type = MOB_INT32;
  transfer.op = MOB_SUM;
  transfer.fetched = fetched;
  Shape shape;
  ASSERT_EQ(normalise("test", transfer, &shape), MOB_OK) << mob_last_error();
  Locks locks;
  accumulate(shape, 0, {MOB_INT32, MOB_SUM, nullptr, fetched}, locks.table());
  const int32_t expected[12] = {0, 8, 16, 2, 10, 18, 4, 12, 20, 6, 14, 22};
  for (int i = 0; i < 12; ++i) EXPECT_EQ(fetched[i], expected[i]) << i;
  EXPECT_EQ(locks.taken(), 1);
  EXPECT_EQ(locks.held(), 0);
}

// Every path gives the same sums; the lock is taken until words are admitted.
TEST(Accumulate, IntegersAreLockedUntilWordsAreAdmitted) {
  constexpr size_t kCount = 2 * kLockBlockBytes / sizeof(uint32_t);
  std::vector<uint32_t> target(kCount, 1);
  std::vector<uint32_t> origin(kCount);
  for (size_t i = 0; i < kCount; ++i) origin[i] = static_cast<uint32_t>(i);
  const Shape shape =
      rows_of(target.data(), origin.data(), kCount * sizeof(uint32_t), 1, 0, 0, MOB_UINT32);
  Locks locks;
  int taken = 0;
  uint32_t times = 0;
  constexpr WordsIn kNever;
  constexpr WordsIn kArriving{.arriving = WordsIn::kAll};
  constexpr WordsIn kAdmitted{.arriving = WordsIn::kAll, .admitted = WordsIn::kAll};
  for (const WordsIn words : {kNever, kArriving, kAdmitted}) {
    locks.admit(words);
    for (const mob_op_t op : {MOB_SUM, MOB_MAX, MOB_REPLACE}) {
      accumulate(shape, 0, {MOB_UINT32, op, nullptr, nullptr}, locks.table());
      if (op == MOB_SUM) ++times;
      if (op == MOB_REPLACE) times = 1;
      for (size_t i = 0; i < kCount; ++i) {
        const uint32_t expected = times * origin[i] + (words.arriving == 0 && op != MOB_REPLACE);
        ASSERT_EQ(target[i], std::max(expected, origin[i])) << i << " " << op;
      }
    }
    EXPECT_EQ(locks.taken() > taken, words.admitted == 0);
    EXPECT_EQ(locks.held(), 0);
    taken = locks.taken();
  }
}

TEST(WordZones, AreThoseThatARangeHasAPartOf) {
  EXPECT_EQ(word_zones(0, 1), 1u);
  EXPECT_EQ(word_zones(5 * kLockBlockBytes + 1023, 1), 1u);
  EXPECT_EQ(word_zones(1023, 2), 3u);
  EXPECT_EQ(word_zones(1024, 1024), 2u);
  EXPECT_EQ(word_zones(kLockBlockBytes - 8, 8), uint64_t{1} << 63);
  EXPECT_EQ(word_zones(kLockBlockBytes - 8, 16), uint64_t{1} << 63);  // begins in that zone
  EXPECT_EQ(word_zones(3 * kLockBlockBytes, kLockBlockBytes), WordsIn::kAll);
  EXPECT_EQ(word_zones(2048, 60 * 1024), WordsIn::kAll >> 2 & WordsIn::kAll << 2);
}

// With any zones admitted, every element is combined once, and fetched in its place.
TEST(Accumulate, AnyZonesGiveTheSameSums) {
  constexpr size_t kCount = 3 * kLockBlockBytes / sizeof(uint32_t);
  std::vector<uint32_t> target(kCount);
  std::vector<uint32_t> origin(kCount);
  std::vector<uint32_t> fetched(kCount);
  for (size_t i = 0; i < kCount; ++i) origin[i] = static_cast<uint32_t>(i * 7 + 1);
  Locks locks;
  constexpr uint64_t kSomeZones[] = {1, uint64_t{1} << 63, 0x8000'0000'0000'0001,
                                     0x5555'0000'ffff'0000, ~uint64_t{1}};
  for (const uint64_t arriving : kSomeZones) {
    for (const uint64_t admitted : {uint64_t{0}, arriving, arriving & 0xffff'ffff}) {
      locks.admit({.arriving = arriving, .admitted = admitted});
      for (const size_t bytes : {size_t{4}, size_t{1000}, size_t{4096}, size_t{100'000}}) {
        for (const ptrdiff_t apart : {ptrdiff_t{0}, ptrdiff_t{300}, ptrdiff_t{70'000}}) {
          const auto stride = static_cast<ptrdiff_t>(bytes) + apart;
          const size_t room = kCount * sizeof(uint32_t);
          const size_t rows = (room - bytes) / static_cast<size_t>(stride) + 1;
          for (const bool upwards : {true, false}) {
            std::iota(target.begin(), target.end(), 5u);
            auto* first = reinterpret_cast<char*>(target.data());
            if (!upwards) first += static_cast<ptrdiff_t>(rows - 1) * stride;
            const Shape shape =
                rows_of(first, origin.data(), bytes, rows, upwards ? stride : -stride,
                        static_cast<ptrdiff_t>(bytes), MOB_UINT32);
            accumulate(shape, 0, {MOB_UINT32, MOB_SUM, nullptr, fetched.data()}, locks.table());
            size_t packed = 0;
            for (size_t row = 0; row < rows; ++row) {
              const size_t place = upwards ? row : rows - 1 - row;
              const size_t begin = place * static_cast<size_t>(stride) / sizeof(uint32_t);
              for (size_t i = 0; i < bytes / sizeof(uint32_t); ++i, ++packed) {
                ASSERT_EQ(fetched[packed], begin + i + 5) << packed;
                ASSERT_EQ(target[begin + i], begin + i + 5 + origin[packed]) << packed;
              }
            }
            EXPECT_EQ(locks.held(), 0);
          }
        }
      }
    }
  }
}

// Only elements in admitted zones are combined without the lock.
TEST(Accumulate, TheLockIsLeftOutWhereAllZonesAreAdmitted) {
  alignas(kLockBlockBytes) static uint32_t target[kLockBlockBytes / sizeof(uint32_t)];
  uint32_t one[512] = {};
  Locks locks;
  locks.admit({.arriving = 0b111, .admitted = 0b011});
  const auto takes_a_lock = [&](size_t at, size_t bytes) {
    const int taken = locks.taken();
    accumulate(rows_of(target + at / sizeof(uint32_t), one, bytes, 1, 0, 0, MOB_UINT32), 0,
               {MOB_UINT32, MOB_SUM, nullptr, nullptr}, locks.table());
    return locks.taken() != taken;
  };
  EXPECT_FALSE(takes_a_lock(0, 2048));
  EXPECT_FALSE(takes_a_lock(1000, 8));
  EXPECT_TRUE(takes_a_lock(1024, 1028));
  EXPECT_TRUE(takes_a_lock(2048, 4));
  EXPECT_TRUE(takes_a_lock(8192, 4));
}

// Words of two zones are updated without a lock while the whole block is accumulated.
TEST(Accumulate, UpdatesOfWordsInTheirZonesAreNotLost) {
  constexpr size_t kCount = kLockBlockBytes / sizeof(uint64_t);
  constexpr size_t kPerZone = kWordZoneBytes / sizeof(uint64_t);
  constexpr uint64_t kRounds = 300;
  constexpr uint64_t kShared = uint64_t{1} << 5 | uint64_t{1} << 6;
  alignas(kLockBlockBytes) static uint64_t target[kCount];
  static Locks locks;
  locks.admit({.arriving = kShared, .admitted = kShared});
  const std::vector<uint64_t> ones(kCount, 1);
  uint64_t updates = 0;
  std::atomic<bool> stop = false;
  std::thread updater([&] {
    for (; !stop.load(std::memory_order_relaxed) || updates < kPerZone; ++updates) {
      __atomic_fetch_add(&target[5 * kPerZone + updates % (2 * kPerZone)], 1000, __ATOMIC_RELAXED);
    }
  });
  const Shape shape =
      rows_of(target, const_cast<uint64_t*>(ones.data()), sizeof target, 1, 0, 0, MOB_UINT64);
  for (uint64_t round = 0; round < kRounds; ++round) {
    accumulate(shape, 0, {MOB_UINT64, MOB_SUM, nullptr, nullptr}, locks.table());
  }
  stop.store(true);
  updater.join();
  for (size_t i = 0; i < kCount; ++i) {
    const size_t word = i - 5 * kPerZone;
    const bool is_word = word < 2 * kPerZone;
    const uint64_t times =
        !is_word ? 0 : updates / (2 * kPerZone) + (word < updates % (2 * kPerZone));
    ASSERT_EQ(target[i], kRounds + 1000 * times) << i;
  }
}

// A run through several blocks, with elements that cross the borders between them.
TEST(Accumulate, ALongRunOfComplexesIsCutAtBlocks) {
  using Element = std::complex<double>;
  constexpr size_t kCount = 3 * kLockBlockBytes / sizeof(Element);
  std::vector<double> storage(2 * kCount + 3, 1);
  auto* target = storage.data();
  while (reinterpret_cast<uintptr_t>(target) % sizeof(Element) != 8) ++target;
  std::vector<Element> origin(kCount, Element{1, 2});
  Locks locks;
  const Shape shape =
      rows_of(target, origin.data(), kCount * sizeof(Element), 1, 0, 0, MOB_COMPLEX_DOUBLE);
  accumulate(shape, 0, {MOB_COMPLEX_DOUBLE, MOB_SUM, nullptr, nullptr}, locks.table());
  for (size_t i = 0; i < 2 * kCount; ++i) {
    ASSERT_EQ(target[i], i % 2 == 0 ? 2 : 3) << i;
  }
  EXPECT_GE(locks.taken(), 3);
  EXPECT_TRUE(locks.one_at_a_time());
  EXPECT_EQ(locks.held(), 0);
}

// If this process has the target's memory at another address than the target itself, the target's
// address chooses the lock.
TEST(Accumulate, TheTargetsAddressChoosesTheLock) {
  constexpr size_t kAway = 5 * kLockBlockBytes;
  constexpr ptrdiff_t kDelta = kAway;
  std::vector<double> memory(kAway / sizeof(double) + 1, 1);
  double& value = memory.back();
  double one = 1;
  double* seen_by_target = memory.data();
  static unsigned last_stripe;
  const LockTable table = {nullptr, [](void*, unsigned stripe) { last_stripe = stripe; },
                           [](void*, unsigned) {}, [](void*, uintptr_t) { return WordsIn{}; }};
  const Shape shape = rows_of(seen_by_target, &one, sizeof one, 1, 0, 0, MOB_DOUBLE);
  accumulate(shape, kDelta, {MOB_DOUBLE, MOB_SUM, nullptr, nullptr}, table);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(last_stripe, lock_stripe(reinterpret_cast<uintptr_t>(seen_by_target)));
}

// At every unlock, records what changed while the lock was held.
struct Watched {
  std::vector<double> values;
  std::vector<double> before;
  int taken = 0;
  size_t wrong = 0;

  LockTable table() {
    return {this,
            [](void* context, unsigned) {
              auto* self = static_cast<Watched*>(context);
              self->before = self->values;
              ++self->taken;
            },
            [](void* context, unsigned stripe) {
              auto* self = static_cast<Watched*>(context);
              for (size_t i = 0; i < self->values.size(); ++i) {
                const auto address = reinterpret_cast<uintptr_t>(&self->values[i]);
                self->wrong += self->values[i] != self->before[i] && lock_stripe(address) != stripe;
              }
            },
            [](void*, uintptr_t) { return WordsIn{}; }};
  }
};

TEST(Accumulate, EveryElementChangesUnderItsOwnLock) {
  constexpr size_t kElements = 5 * kLockBlockBytes / sizeof(double);
  for (const size_t bytes : {size_t{8}, size_t{512}, size_t{24'000}}) {
    for (const ptrdiff_t apart : {ptrdiff_t{0}, ptrdiff_t{8}, ptrdiff_t{4096}, ptrdiff_t{65536}}) {
      const auto stride = static_cast<ptrdiff_t>(bytes) + apart;
      const size_t rows = (kElements * sizeof(double) - bytes) / static_cast<size_t>(stride) + 1;
      for (const bool upwards : {true, false}) {
        Watched target{.values = std::vector<double>(kElements, 0), .before = {}};
        std::vector<double> ones(rows * bytes / sizeof(double), 1);
        auto* first = reinterpret_cast<char*>(target.values.data());
        if (!upwards) first += static_cast<ptrdiff_t>(rows - 1) * stride;
        const Shape shape = rows_of(first, ones.data(), bytes, rows, upwards ? stride : -stride,
                                    static_cast<ptrdiff_t>(bytes), MOB_DOUBLE);
        accumulate(shape, 0, {MOB_DOUBLE, MOB_SUM, nullptr, nullptr}, target.table());
        EXPECT_EQ(target.wrong, 0u) << rows << " rows of " << bytes << ", stride " << stride;
        EXPECT_LE(target.taken, 16);
        for (size_t i = 0; i < kElements; ++i) {
          const size_t at = i * sizeof(double) % static_cast<size_t>(stride);
          const bool is_in = at < bytes && i * sizeof(double) / static_cast<size_t>(stride) < rows;
          ASSERT_EQ(target.values[i], is_in ? 1 : 0) << i;
        }
      }
    }
  }
}

TEST(Accumulate, AFetchWithoutOperationNeedsNoOrigin) {
  double target[4] = {1, 2, 3, 4};
  double fetched[4] = {};
  Locks locks;
  const Shape shape = rows_of(target, target, sizeof target, 1, 0, 0, MOB_DOUBLE);
  accumulate(shape, 0, {MOB_DOUBLE, MOB_NO_OP, nullptr, fetched}, locks.table());
  EXPECT_EQ(fetched[3], 4);
  accumulate(shape, 0, {MOB_DOUBLE, MOB_NO_OP, nullptr, nullptr}, locks.table());
  EXPECT_EQ(target[3], 4);
}

TEST(Accumulate, ConcurrentSumsOfDoublesLoseNothing) {
  constexpr size_t kColumns = 50;
  constexpr size_t kRows = 40;
  constexpr int kRounds = 200;
  constexpr int kThreads = 4;
  constexpr ptrdiff_t kStride = 4096;
  std::vector<double> target(kRows * kStride / sizeof(double), 0);
  std::vector<double> origin(kColumns, 1);
  std::mutex mutexes[kLockStripes];
  const LockTable table = {
      mutexes,
      [](void* context, unsigned stripe) { static_cast<std::mutex*>(context)[stripe].lock(); },
      [](void* context, unsigned stripe) { static_cast<std::mutex*>(context)[stripe].unlock(); },
      [](void*, uintptr_t) { return WordsIn{}; }};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      const Shape shape = rows_of(target.data(), origin.data(), kColumns * sizeof(double), kRows,
                                  kStride, 0, MOB_DOUBLE);
      for (int round = 0; round < kRounds; ++round) {
        accumulate(shape, 0, {MOB_DOUBLE, MOB_SUM, nullptr, nullptr}, table);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t i = 0; i < kColumns; ++i) {
      ASSERT_EQ(target[row * kStride / sizeof(double) + i], kRounds * kThreads);
    }
  }
}

}  // namespace
}  // namespace mobius::transport
