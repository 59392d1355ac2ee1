// SPDX-License-Identifier: BSD-3-Clause
#include <random>
#include <thread>

#include "fixture.h"
#include "serve.h"

using mobius_test::barrier;
using mobius_test::pattern;
using mobius_test::right_of;
using mobius_test::Shared;

namespace {

constexpr size_t kGuard = 64;

// Sizes around every power of two, where paths change.
std::vector<size_t> sizes() {
  std::vector<size_t> result{0, 1, 2, 3};
  for (size_t power = 4; power <= (size_t{1} << 20); power *= 8) {
    for (size_t bytes : {power - 1, power, power + 1}) result.push_back(bytes);
  }
  for (const size_t bytes : {size_t{1} << 18, size_t{1} << 20}) {
    result.push_back(bytes);
    result.push_back(bytes + 1);
  }
  return result;
}

}  // namespace

TEST(Transfer, PutWritesExactlyTheBytesAskedFor) {
  const size_t most = sizes().back();
  const Shared memory(most + 2 * kGuard + 8);
  const mob_rank_t target = right_of(mob_rank());
  const mob_rank_t origin = mobius_test::left_of(mob_rank());
  const auto data = mobius_test::patterned(most, mob_rank(), 0);
  const auto expected = mobius_test::patterned(most, origin, 0);
  int misalignment = 0;
  for (const size_t bytes : sizes()) {
    misalignment = (misalignment + 3) % 8;
    const size_t start = kGuard + static_cast<size_t>(misalignment);
    std::memset(memory.local(), 0xEE, start + bytes + kGuard);
    barrier();
    EXPECT_EQ(mob_put(target, memory.at(target, start), data.data(), bytes), MOB_OK)
        << mob_last_error();
    EXPECT_EQ(mob_flush(target), MOB_OK);
    barrier();
    EXPECT_TRUE(mobius_test::all_are(memory.local(), start, 0xEE)) << bytes << " bytes";
    EXPECT_TRUE(mobius_test::holds(memory.local() + start, expected, bytes)) << bytes << " bytes";
    EXPECT_TRUE(mobius_test::all_are(memory.local() + start + bytes, kGuard, 0xEE))
        << bytes << " bytes";
    barrier();
  }
}

TEST(Transfer, GetReadsExactlyTheBytesAskedFor) {
  const size_t most = sizes().back();
  const Shared memory(most + 8);
  const mob_rank_t target = right_of(mob_rank());
  std::memcpy(memory.local(), mobius_test::patterned(most + 8, mob_rank(), 1).data(), most + 8);
  const auto expected = mobius_test::patterned(most + 8, target, 1);
  barrier();
  std::vector<unsigned char> got(most + 2 * kGuard);
  size_t start = 0;
  for (const size_t bytes : sizes()) {
    start = (start + 5) % 8;
    std::memset(got.data(), 0xDD, got.size());
    EXPECT_EQ(mob_get(target, memory.at(target, start), &got[kGuard], bytes), MOB_OK)
        << mob_last_error();
    EXPECT_TRUE(mobius_test::all_are(got.data(), kGuard, 0xDD)) << bytes << " bytes";
    EXPECT_TRUE(bytes == 0 || std::memcmp(&got[kGuard], &expected[start], bytes) == 0)
        << bytes << " bytes";
    EXPECT_TRUE(mobius_test::all_are(&got[kGuard + bytes], got.size() - kGuard - bytes, 0xDD))
        << bytes << " bytes";
  }
  barrier();
}

// Every inlined size at every offset, first through the out-of-line call, then inlined.
TEST(Transfer, ValuesOfEverySizeAtEveryAlignment) {
  constexpr size_t kBytes = 64;
  const Shared memory(kBytes);
  const mob_rank_t target = right_of(mob_rank());
  for (size_t at = 0; at + 8 <= kBytes; ++at) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      barrier();
      std::memset(memory.local(), 0x11, kBytes);
      barrier();
      const uint64_t value = 0x8877665544332200ull + at + (static_cast<uint64_t>(repeat) << 32);
      unsigned char* remote = memory.at(target, at);
      uint64_t back8 = 0;
      uint32_t back4 = 0;
      uint16_t back2 = 0;
      uint8_t back1 = 0;
      EXPECT_EQ(mob_put8(target, remote, value), MOB_OK);
      EXPECT_EQ(mob_get8(target, remote, &back8), MOB_OK);
      EXPECT_EQ(back8, value);
      EXPECT_EQ(mob_put4(target, remote, static_cast<uint32_t>(~value)), MOB_OK);
      EXPECT_EQ(mob_get4(target, remote, &back4), MOB_OK);
      EXPECT_EQ(back4, static_cast<uint32_t>(~value));
      EXPECT_EQ(mob_put2(target, remote, static_cast<uint16_t>(value + 9)), MOB_OK);
      EXPECT_EQ(mob_get2(target, remote, &back2), MOB_OK);
      EXPECT_EQ(back2, static_cast<uint16_t>(value + 9));
      EXPECT_EQ(mob_put1(target, remote, static_cast<uint8_t>(at)), MOB_OK);
      EXPECT_EQ(mob_get1(target, remote, &back1), MOB_OK);
      EXPECT_EQ(back1, static_cast<uint8_t>(at));
      barrier();
      size_t touched = 0;
      for (size_t i = 0; i < kBytes; ++i)
        touched += (i < at || i >= at + 8) && memory.local()[i] != 0x11;
      EXPECT_EQ(touched, 0u) << "offset " << at;
    }
  }
}

// A value after a fence is the signal for the data before it.
TEST(Transfer, FenceOrdersDataBeforeTheSignal) {
  constexpr size_t kBytes = 4096;
  const Shared memory(kBytes + 8);
  const mob_rank_t target = right_of(mob_rank());
  const mob_rank_t origin = mobius_test::left_of(mob_rank());
  std::vector<unsigned char> data(kBytes);
  const Shared acknowledged(8);
  size_t wrong = 0;
  for (uint64_t round = 1; round <= 50; ++round) {
    for (size_t i = 0; i < kBytes; ++i) data[i] = pattern(i, mob_rank(), static_cast<int>(round));
    EXPECT_EQ(mob_put(target, memory.at(target), data.data(), kBytes), MOB_OK);
    EXPECT_EQ(mob_fence(), MOB_OK);
    EXPECT_EQ(mob_put8(target, memory.at(target, kBytes), round), MOB_OK);
    uint64_t seen = 0;
    while (seen != round) {
      mobius_test::serve_other_hosts();
      EXPECT_EQ(mob_get8(mob_rank(), memory.at(mob_rank(), kBytes), &seen), MOB_OK);
      if (mob_size() > 2) std::this_thread::yield();
    }
    for (size_t i = 0; i < kBytes; ++i) {
      wrong += memory.local()[i] != pattern(i, origin, static_cast<int>(round));
    }
    barrier();
  }
  EXPECT_EQ(wrong, 0u);
}

// Random puts and gets on several allocations, compared with a model that every rank can compute.
TEST(Transfer, RandomTransfersMatchAModel) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    std::mt19937 sizes_of_all(seed);
    std::vector<size_t> bytes(4);
    for (size_t& b : bytes) b = 1 + sizes_of_all() % 100'000;
    const Shared first(bytes[0]);
    const Shared second(bytes[1]);
    const Shared third(bytes[2]);
    const Shared fourth(bytes[3]);
    const Shared* all[] = {&first, &second, &third, &fourth};
    // Each rank writes only to its right neighbour, so it alone decides the contents.
    const mob_rank_t target = right_of(mob_rank());
    std::vector<std::vector<unsigned char>> model;
    for (const size_t b : bytes) model.emplace_back(b, 0);
    std::mt19937 random(seed * 1000 + static_cast<unsigned>(mob_rank()));
    size_t wrong = 0;
    for (int step = 0; step < 200; ++step) {
      const size_t which = random() % 4;
      const size_t start = random() % bytes[which];
      const size_t length = random() % 3 == 0 ? random() % (bytes[which] - start + 1)
                                              : std::min<size_t>(8, bytes[which] - start);
      unsigned char* remote = all[which]->at(target, start);
      std::vector<unsigned char> buffer(length);
      if (random() % 2 == 0) {
        for (auto& byte : buffer) byte = static_cast<unsigned char>(random());
        std::copy(buffer.begin(), buffer.end(), model[which].begin() + static_cast<long>(start));
        if (length == 8 && random() % 2 == 0) {
          uint64_t value = 0;
          std::memcpy(&value, buffer.data(), 8);
          wrong += mob_put8(target, remote, value) != MOB_OK;
        } else {
          wrong += mob_put(target, remote, buffer.data(), length) != MOB_OK;
        }
      } else {
        wrong += mob_get(target, remote, buffer.data(), length) != MOB_OK;
        wrong += !std::equal(buffer.begin(), buffer.end(),
                             model[which].begin() + static_cast<long>(start));
      }
    }
    EXPECT_EQ(wrong, 0u) << "seed " << seed;
    barrier();
  }
}

TEST(Transfer, ToOneselfWorksLikeToOthers) {
  const Shared memory(128);
  const mob_rank_t me = mob_rank();
  double value = 3.25;
  EXPECT_EQ(mob_put(me, memory.at(me, 16), &value, sizeof value), MOB_OK);
  double back = 0;
  EXPECT_EQ(mob_get(me, memory.at(me, 16), &back, sizeof back), MOB_OK);
  EXPECT_EQ(back, value);
  EXPECT_EQ(mob_flush_all(), MOB_OK);
}
