// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/window/chunk_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "engine/common/peers.h"
#include "engine/segment/segment_layout.h"
#include "fake_job.h"
#include "os/memory/memfd.h"

namespace mobius::engine {
namespace {

class ChunksOfAWindow : public testing::Test {
 protected:
  static constexpr uint64_t kChunks = 6;

  void SetUp() override {
    int descriptor = -1;
    ASSERT_EQ(os::memfd_create_sized("chunks", job::kWindowOffset, &descriptor), MOB_OK);
    ASSERT_EQ(layout_.map(descriptor, 1), MOB_OK) << mob_last_error();
    close(descriptor);
    layout_.chunk_table().high_water.store(kChunks);  // all entries have memory
    chunks_.open(peers_, layout_, kChunks);
  }
  void TearDown() override { layout_.close(); }

  uint64_t claim(uint64_t count) {
    uint64_t first = UINT64_MAX;
    EXPECT_EQ(chunks_.claim(count, &first), MOB_OK) << mob_last_error();
    return first;
  }
  void expect_no_room(uint64_t count) {
    uint64_t first = 0;
    EXPECT_EQ(chunks_.claim(count, &first), MOB_ERR_MEMORY);
    EXPECT_NE(std::string(mob_last_error()).find("do not fit into"), std::string::npos);
  }

  FakeReports reports_;
  Peers peers_{reports_};
  SegmentLayout layout_;
  ChunkTable chunks_;
};

TEST_F(ChunksOfAWindow, AreGivenToTheLastOneAndNotOneMore) {
  EXPECT_EQ(claim(4), 0u);
  expect_no_room(3);
  EXPECT_EQ(claim(2), 4u);
  expect_no_room(1);
  chunks_.release(0, 6);
  expect_no_room(7);
  expect_no_room(UINT64_MAX);
  EXPECT_EQ(claim(6), 0u);
}

TEST_F(ChunksOfAWindow, ThatWereGivenBackAreUsedWhereTheyAreEnough) {
  EXPECT_EQ(claim(2), 0u);
  EXPECT_EQ(claim(2), 2u);
  chunks_.release(0, 2);
  EXPECT_EQ(claim(1), 0u);
  EXPECT_EQ(claim(2), 4u);
  EXPECT_EQ(claim(1), 1u);
  expect_no_room(1);
}

TEST_F(ChunksOfAWindow, BelongToTheirRegionUntilItIsCleared) {
  const uint64_t first = claim(3);
  const uint64_t offset = first << kChunkShift;
  Region found{};
  EXPECT_FALSE(chunks_.find(offset, &found));
  chunks_.set_region(first, {offset, 2 * kChunkBytes + 1, 5});
  for (const uint64_t at : {uint64_t{0}, kChunkBytes - 1, 3 * kChunkBytes - 1}) {
    ASSERT_TRUE(chunks_.find(offset + at, &found)) << at;
    EXPECT_EQ(found.offset, offset);
    EXPECT_EQ(found.bytes, 2 * kChunkBytes + 1);
    EXPECT_EQ(found.owner, 5);
  }
  EXPECT_FALSE(chunks_.find(offset + 3 * kChunkBytes, &found));
  EXPECT_FALSE(chunks_.find(kChunks << kChunkShift, &found));
  const uint32_t generation = found.generation;
  chunks_.clear_region(found);
  EXPECT_FALSE(chunks_.find(offset, &found));
  chunks_.release(first, 3);
  chunks_.set_region(claim(1), {offset, 1, 5});
  ASSERT_TRUE(chunks_.find(offset, &found));
  EXPECT_NE(found.generation, generation);  // who opened the old region must notice
}

}  // namespace
}  // namespace mobius::engine
