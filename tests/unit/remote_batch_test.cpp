// SPDX-License-Identifier: BSD-3-Clause

// Batches of which some operations are wrong: each operation is checked by itself, however many the
// origin has merged.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "fake_hosts.h"

namespace mobius::engine {
namespace {

constexpr size_t kEnd = 1 << 16;  // of the memory

struct OneWrong : TwoHosts {
  OneWrong() : TwoHosts({}, kEnd) {}

  void put(void* to, const Bytes& data) {
    ASSERT_EQ(own.put_nbi(1, to, data.data(), data.size()), MOB_OK);
  }
  // The operations were one message, of which one was wrong.
  void expect_one_error() {
    EXPECT_EQ(own.flush(1), MOB_ERR_RANGE);
    EXPECT_TRUE(says("rank 1: ")) << mob_last_error();
    EXPECT_TRUE(says("not in one of its allocations")) << mob_last_error();
    EXPECT_EQ(own.flush(1), MOB_OK);
  }
};

TEST(RemoteBatches, AWrongPutOfManyScatteredLeavesTheOthers) {
  OneWrong hosts;
  constexpr size_t kPuts = 20;
  std::vector<Bytes> data;
  for (size_t i = 0; i < kPuts; ++i) data.emplace_back(8, static_cast<unsigned char>(100 + i));
  for (size_t i = 0; i < kPuts; ++i) {
    hosts.put(i == 7 ? reinterpret_cast<void*>(64) : hosts.memory + i * i * 8, data[i]);
  }
  hosts.expect_one_error();
  EXPECT_EQ(hosts.batches(), 1u);
  for (size_t i = 0; i < kPuts; ++i) EXPECT_EQ(hosts.memory[i * i * 8], i == 7 ? 0 : 100 + i);
}

TEST(RemoteBatches, AWrongGetOfManyScatteredLeavesTheOthers) {
  OneWrong hosts;
  constexpr size_t kGets = 20;
  std::vector<Bytes> got(kGets, Bytes(8, 0));
  for (size_t i = 0; i < kGets; ++i) {
    hosts.memory[i * i * 8] = static_cast<unsigned char>(100 + i);
    const void* const from = i == 9 ? reinterpret_cast<void*>(64) : hosts.memory + i * i * 8;
    ASSERT_EQ(hosts.own.get_nbi(1, from, got[i].data(), 8), MOB_OK);
  }
  hosts.expect_one_error();
  EXPECT_EQ(hosts.batches(), 1u);
  for (size_t i = 0; i < kGets; ++i) EXPECT_EQ(got[i][0], i == 9 ? 0 : 100 + i);
}

// Rows at one distance, which are one piece of the message. The last lies behind the end.
TEST(RemoteBatches, AWrongRowLeavesTheOthers) {
  OneWrong hosts;
  constexpr size_t kRow = 64;
  constexpr size_t kDistance = 128;
  constexpr size_t kRows = 10;
  unsigned char* const first = hosts.memory + kEnd - kRows * kDistance;
  const Bytes data((kRows + 1) * kRow, 1);
  for (size_t row = 0; row <= kRows; ++row) {
    ASSERT_EQ(hosts.own.put_nbi(1, first + row * kDistance, data.data() + row * kRow, kRow),
              MOB_OK);
  }
  hosts.expect_one_error();
  for (size_t row = 0; row < kRows; ++row) {
    EXPECT_EQ(std::memcmp(first + row * kDistance, data.data(), kRow), 0) << row;
    EXPECT_EQ(first[row * kDistance + kRow], 0) << row;
  }
}

// Rows at a distance that leads around the end of the address space: with the first one, the third
// row would be the first again.
TEST(RemoteBatches, RowsBeyondAllAddressesAreRefused) {
  for (const uint64_t far : {uint64_t{1} << 63, uint64_t{1} << 62}) {
    OneWrong hosts;
    constexpr size_t kRow = 100;
    Bytes data(3 * kRow);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(1 + i / kRow);
    for (uint64_t row = 0; row < 3; ++row) {
      void* const to =
          reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(hosts.memory) + row * far);
      ASSERT_EQ(hosts.own.put_nbi(1, to, data.data() + row * kRow, kRow), MOB_OK);
    }
    hosts.expect_one_error();
    EXPECT_EQ(Bytes(hosts.memory, hosts.memory + kRow), Bytes(kRow, far << 1 == 0 ? 3 : 1));
    EXPECT_EQ(hosts.memory[kRow], 0);
  }
}

}  // namespace
}  // namespace mobius::engine
