// SPDX-License-Identifier: BSD-3-Clause
#include <climits>
#include <string>

#include "errors.h"
#include "fixture.h"

using mobius_test::barrier;
using mobius_test::expect_error;
using mobius_test::outcome;
using mobius_test::Shared;

TEST(BadInput, RanksOutsideTheJob) {
  const Shared memory(64);
  const std::string ranks = "0 to " + std::to_string(mob_size() - 1);
  uint64_t value = 5;
  char byte = 0;
  for (const mob_rank_t rank :
       {-1, mob_size(), INT_MAX, INT_MIN, 1 << 15, 1 << 17, 1 << 27, 1 << 30}) {
    expect_error(mob_put8(rank, memory.at(0), 1), MOB_ERR_RANK, "mob_put8", ranks);
    expect_error(mob_get8(rank, memory.at(0), &value), MOB_ERR_RANK, "mob_get8", ranks);
    expect_error(mob_put(rank, memory.at(0), &byte, 1), MOB_ERR_RANK, "mob_put", ranks);
    expect_error(mob_put(rank, memory.at(0), &byte, 0), MOB_ERR_RANK, "mob_put", ranks);
    expect_error(mob_get(rank, memory.at(0), &byte, 1), MOB_ERR_RANK, "mob_get", ranks);
    expect_error(mob_flush(rank), MOB_ERR_RANK, "mob_flush", ranks);
    void* pointer = nullptr;
    expect_error(mob_mem_address(memory.handle(), rank, 0, &pointer), MOB_ERR_RANK,
                 "mob_mem_address", ranks);
    expect_error(mob_ptr(rank, memory.at(0), &pointer), MOB_ERR_RANK, "mob_ptr", ranks);
    EXPECT_EQ(mob_is_host_mate(rank), MOB_ERR_RANK);
  }
  EXPECT_EQ(value, 5u);
  barrier();
  EXPECT_EQ(memory.local()[0], 0);
}

TEST(BadInput, RangesOutsideTheAllocation) {
  constexpr size_t kBytes = 100;
  // The last allocation follows another one that does not extend to it, and is not in a gap.
  const Shared first(kBytes);
  const Shared second(kBytes);
  const Shared third(kBytes);
  const Shared memory(kBytes);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  unsigned char* start = memory.at(target);
  std::vector<unsigned char> buffer(4096);
  struct Case {
    ptrdiff_t offset;
    size_t bytes;
  };
  for (const Case& c : {Case{0, kBytes + 1}, Case{kBytes, 1}, Case{kBytes - 1, 2}, Case{-1, 1},
                        Case{-1, 2}, Case{ptrdiff_t{1} << 40, 1}, Case{1, kBytes},
                        Case{50, SIZE_MAX}, Case{50, SIZE_MAX - 49}, Case{0, SIZE_MAX / 2}}) {
    unsigned char* remote = start + c.offset;
    EXPECT_EQ(outcome(target, mob_put(target, remote, buffer.data(), c.bytes)), MOB_ERR_RANGE)
        << c.offset << " " << c.bytes;
    EXPECT_EQ(mob_get(target, remote, buffer.data(), c.bytes), MOB_ERR_RANGE)
        << c.offset << " " << c.bytes;
  }
  for (size_t at = kBytes - 7; at < kBytes + 16; ++at) {
    EXPECT_EQ(outcome(target, mob_put8(target, start + at, 1)), MOB_ERR_RANGE) << at;
    EXPECT_NE(std::string(mob_last_error()).find("rank " + std::to_string(target)),
              std::string::npos)
        << mob_last_error();
  }
  // Memory that is not shared at all.
  uint64_t own = 0;
  EXPECT_EQ(outcome(target, mob_put8(target, &own, 1)), MOB_ERR_RANGE);
  // Only the allocation's host knows the exact error.
  if (mobius_test::same_host(target)) {
    expect_error(mob_put8(target, start + kBytes, 1), MOB_ERR_RANGE, "mob_put8", "rank");
    expect_error(mob_put4(target, start + kBytes - 3, 1), MOB_ERR_RANGE, "mob_put4", "offset 97");
    expect_error(mob_put2(target, start + kBytes - 1, 1), MOB_ERR_RANGE, "mob_put2", "offset 99");
    expect_error(mob_put1(target, start + kBytes, 1), MOB_ERR_RANGE, "mob_put1", "offset 100");
    expect_error(mob_put8(target, &own, 1), MOB_ERR_RANGE, "mob_put8", "not in any allocation");
  }
  // The part of another rank.
  EXPECT_EQ(mob_put8(target, memory.at(target), 0), MOB_OK);
  if (mob_size() > 1 && mobius_test::one_host()) {
    const mob_rank_t other = mob_rank() == 0 ? 1 : 0;
    uint64_t value = 0;
    void* pointer = nullptr;
    // In table mode, and on different hosts, two ranks' parts may have the same address; the same
    // offset is then legal.
    EXPECT_EQ(mob_ptr(other, memory.at(other), &pointer), MOB_OK);
    if (pointer == memory.at(other)) {
      for (mob_rank_t r = 0; r < mob_size(); ++r) {
        if (r == other) continue;
        EXPECT_EQ(mob_get8(r, memory.at(other), &value), MOB_ERR_RANGE);
      }
    }
  }
  barrier();
  size_t touched = 0;
  for (size_t i = 0; i < kBytes; ++i) touched += memory.local()[i] != 0;
  EXPECT_EQ(touched, 0u) << "a refused put wrote";
}

TEST(BadInput, NullPointers) {
  const Shared memory(64);
  const mob_rank_t me = mob_rank();
  expect_error(mob_put(me, nullptr, &me, 4), MOB_ERR_ARGUMENT, "mob_put", "remote address");
  expect_error(mob_put(me, memory.at(me), nullptr, 4), MOB_ERR_ARGUMENT, "mob_put", "local buffer");
  expect_error(mob_get(me, memory.at(me), nullptr, 4), MOB_ERR_ARGUMENT, "mob_get", "local buffer");
  expect_error(mob_put8(me, nullptr, 4), MOB_ERR_ARGUMENT, "mob_put8", "remote address");
  EXPECT_EQ(mob_put(me, memory.at(me), nullptr, 0), MOB_OK);
  EXPECT_EQ(mob_get(me, nullptr, nullptr, 0), MOB_OK);
  expect_error(mob_mem_address(memory.handle(), me, 0, nullptr), MOB_ERR_ARGUMENT,
               "mob_mem_address", "null");
  expect_error(mob_mem_bytes(memory.handle(), me, nullptr), MOB_ERR_ARGUMENT, "mob_mem_bytes",
               "null");
  expect_error(mob_ptr(me, memory.at(me), nullptr), MOB_ERR_ARGUMENT, "mob_ptr", "result is null");
  void* pointer = nullptr;
  expect_error(mob_ptr(me, nullptr, &pointer), MOB_ERR_ARGUMENT, "mob_ptr", "address is null");
  expect_error(mob_host_mate(0, nullptr), MOB_ERR_ARGUMENT, "mob_host_mate", "null");
}

namespace {

template <typename T>
void expect_no_value(const char* call, mob_status_t (*get)(mob_rank_t, const void*, T*)) {
  const Shared memory(64);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  for (int i = 0; i < 2; ++i) {
    expect_error(get(target, memory.at(target), nullptr), MOB_ERR_ARGUMENT, call, "result");
    // From now on the part is accessed inline.
    T value = 1;
    EXPECT_EQ(get(target, memory.at(target), &value), MOB_OK) << mob_last_error();
    EXPECT_EQ(value, T{0});
  }
  expect_error(get(mob_size(), memory.at(target), nullptr), MOB_ERR_RANK, call, "0 to");
}

template <typename T>
void expect_no_answer(const char* call, mob_status_t (*test)(const T*, mob_compare_t, T, int*)) {
  const T word = 0;
  expect_error(test(&word, MOB_EQ, 0, nullptr), MOB_ERR_ARGUMENT, call, "result");
  expect_error(test(&word, MOB_NE, 0, nullptr), MOB_ERR_ARGUMENT, call, "result");
}

}  // namespace

TEST(BadInput, NoPlaceForTheResultOfAnInlinedCall) {
  expect_no_value("mob_get8", mob_get8);
  expect_no_value("mob_get4", mob_get4);
  expect_no_value("mob_get2", mob_get2);
  expect_no_value("mob_get1", mob_get1);
  expect_no_answer("mob_test_until_i4", mob_test_until_i4);
  expect_no_answer("mob_test_until_u4", mob_test_until_u4);
  expect_no_answer("mob_test_until_i8", mob_test_until_i8);
  expect_no_answer("mob_test_until_u8", mob_test_until_u8);
}

TEST(BadInput, HandlesThatAreNotLive) {
  mob_mem_t freed = nullptr;
  EXPECT_EQ(mob_mem_alloc(64, &freed), MOB_OK);
  void* address = nullptr;
  EXPECT_EQ(mob_mem_address(freed, mob_rank(), 0, &address), MOB_OK);
  EXPECT_EQ(mob_put8(mob_rank(), address, 1), MOB_OK);  // now inlined
  EXPECT_EQ(mob_mem_free(freed), MOB_OK);
  expect_error(mob_mem_free(freed), MOB_ERR_HANDLE, "mob_mem_free", "not a live allocation");
  int elsewhere = 0;
  expect_error(mob_mem_free(reinterpret_cast<mob_mem_t>(&elsewhere)), MOB_ERR_HANDLE,
               "mob_mem_free", "not a live allocation");
  expect_error(mob_put8(mob_rank(), address, 1), MOB_ERR_RANGE, "mob_put8",
               "not in any allocation");
  EXPECT_EQ(mob_mem_local(freed), nullptr);
  size_t bytes = 0;
  EXPECT_EQ(mob_mem_bytes(freed, 0, &bytes), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_mem_free(nullptr), MOB_OK);
}

TEST(BadInput, AllocationsLargerThanMemoryFailEverywhereAndLeaveRoom) {
  mob_mem_t mem = nullptr;
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 63, size_t{1} << 47}) {
    expect_error(mob_mem_alloc(bytes, &mem), MOB_ERR_RANGE, "mob_mem_alloc", "window");
    EXPECT_EQ(mem, nullptr);
  }
  // More than any host of today has, but less than the window.
  const mob_status_t status = mob_mem_alloc(size_t{1} << 42, &mem);
  EXPECT_TRUE(status == MOB_ERR_MEMORY || status == MOB_ERR_RANGE) << mob_last_error();
  // One process alone asks for too much: all get an error.
  const size_t bytes = mob_rank() == mob_size() - 1 ? size_t{1} << 42 : 64;
  const mob_status_t one = mob_mem_alloc(bytes, &mem);
  EXPECT_TRUE(one == MOB_ERR_MEMORY || one == MOB_ERR_RANGE) << mob_last_error();
  EXPECT_EQ(mem, nullptr);
  const Shared still_works(64);
  EXPECT_EQ(mob_put8(mob_rank(), still_works.at(mob_rank()), 1), MOB_OK);
}

TEST(BadInput, NullResultOfOneRankFailsEverywhere) {
  mob_mem_t mem = nullptr;
  const bool wrong = mob_rank() == mob_size() - 1;
  expect_error(mob_mem_alloc(64, wrong ? nullptr : &mem), wrong ? MOB_ERR_ARGUMENT : MOB_ERR_PEER,
               "mob_mem_alloc", "rank " + std::to_string(mob_size() - 1));
  EXPECT_EQ(mem, nullptr);
}

TEST(BadInput, MoreThanMemoryHolds) {
  mob_handle_t handle = MOB_HANDLE_DONE;
  expect_error(mob_wait_all(&handle, SIZE_MAX), MOB_ERR_RANGE, "mob_wait_all", "handles");
  const char byte = 0;
  expect_error(mob_message_send(mob_rank(), 1, nullptr, 0, &byte, (size_t{1} << 48) + 1, nullptr),
               MOB_ERR_RANGE, "mob_message_send", "more than any memory has");
}

// Nothing is freed: both remain usable, and are freed like any other.
TEST(BadInput, MembersThatFreeDifferentAllocations) {
  if (mob_size() == 1) GTEST_SKIP() << "one process";
  if (!mobius_test::is_on_world()) GTEST_SKIP() << "no allocation is one of the world";
  const bool last = mob_rank() == mob_size() - 1;
  const Shared a(64);
  const Shared b(64);
  const mob_rank_t target = mobius_test::right_of(mob_rank());
  for (uint64_t round = 1; round <= 3; ++round) {
    expect_error(mob_mem_free(last ? b.handle() : a.handle()), MOB_ERR_ARGUMENT, "mob_mem_free",
                 "ranks 0 and " + std::to_string(mob_size() - 1) + " free different allocations;");
    expect_error(mob_mem_free(last ? nullptr : a.handle()), MOB_ERR_ARGUMENT, "mob_mem_free",
                 "null");
    expect_error(mob_mem_free(last ? a.handle() : nullptr), MOB_ERR_ARGUMENT, "mob_mem_free",
                 "null");
    const Shared other(64);
    for (const Shared* memory : {&a, &b}) {
      EXPECT_EQ(mob_put8(target, memory->at(target), round), MOB_OK) << mob_last_error();
    }
    barrier();
    for (const Shared* memory : {&a, &b}) {
      EXPECT_EQ(std::memcmp(memory->local(), &round, sizeof round), 0);
    }
    EXPECT_TRUE(mobius_test::all_are(other.local(), 64, 0));
    barrier();
  }
}

// Members have different handles for an allocation if they made different allocations before.
TEST(BadInput, AllocationsWithDifferentHandlesAreFreed) {
  mob_team_t alone = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, mob_rank(), 0, &alone), MOB_OK) << mob_last_error();
  mob_mem_t own[3] = {};
  const int made = mob_rank() % 3;
  for (int i = 0; i < made; ++i) {
    EXPECT_EQ(mob_team_alloc(alone, 64, 0, &own[i]), MOB_OK) << mob_last_error();
  }
  {
    const Shared all(64);
  }
  for (int i = 0; i < made; ++i) EXPECT_EQ(mob_mem_free(own[i]), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_team_free(alone), MOB_OK) << mob_last_error();
  barrier();
}
