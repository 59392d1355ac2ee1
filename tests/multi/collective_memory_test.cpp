// SPDX-License-Identifier: BSD-3-Clause

// A member without memory for a collective call reports it, and so do the calls of all members that
// need it: none waits for it, and the world remains as it was.

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "fixture.h"
#include "short_memory.h"

using mobius_test::ShortMemory;

namespace {

constexpr size_t kCount = 16'384;  // elements of a block, and bytes of a small one

struct MemberBuffers {
  size_t members = static_cast<size_t>(mob_size());
  std::vector<uint64_t> in = std::vector<uint64_t>(members * kCount, 1);
  std::vector<uint64_t> out = std::vector<uint64_t>(members * kCount, 2);
  std::vector<size_t> counts = std::vector<size_t>(members, 100);
  std::vector<size_t> places = std::vector<size_t>(members);
};

struct Call {
  const char* name;
  mob_status_t (*make)(mob_team_t team, MemberBuffers& buffers);
};

constexpr size_t kDataBytes = kCount * sizeof(uint64_t);

void add(void* sum, const void* more, size_t count, void*) {
  for (size_t i = 0; i < count; ++i) {
    static_cast<uint64_t*>(sum)[i] += static_cast<const uint64_t*>(more)[i];
  }
}
constexpr mob_user_op_t kAdd = {&add, nullptr, sizeof(uint64_t), 0};

const Call kCalls[] = {
    {"mob_broadcast",
     [](mob_team_t team, MemberBuffers& b) {
       return mob_broadcast(team, 0, b.in.data(), kDataBytes);
     }},
    {"mob_gather",
     [](mob_team_t team, MemberBuffers& b) {
       return mob_gather(team, 0, b.in.data(), b.out.data(), 1'000);
     }},
    {"mob_gatherv",
     [](mob_team_t team, MemberBuffers& b) {
       return mob_gatherv(team, 0, b.in.data(), 100, b.out.data(), b.counts.data(),
                          b.places.data());
     }},
    {"mob_allgather",
     [](mob_team_t team, MemberBuffers& b) {
       return mob_allgather(team, b.in.data(), b.out.data(), kDataBytes);
     }},
    {"mob_scatter",
     [](mob_team_t team, MemberBuffers& b) {
       return mob_scatter(team, 0, b.in.data(), b.out.data(), 1'000);
     }},
    {"mob_alltoall",
     [](mob_team_t team, MemberBuffers& b) {
       return mob_alltoall(team, b.in.data(), b.out.data(), 1'000);
     }},
    {"mob_alltoall of large blocks",
     [](mob_team_t team, MemberBuffers& b) {
       return mob_alltoall(team, b.in.data(), b.out.data(), kDataBytes);
     }},
    {"mob_alltoallv",
     [](mob_team_t team, MemberBuffers& b) {
       return mob_alltoallv(team, b.in.data(), b.counts.data(), b.places.data(), b.out.data(),
                            b.counts.data(), b.places.data());
     }},
    {"mob_allreduce",
     [](mob_team_t team, MemberBuffers& b) {
       return mob_allreduce(team, MOB_SUM, MOB_UINT64, b.in.data(), b.out.data(), kCount);
     }},
    {"mob_scan",
     [](mob_team_t team, MemberBuffers& b) {
       return mob_scan(team, MOB_SUM, MOB_UINT64, b.in.data(), b.out.data(), kCount);
     }},
    {"mob_reduce_user",
     [](mob_team_t team, MemberBuffers& b) {
       return mob_reduce_user(team, mob_size() - 1, &kAdd, b.in.data(), b.out.data(), kCount);
     }},
};

}  // namespace

TEST(CollectiveMemory, AMemberWithoutMemoryKeepsNobodyWaiting) {
  if (!ShortMemory::is_possible()) GTEST_SKIP() << "a sanitizer has the memory";
  MemberBuffers buffers;
  for (size_t i = 0; i < buffers.members; ++i) buffers.places[i] = 100 * i;
  // Connections to all ranks, which take memory of their own.
  const mobius_test::Shared memory(8);
  for (mob_rank_t rank = 0; rank < mob_size(); ++rank) {
    ASSERT_EQ(mob_put8(rank, memory.at(rank), 1), MOB_OK);
  }
  ASSERT_EQ(mob_flush_all(), MOB_OK);
  int lacks = 0;
  // On one host each failure costs one turn of a watch, and fewer calls copy; jobs of other sizes
  // test the other sizes.
  const size_t step = mobius_test::one_host() ? 4 : 1;
  for (size_t i = buffers.members % step; i < std::size(kCalls); i += step) {
    const Call& call = kCalls[i];
    const mob_rank_t victims[] = {0, mob_size() / 2, mob_size() - 1};
    const mob_rank_t victim = victims[(i + buffers.members) % std::size(victims)];
    SCOPED_TRACE(std::string(call.name) + ", rank " + std::to_string(victim));
    mob_team_t team = MOB_TEAM_NONE;
    ASSERT_EQ(mob_team_split(MOB_TEAM_WORLD, 0, 0, &team), MOB_OK) << mob_last_error();
    mob_status_t status = MOB_OK;
    {
      // Set before the other ranks begin, so that their messages find no memory either.
      const ShortMemory none(mob_rank() == victim ? 1'000 : SIZE_MAX);
      mobius_test::barrier();
      status = call.make(team, buffers);
    }
    if (mob_rank() == victim && status != MOB_OK) {
      EXPECT_EQ(status, MOB_ERR_MEMORY) << mob_last_error();
      EXPECT_NE(std::string(mob_last_error()).find("no memory left"), std::string::npos)
          << mob_last_error();
    } else if (status != MOB_OK) {
      EXPECT_EQ(status, MOB_ERR_PEER) << mob_last_error();
    }
    int32_t own = status != MOB_OK ? 1 : 0;
    int32_t failed = 0;
    ASSERT_EQ(mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_INT32, &own, &failed, 1), MOB_OK);
    const mob_status_t after = mob_team_barrier(team);
    EXPECT_EQ(after, failed != 0 ? MOB_ERR_PEER : MOB_OK) << mob_last_error();
    static_cast<void>(mob_team_free(team));
    lacks += failed != 0 ? 1 : 0;
    mobius_test::barrier();
  }
  // Between hosts blocks are gathered in a buffer; on one host they go straight to their
  // destination.
  if (!mobius_test::one_host()) {
    EXPECT_GT(lacks, 0);
  }
}
