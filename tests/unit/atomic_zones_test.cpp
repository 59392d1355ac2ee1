// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/locks/atomic_zones.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "engine/segment/locks/private_atomic_zones.h"

namespace mobius::engine {
namespace {

using transport::WordsIn;

constexpr uint64_t kBlock = transport::kLockBlockBytes;
constexpr uint64_t kZone = transport::kWordZoneBytes;
// A chunk other than the first.
constexpr uint64_t kChunk = 7 * AtomicZones::kChunkBytes;

void expect(const AtomicZones& marks, uint64_t block, uint64_t arriving, uint64_t admitted) {
  const WordsIn found = marks.of_block(kChunk + block * kBlock);
  EXPECT_EQ(found.arriving, arriving) << "block " << block;
  EXPECT_EQ(found.admitted, admitted) << "block " << block;
}

TEST(AtomicZones, FewZonesAreKnownOneByOne) {
  AtomicZones marks{};
  expect(marks, 0, 0, 0);
  const uint64_t place = kChunk + 3 * kBlock + 9 * kZone + 8;
  EXPECT_TRUE(marks.zone_arrives(place));
  expect(marks, 3, uint64_t{1} << 9, 0);
  marks.zone_is_admitted(place);
  expect(marks, 3, uint64_t{1} << 9, uint64_t{1} << 9);
  EXPECT_TRUE(marks.zone_arrives(place + 1000));  // has arrived
  EXPECT_TRUE(marks.zone_arrives(kChunk + AtomicZones::kChunkBytes - 8));
  expect(marks, 31, uint64_t{1} << 63, 0);
  expect(marks, 3, uint64_t{1} << 9, uint64_t{1} << 9);
  expect(marks, 0, 0, 0);
}

TEST(AtomicZones, ZonesThatDoNotFitAreRoundedToBlocks) {
  AtomicZones marks{};
  for (uint64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(marks.zone_arrives(kChunk + i * kZone));
    marks.zone_is_admitted(kChunk + i * kZone);
  }
  EXPECT_FALSE(marks.zone_arrives(kChunk + 5 * kZone));
  EXPECT_TRUE(marks.zone_arrives(kChunk + 4 * kZone));
  marks.zone_is_admitted(kChunk + 5 * kZone);  // does nothing
  expect(marks, 0, 31, 31);
  marks.blocks_arrive(1);
  expect(marks, 0, WordsIn::kAll, 31);
  marks.blocks_are_admitted(1);
  expect(marks, 0, WordsIn::kAll, WordsIn::kAll);
  expect(marks, 1, 0, 0);
  EXPECT_EQ(marks.admitted_blocks(), 1u);
  marks.blocks_arrive(AtomicZones::kAllBlocks);
  expect(marks, 31, WordsIn::kAll, 0);
  marks.clear();
  expect(marks, 0, 0, 0);
  expect(marks, 31, 0, 0);
  EXPECT_TRUE(marks.zone_arrives(kChunk + 5 * kZone));
}

// For addresses outside the window.
constexpr uintptr_t kAddress = 0x7f12'3456'0000;
static_assert(kAddress % kBlock == 0);

void expect(const PrivateAtomicZones& marks, uintptr_t address, uint64_t arriving,
            uint64_t admitted) {
  const WordsIn found = marks.of_block(address);
  EXPECT_EQ(found.arriving, arriving) << address;
  EXPECT_EQ(found.admitted, admitted) << address;
}

TEST(PrivateAtomicZones, FewZonesAreKnownOneByOne) {
  PrivateAtomicZones marks{};
  expect(marks, kAddress, 0, 0);
  marks.arrives(kAddress + 9 * kZone + 8);
  expect(marks, kAddress, uint64_t{1} << 9, 0);
  expect(marks, kAddress + kBlock, 0, 0);
  marks.is_admitted(kAddress + 9 * kZone + 16);
  expect(marks, kAddress, uint64_t{1} << 9, uint64_t{1} << 9);
  // Once more, for another block of the stripe.
  marks.arrives(kAddress + 9 * kZone);
  marks.arrives(kAddress + 5 * kBlock - 8);
  expect(marks, kAddress, uint64_t{1} << 9, uint64_t{1} << 9);
  expect(marks, kAddress + 4 * kBlock, uint64_t{1} << 63, 0);
  marks.is_admitted(kAddress + 5 * kBlock - 8);
  expect(marks, kAddress + 4 * kBlock + 100, uint64_t{1} << 63, uint64_t{1} << 63);
  expect(marks, kAddress, uint64_t{1} << 9, uint64_t{1} << 9);
}

TEST(PrivateAtomicZones, ZonesThatDoNotFitAreAllMemory) {
  PrivateAtomicZones marks{};
  for (uintptr_t i = 0; i < 6; ++i) {
    marks.arrives(kAddress + i * kZone);
    marks.is_admitted(kAddress + i * kZone);
  }
  expect(marks, kAddress, 63, 63);
  expect(marks, kAddress + kBlock, 0, 0);
  marks.arrives(kAddress + 6 * kZone);
  expect(marks, kAddress, WordsIn::kAll, 63);
  expect(marks, kAddress + kBlock, WordsIn::kAll, 0);
  marks.is_admitted(kAddress + 6 * kZone);
  expect(marks, kAddress, WordsIn::kAll, WordsIn::kAll);
  expect(marks, kAddress + kBlock, WordsIn::kAll, WordsIn::kAll);
}

}  // namespace
}  // namespace mobius::engine
