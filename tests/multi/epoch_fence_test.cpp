// SPDX-License-Identifier: BSD-3-Clause

// Fences between epochs: puts have arrived for their target and for the origin's later operations,
// and a fence reports earlier puts that failed. In a job of two processes on two hosts, no process
// waits for an answer to a put that is sure to be carried out.

#include <mobius/epoch.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "fixture.h"

using mobius_test::exchange_address;
using mobius_test::patterned;
using mobius_test::right_of;
using mobius_test::Shared;

namespace {

class EpochFence : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(mob_epoch_create(MOB_TEAM_WORLD, &epoch_), MOB_OK); }
  void TearDown() override { EXPECT_EQ(mob_epoch_free(epoch_), MOB_OK) << mob_last_error(); }

  mob_status_t fence() const { return mob_epoch_fence(epoch_); }

  // The status of a put of 8 bytes and a fence after it; on one host the put itself reports the
  // error.
  mob_status_t put_and_fence(void* to) const {
    static const uint64_t value = 4711;
    const mob_status_t put = mob_put_nbi(right_of(mob_rank()), to, &value, sizeof value);
    const mob_status_t fenced = fence();
    return put != MOB_OK ? put : fenced;
  }

  mob_epoch_t epoch_ = nullptr;
};

}  // namespace

TEST_F(EpochFence, LaterOperationsFindEarlierPuts) {
  constexpr size_t kLong = 300'000;
  const Shared memory(kLong + 8);
  const mob_rank_t right = right_of(mob_rank());
  unsigned char* const theirs = memory.at(right);
  std::vector<unsigned char> got(kLong);
  int round = 0;
  for (const size_t bytes : {size_t{4}, size_t{8}, size_t{200}, size_t{5'000}, size_t{9'000},
                             size_t{20'000}, size_t{40'000}}) {
    for (int times = 0; times < 12; ++times, ++round) {
      const auto data = patterned(bytes, mob_rank(), round);
      const auto arrived = patterned(bytes, mobius_test::left_of(mob_rank()), round);
      // In two puts; the first goes alone if it is long enough, like the second.
      const size_t first = times % 4 < 2 ? bytes : bytes / 4 * 3;
      ASSERT_EQ(mob_put_nbi(right, theirs, data.data(), first), MOB_OK);
      if (first != bytes) {
        ASSERT_EQ(mob_put_nbi(right, theirs + first, data.data() + first, bytes - first), MOB_OK);
      }
      ASSERT_EQ(fence(), MOB_OK) << mob_last_error();
      ASSERT_TRUE(mobius_test::holds(memory.local(), arrived, bytes)) << bytes;
      // The last get uses remote memory access, which is another path than the put's.
      const size_t reads = times % 3 == 0 ? bytes : times % 3 == 1 ? kLong : 1;
      ASSERT_EQ(mob_get(right, theirs, got.data(), reads), MOB_OK) << mob_last_error();
      ASSERT_EQ(std::memcmp(got.data(), data.data(), std::min(reads, bytes)), 0) << bytes;
      if (times % 2 == 0) {
        ASSERT_EQ(mob_flush(right), MOB_OK) << mob_last_error();
      }
      ASSERT_EQ(fence(), MOB_OK) << mob_last_error();
    }
  }
  // The same for long transfers behind short ones.
  const auto whole = patterned(kLong, mob_rank(), round);
  const auto last = patterned(kLong, mobius_test::left_of(mob_rank()), round);
  ASSERT_EQ(mob_put_nbi(right, theirs + kLong, whole.data(), 8), MOB_OK);
  ASSERT_EQ(fence(), MOB_OK) << mob_last_error();
  ASSERT_EQ(mob_put_nbi(right, theirs + 8, whole.data(), kLong), MOB_OK);
  ASSERT_EQ(fence(), MOB_OK) << mob_last_error();
  EXPECT_TRUE(mobius_test::holds(memory.local() + 8, last, kLong));
}

TEST_F(EpochFence, ReportsEarlierPutsThatFailed) {
  uint64_t own[2] = {};
  auto* const exposed = static_cast<uint64_t*>(exchange_address(own));
  const Shared memory(64);
  unsigned char* const theirs = memory.at(right_of(mob_rank()));
  mob_mem_t other = nullptr;
  ASSERT_EQ(mob_mem_alloc(64, &other), MOB_OK);
  void* freed = nullptr;
  ASSERT_EQ(mob_mem_address(other, right_of(mob_rank()), 0, &freed), MOB_OK);
  mob_exposed_t handle = nullptr;
  ASSERT_EQ(mob_expose(own, sizeof own, 0, &handle), MOB_OK) << mob_last_error();
  ASSERT_EQ(fence(), MOB_OK);

  EXPECT_EQ(put_and_fence(theirs), MOB_OK) << mob_last_error();
  EXPECT_EQ(put_and_fence(theirs + 60), MOB_ERR_RANGE);
  EXPECT_EQ(put_and_fence(theirs + 56), MOB_OK) << mob_last_error();
  EXPECT_EQ(put_and_fence(exposed), MOB_OK) << mob_last_error();
  EXPECT_EQ(own[0], 4711U);
  EXPECT_EQ(put_and_fence(freed), MOB_OK) << mob_last_error();
  ASSERT_EQ(mob_withdraw(handle), MOB_OK) << mob_last_error();
  ASSERT_EQ(mob_mem_free(other), MOB_OK) << mob_last_error();
  EXPECT_EQ(put_and_fence(freed), MOB_ERR_RANGE);
  if (mob_size() > 1) {  // a rank's own memory need not be exposed
    EXPECT_EQ(put_and_fence(exposed), MOB_ERR_RANGE);
  }
  EXPECT_EQ(own[1], 0U);
  EXPECT_EQ(fence(), MOB_OK) << mob_last_error();
}

// The known parts of a growing heap stay up to date.
TEST_F(EpochFence, OfAHeapThatGrows) {
  mob_heap_t heap = nullptr;
  ASSERT_EQ(mob_heap_create(MOB_TEAM_WORLD, 4096, size_t{1} << 24, &heap), MOB_OK)
      << mob_last_error();
  for (int round = 0; round < 6; ++round) {
    void* block = nullptr;
    ASSERT_EQ(mob_heap_malloc(heap, size_t{1} << (12 + round), &block), MOB_OK);
    void* theirs = nullptr;
    ASSERT_EQ(mob_heap_address(heap, right_of(mob_rank()), block, &theirs), MOB_OK);
    ASSERT_EQ(fence(), MOB_OK);
    EXPECT_EQ(put_and_fence(theirs), MOB_OK) << mob_last_error();
    EXPECT_EQ(*static_cast<const uint64_t*>(block), 4711U);
  }
  ASSERT_EQ(mob_heap_destroy(heap), MOB_OK) << mob_last_error();
}
