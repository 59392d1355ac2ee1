// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "shared_processes.h"

namespace mobius::os {
namespace {

using mobius_test::Children;
using mobius_test::SharedZeros;

constexpr size_t kCapacity = 4096;

template <size_t kBytes>
struct Memory {
  alignas(kRingLine) unsigned char bytes[ring_footprint(kBytes)];
};

// Sizes from nothing to the largest, mostly small; a record's contents depend on its number.
class Sequence {
 public:
  size_t next_size(size_t capacity) {
    const size_t most = random_() % 8 == 0 ? ring_max_payload(capacity) : 100;
    return random_() % (most + 1);
  }
  static unsigned char byte_of(uint64_t number, size_t i) {
    return static_cast<unsigned char>(number * 31 + i * 7);
  }

 private:
  std::minstd_rand random_{42};
};

void produce(void* memory, size_t capacity, uint64_t records) {
  RingWriter writer(memory, capacity);
  Sequence sequence;
  for (uint64_t number = 0; number < records; ++number) {
    const size_t bytes = sequence.next_size(capacity);
    const auto kind = static_cast<uint32_t>(number);
    const bool is_line = bytes <= kRingLinePayload && number % 2 == 0;
    void* place = nullptr;
    while ((place = is_line ? writer.reserve_line(bytes, kind) : writer.reserve(bytes, kind)) ==
           nullptr) {
      if (is_line) writer.look_for_room();
      std::this_thread::yield();
    }
    auto* payload = static_cast<unsigned char*>(place);
    for (size_t i = 0; i < bytes; ++i) payload[i] = Sequence::byte_of(number, i);
    if (is_line) {
      writer.commit_line(place);
    } else {
      writer.commit();
    }
  }
}

// The number of records that arrived unchanged.
uint64_t consume(void* memory, size_t capacity, uint64_t records) {
  RingReader reader(memory, capacity);
  Sequence sequence;
  for (uint64_t number = 0; number < records; ++number) {
    RingRecord record;
    while (!(record = reader.peek())) std::this_thread::yield();
    if (record.bytes != sequence.next_size(capacity)) return number;
    if (record.kind != static_cast<uint32_t>(number)) return number;
    if (reinterpret_cast<uintptr_t>(record.data) % kRingPayloadAlignment != 0) return number;
    for (size_t i = 0; i < record.bytes; ++i) {
      if (record.data[i] != Sequence::byte_of(number, i)) return number;
    }
    reader.release();
  }
  return records;
}

TEST(Ring, OthersSeeWhetherTheNextRecordIsThere) {
  Memory<kCapacity> memory{};
  RingWriter writer(memory.bytes, kCapacity);
  RingReader reader(memory.bytes, kCapacity);
  const auto holds = [&] { return ring_holds(memory.bytes, kCapacity, reader.position()); };
  constexpr size_t kBytes = 112;  // laps end with a record
  for (int record = 0; record < 100; ++record) {
    ASSERT_FALSE(holds());
    ASSERT_NE(writer.reserve(kBytes), nullptr);
    ASSERT_FALSE(holds()) << "reserved only";
    writer.commit();
    ASSERT_TRUE(holds());
    ASSERT_EQ(reader.peek().bytes, kBytes);
    ASSERT_TRUE(holds());
    reader.release();
  }
}

TEST(Ring, AnotherProducerGoesOnWhereTheFirstHasEnded) {
  Memory<kMinRingBytes> memory{};
  RingReader reader(memory.bytes, kMinRingBytes);
  Sequence sequence;
  for (int producer = 0; producer < 200; ++producer) {
    RingWriter writer(memory.bytes, kMinRingBytes);
    for (int record = 0; record < producer % 5; ++record) {
      const size_t bytes = sequence.next_size(kMinRingBytes);
      void* const payload = writer.reserve(bytes, static_cast<uint32_t>(producer));
      ASSERT_NE(payload, nullptr);
      // What the next headers could be taken for.
      std::fill_n(static_cast<uint64_t*>(payload), bytes / sizeof(uint64_t), reader.position() | 1);
      ASSERT_FALSE(reader.peek());
      writer.commit();
      ASSERT_EQ(reader.peek().bytes, bytes);
      ASSERT_EQ(reader.peek().kind, static_cast<uint32_t>(producer));
      reader.release();
    }
    static_cast<void>(writer.reserve(8));  // it dies before it commits this one
    ASSERT_FALSE(reader.peek());
    reader.publish();
  }
}

TEST(Ring, CarriesRecordsOfAllSizesBetweenThreads) {
  constexpr uint64_t kRecords = 100'000;
  SharedZeros<Memory<kCapacity>> memory;
  std::thread producer([&] { produce(memory->bytes, kCapacity, kRecords); });
  EXPECT_EQ(consume(memory->bytes, kCapacity, kRecords), kRecords);
  producer.join();
}

TEST(Ring, CarriesRecordsOfAllSizesBetweenProcesses) {
  constexpr uint64_t kRecords = 100'000;
  SharedZeros<Memory<kCapacity>> memory;
  Children children;
  children.start([&] {
    produce(memory->bytes, kCapacity, kRecords);
    return true;
  });
  EXPECT_EQ(consume(memory->bytes, kCapacity, kRecords), kRecords);
  children.expect_success();
}

TEST(Ring, TheSmallestRingCarriesItsLargestRecords) {
  constexpr uint64_t kRecords = 20'000;
  SharedZeros<Memory<kMinRingBytes>> memory;
  Children children;
  children.start([&] {
    produce(memory->bytes, kMinRingBytes, kRecords);
    return true;
  });
  EXPECT_EQ(consume(memory->bytes, kMinRingBytes, kRecords), kRecords);
  children.expect_success();
}

TEST(Ring, IsEmptyAsZerosAndAfterEveryRecord) {
  SharedZeros<Memory<kCapacity>> memory;
  RingWriter writer(memory->bytes, kCapacity);
  RingReader reader(memory->bytes, kCapacity);
  EXPECT_FALSE(reader.peek());
  for (uint32_t i = 0; i < 1'000; ++i) {
    ASSERT_NE(writer.reserve(i % 200, i), nullptr);
    EXPECT_FALSE(reader.peek());
    writer.commit();
    const RingRecord record = reader.peek();
    ASSERT_TRUE(record);
    EXPECT_EQ(record.kind, i);
    EXPECT_EQ(record.payload().size(), i % 200);
    EXPECT_EQ(reader.peek().data, record.data);  // peeking changes nothing
    reader.release();
    EXPECT_FALSE(reader.peek());
  }
}

TEST(Ring, IsFullUntilTheConsumerPublishes) {
  SharedZeros<Memory<kCapacity>> memory;
  RingWriter writer(memory->bytes, kCapacity);
  RingReader reader(memory->bytes, kCapacity);
  EXPECT_EQ(writer.reserve(ring_max_payload(kCapacity) + 1), nullptr);
  EXPECT_EQ(writer.reserve(SIZE_MAX), nullptr);
  size_t sent = 0;
  while (writer.reserve(48) != nullptr) {
    writer.commit();
    ++sent;
  }
  EXPECT_EQ(sent, kCapacity / kRingLine - 1);
  ASSERT_TRUE(reader.peek());
  EXPECT_FALSE(reader.release());
  EXPECT_EQ(writer.reserve(48), nullptr);
  EXPECT_TRUE(reader.publish());
  EXPECT_FALSE(reader.publish());
  EXPECT_NE(writer.reserve(48), nullptr);
}

TEST(Ring, ARecordCanBeReservedAnew) {
  SharedZeros<Memory<kCapacity>> memory;
  RingWriter writer(memory->bytes, kCapacity);
  RingReader reader(memory->bytes, kCapacity);
  ASSERT_NE(writer.reserve(500, 1), nullptr);
  ASSERT_NE(writer.reserve(8, 2), nullptr);
  writer.commit();
  EXPECT_EQ(reader.peek().kind, 2u);
  reader.release();
  EXPECT_FALSE(reader.peek());
}

// Payloads contain, at every line, the very headers that the consumer will expect one lap later.
TEST(Ring, OldPayloadsDoNotPassForRecords) {
  SharedZeros<Memory<kCapacity>> memory;
  RingWriter writer(memory->bytes, kCapacity);
  RingReader reader(memory->bytes, kCapacity);
  uint64_t position = 0;
  for (int lap = 0; lap < 50; ++lap) {
    // A lap of large records, all forged.
    for (int i = 0; i < 4; ++i) {
      const size_t bytes = kCapacity / 4 - sizeof(ring_detail::Header);
      auto* payload = static_cast<unsigned char*>(writer.reserve(bytes));
      ASSERT_NE(payload, nullptr);
      for (size_t line = kRingLine; line < kCapacity / 4; line += kRingLine) {
        const uint64_t forged[2] = {ring_detail::tag_of(position + line + kCapacity), 8};
        std::memcpy(payload - sizeof(ring_detail::Header) + line, forged, sizeof forged);
      }
      writer.commit();
      ASSERT_TRUE(reader.peek());
      reader.release();
      position += kCapacity / 4;
      ASSERT_FALSE(reader.peek());
    }
    // A lap of small records over them.
    for (size_t line = 0; line < kCapacity; line += kRingLine) {
      ASSERT_NE(writer.reserve(8, 7), nullptr);
      writer.commit();
      ASSERT_EQ(reader.peek().kind, 7u);
      reader.release();
      ASSERT_FALSE(reader.peek()) << "line " << line << " of lap " << lap;
    }
    position += kCapacity;
  }
}

}  // namespace
}  // namespace mobius::os
