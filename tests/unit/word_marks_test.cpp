// SPDX-License-Identifier: BSD-3-Clause
#include "engine/word_marks.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace mobius::engine {
namespace {

using transport::WordsIn;

constexpr uint64_t kBlock = transport::kLockBlockBytes;
constexpr uint64_t kZone = transport::kWordZoneBytes;
// The chunk need not be the first one.
constexpr uint64_t kChunk = 7 * WordMarks::kChunkBytes;

void expect(const WordMarks& marks, uint64_t block, uint64_t arriving, uint64_t admitted) {
  const WordsIn found = marks.of_block(kChunk + block * kBlock);
  EXPECT_EQ(found.arriving, arriving) << "block " << block;
  EXPECT_EQ(found.admitted, admitted) << "block " << block;
}

TEST(WordMarks, FewZonesAreKnownOneByOne) {
  WordMarks marks{};
  expect(marks, 0, 0, 0);
  const uint64_t place = kChunk + 3 * kBlock + 9 * kZone + 8;
  EXPECT_TRUE(marks.zone_arrives(place));
  expect(marks, 3, uint64_t{1} << 9, 0);
  marks.zone_is_admitted(place);
  expect(marks, 3, uint64_t{1} << 9, uint64_t{1} << 9);
  EXPECT_TRUE(marks.zone_arrives(place + 1000));  // is there
  EXPECT_TRUE(marks.zone_arrives(kChunk + WordMarks::kChunkBytes - 8));
  expect(marks, 31, uint64_t{1} << 63, 0);
  expect(marks, 3, uint64_t{1} << 9, uint64_t{1} << 9);
  expect(marks, 0, 0, 0);
}

TEST(WordMarks, WhatDoesNotFitIsToldByBlocks) {
  WordMarks marks{};
  for (uint64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(marks.zone_arrives(kChunk + i * kZone));
    marks.zone_is_admitted(kChunk + i * kZone);
  }
  EXPECT_FALSE(marks.zone_arrives(kChunk + 5 * kZone));
  EXPECT_TRUE(marks.zone_arrives(kChunk + 4 * kZone));
  marks.zone_is_admitted(kChunk + 5 * kZone);  // nothing
  expect(marks, 0, 31, 31);
  marks.blocks_arrive(1);
  expect(marks, 0, WordsIn::kAll, 31);
  marks.blocks_are_admitted(1);
  expect(marks, 0, WordsIn::kAll, WordsIn::kAll);
  expect(marks, 1, 0, 0);
  EXPECT_EQ(marks.admitted_blocks(), 1u);
  marks.blocks_arrive(WordMarks::kAllBlocks);
  expect(marks, 31, WordsIn::kAll, 0);
  marks.clear();
  expect(marks, 0, 0, 0);
  expect(marks, 31, 0, 0);
  EXPECT_TRUE(marks.zone_arrives(kChunk + 5 * kZone));
}

}  // namespace
}  // namespace mobius::engine
