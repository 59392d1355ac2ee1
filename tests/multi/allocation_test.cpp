// SPDX-License-Identifier: BSD-3-Clause
#include <fstream>
#include <string>

#include "fixture.h"

using mobius_test::barrier;
using mobius_test::Shared;

namespace {

size_t lines_of(const char* path) {
  std::ifstream file(path);
  size_t count = 0;
  for (std::string line; std::getline(file, line);) ++count;
  return count;
}

}  // namespace

TEST(Allocation, IsZeroAndHasTheSizeOfEachRank) {
  const auto bytes = static_cast<size_t>(1000 * (mob_rank() + 1));
  mob_mem_t mem = nullptr;
  EXPECT_EQ(mob_mem_alloc(bytes, &mem), MOB_OK) << mob_last_error();
  for (mob_rank_t r = 0; r < mob_size(); ++r) {
    size_t got = 0;
    EXPECT_EQ(mob_mem_bytes(mem, r, &got), MOB_OK);
    EXPECT_EQ(got, static_cast<size_t>(1000 * (r + 1)));
  }
  const auto* local = static_cast<const unsigned char*>(mob_mem_local(mem));
  EXPECT_TRUE(mobius_test::all_are(local, bytes, 0));
  EXPECT_EQ(mob_mem_free(mem), MOB_OK);
}

TEST(Allocation, PartsMayBeEmpty) {
  mob_mem_t mem = nullptr;
  EXPECT_EQ(mob_mem_alloc(mob_rank() == 0 ? 64 : 0, &mem), MOB_OK);
  EXPECT_EQ(mob_mem_local(mem) != nullptr, mob_rank() == 0);
  void* address = nullptr;
  EXPECT_EQ(mob_mem_address(mem, mob_size() - 1, 0, &address), MOB_OK);
  if (mob_size() > 1) {
    EXPECT_EQ(mobius_test::outcome(mob_size() - 1, mob_put8(mob_size() - 1, address, 1)),
              MOB_ERR_RANGE);
    EXPECT_EQ(mob_put(mob_size() - 1, address, &mem, 0), MOB_OK);
  }
  EXPECT_EQ(mob_mem_free(mem), MOB_OK);
  mem = nullptr;
  EXPECT_EQ(mob_mem_alloc(0, &mem), MOB_OK);
  EXPECT_NE(mem, nullptr);
  EXPECT_EQ(mob_mem_free(mem), MOB_OK);
}

TEST(Allocation, PartsLargerThanAChunk) {
  constexpr size_t kBytes = (size_t{5} << 20) + 3;
  const Shared memory(kBytes);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  EXPECT_EQ(mob_put1(target, memory.at(target, kBytes - 1), 77), MOB_OK);
  EXPECT_EQ(mob_put1(target, memory.at(target, 0), 78), MOB_OK);
  barrier();
  EXPECT_EQ(memory.local()[kBytes - 1], 77);
  EXPECT_EQ(memory.local()[0], 78);
  barrier();
}

TEST(Allocation, PointerOfALocalPeerIsItsMemory) {
  const Shared memory(4096);
  const mob_rank_t target = mobius_test::local_peer(mob_host_rank() + 1);
  void* pointer = nullptr;
  EXPECT_EQ(mob_ptr(target, memory.at(target, 8), &pointer), MOB_OK) << mob_last_error();
  *static_cast<volatile int*>(pointer) = 1000 + mob_rank();
  barrier();
  EXPECT_EQ(*reinterpret_cast<volatile int*>(memory.local() + 8),
            1000 + mobius_test::local_peer(mob_host_rank() - 1));
  barrier();
}

TEST(Allocation, NoPointerToAnotherHost) {
  const Shared memory(64);
  for (mob_rank_t target = 0; target < mob_size(); ++target) {
    if (mobius_test::same_host(target)) continue;
    void* pointer = &pointer;
    EXPECT_EQ(mob_ptr(target, memory.at(target), &pointer), MOB_ERR_RANK);
    EXPECT_EQ(pointer, &pointer);
    EXPECT_NE(std::string(mob_last_error()).find("another host"), std::string::npos);
  }
  barrier();
}

// Many allocations are made and freed: descriptors and mappings must not accumulate.
TEST(Allocation, ManyLeaveNothingBehind) {
  const Shared kept(100);
  {
    const Shared warm_up(5000);
  }
  const size_t mappings = lines_of("/proc/self/maps");
  for (int i = 0; i < 150; ++i) {
    const Shared a(static_cast<size_t>(1 + i % 7000));
    const Shared b(8);
    const mob_rank_t target = mobius_test::right_of(mob_rank());
    EXPECT_EQ(mob_put8(target, b.at(target), static_cast<uint64_t>(i)), MOB_OK);
  }
  EXPECT_LE(lines_of("/proc/self/maps"), mappings + 8);
  const Shared again(8);
  EXPECT_LT(reinterpret_cast<uintptr_t>(again.at(0)) - reinterpret_cast<uintptr_t>(kept.at(0)),
            uintptr_t{64} << 21)
      << "addresses are not reused";
}

TEST(Allocation, FreshMemoryIsZeroWhereOtherMemoryWasBefore) {
  for (int round = 0; round < 3; ++round) {
    const Shared memory(3 << 20);
    EXPECT_TRUE(mobius_test::all_are(memory.local(), 3 << 20, 0)) << "round " << round;
    std::memset(memory.local(), 0xAB, 3 << 20);
  }
}
