// SPDX-License-Identifier: BSD-3-Clause
#include "engine/request/span_wire.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace mobius::engine {
namespace {

mob_span_t span(uint64_t address, size_t bytes) {
  return {reinterpret_cast<void*>(address), bytes};
}

std::vector<unsigned char> written(const std::vector<mob_span_t>& spans) {
  const SpanWire wire(spans.data(), spans.size());
  EXPECT_EQ(wire.bytes() % 16, 0u);
  std::vector<unsigned char> bytes(wire.bytes() + 16, 0xa5);
  wire.write(bytes.data());
  for (size_t i = wire.bytes(); i < bytes.size(); ++i) EXPECT_EQ(bytes[i], 0xa5);
  bytes.resize(wire.bytes());
  return bytes;
}

void expect_return(const std::vector<mob_span_t>& spans) {
  const std::vector<unsigned char> bytes = written(spans);
  std::vector<mob_span_t> read;
  ASSERT_TRUE(SpanWire::read(bytes.data(), bytes.size(), spans.size(), &read));
  ASSERT_EQ(read.size(), spans.size());
  for (size_t i = 0; i < spans.size(); ++i) {
    ASSERT_EQ(read[i].address, spans[i].address) << i;
    ASSERT_EQ(read[i].bytes, spans[i].bytes) << i;
  }
}

TEST(SpanWire, WrittenSpansAreRead) {
  expect_return({span(0x600000001000, 1)});
  expect_return({span(UINT64_MAX - 7, 8), span(8, 8)});
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<mob_span_t> spans;
    uint64_t address = random() >> (random() % 32);
    const unsigned far = static_cast<unsigned>(random() % 64);
    const unsigned long_by = static_cast<unsigned>(random() % 64);
    const unsigned unit = static_cast<unsigned>(random() % 5);
    const bool even = random() % 2 == 0;
    for (size_t left = 1 + random() % 50; left != 0; --left) {
      spans.push_back(span(address, even ? 8 : random() >> long_by << unit));
      const uint64_t distance = random() >> far << unit;
      address += random() % 8 == 0 ? -distance : distance;
    }
    expect_return(spans);
  }
}

TEST(SpanWire, NearSpansOfOneLengthTakeAByteEach) {
  std::vector<mob_span_t> spans;
  for (uint64_t i = 0; i < 1024; ++i) spans.push_back(span(0x600000000000 + i * 20 + i % 2 * 4, 8));
  EXPECT_LE(written(spans).size(), 1024u + 48);
}

TEST(SpanWire, NonsenseIsRefused) {
  const std::vector<unsigned char> bytes = written({span(64, 8), span(100, 4), span(200, 8)});
  std::vector<mob_span_t> read;
  EXPECT_FALSE(SpanWire::read(bytes.data(), bytes.size(), 2, &read));  // too many
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(SpanWire::read(bytes.data(), length, 100, &read)) << length;
  }
  // After a change of any byte, the reader reads nothing beyond the bytes and names no more spans.
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    std::vector<unsigned char> changed = bytes;
    for (unsigned times = 1 + random() % 3; times != 0; --times) {
      changed[random() % changed.size()] = static_cast<unsigned char>(random());
    }
    if (SpanWire::read(changed.data(), changed.size(), 3, &read)) {
      EXPECT_LE(read.size(), 3u);
    }
  }
}

}  // namespace
}  // namespace mobius::engine
