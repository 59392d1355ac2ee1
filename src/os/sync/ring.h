// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A queue of records of any length in shared memory, from one producer to one consumer, each in its
// own process. A message of up to 48 bytes travels in one cache line: the line that the consumer
// polls is the line that holds it.
//
// Every record starts on a line of its own. Its header has a tag: the record's position, counted in
// bytes from the ring's first use and never repeated. A header is valid when its tag is right, so
// the consumer reads no index of the producer. Contents of earlier laps cannot look like the
// expected header: an earlier header has another tag, and if an earlier payload happens to hold the
// very tag, the producer clears it before the consumer can look there.
//
// The consumer never writes to records. It publishes its position seldom, so that the producer
// rarely misses on that line.
//
// Streams of records gain from distance: a consumer that follows closely takes lines away that the
// producer is about to write. A ring of 512 KiB streams about 1.7 times as fast as one of 64 KiB;
// short messages are as fast in either.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mobius::os {

inline constexpr size_t kRingLine = 64;
inline constexpr size_t kRingPayloadAlignment = 16;
inline constexpr size_t kMinRingBytes = 1024;
inline constexpr size_t kRingLinePayload = kRingLine - kRingPayloadAlignment;  // fits in one line

// The ring lies in ring_footprint(capacity) bytes of memory aligned to a line; valid, and empty, as
// zeros. `capacity` is a power of two, at least kMinRingBytes.
constexpr size_t ring_footprint(size_t capacity) { return kRingLine + capacity; }

// The largest payload.
constexpr size_t ring_max_payload(size_t capacity) { return capacity / 4; }

namespace ring_detail {

struct Header {
  std::atomic<uint64_t> tag;
  uint32_t bytes;
  uint32_t kind;
};
static_assert(sizeof(Header) == kRingPayloadAlignment);

// A kind that no record has. It marks the rest of the lap as empty, because the next record did not
// fit.
inline constexpr uint32_t kSkip = UINT32_MAX;

// Never 0, the contents of fresh memory.
constexpr uint64_t tag_of(uint64_t position) { return position | 1; }

constexpr size_t record_bytes(size_t payload) {
  return (sizeof(Header) + payload + kRingLine - 1) & ~(kRingLine - 1);
}

}  // namespace ring_detail

inline constexpr uint32_t kMaxRecordKind = ring_detail::kSkip - 1;

// The part that both views of a ring share. One without memory is only replaced.
class RingView {
 protected:
  RingView(void* memory, size_t capacity)
      : released_(static_cast<std::atomic<uint64_t>*>(memory)),
        records_(memory == nullptr ? nullptr : static_cast<unsigned char*>(memory) + kRingLine),
        mask_(capacity - 1) {}

  size_t capacity() const { return mask_ + 1; }
  // Acquire pairs with the release in RingReader::publish().
  uint64_t released() const {
    return released_ == nullptr ? 0 : released_->load(std::memory_order_acquire);
  }
  ring_detail::Header* header(uint64_t position) const {
    return reinterpret_cast<ring_detail::Header*>(records_ + (position & mask_));
  }

  std::atomic<uint64_t>* released_;  // shared: the producer may write up to here again
  unsigned char* records_;
  size_t mask_;  // gives a position's offset in the lap
};

// The producer's side, in the producer's own memory. Only one may be used for a ring, because its
// state is stored nowhere else. It is made while the ring holds zeros; or after the last record of
// an earlier producer, which is gone, was released and the consumer has called publish(). The
// ring's memory must outlive it. Calls must not overlap; any thread.
class RingWriter : RingView {
 public:
  RingWriter(void* memory, size_t capacity)
      : RingView(memory, capacity), position_(released()), limit_(position_ + capacity) {}

  // Returns the place for the payload of the next record, aligned to kRingPayloadAlignment, or null
  // while the ring is full (and always if `bytes` exceeds ring_max_payload()). Valid until
  // commit(). A second call without commit() replaces the reservation.
  void* reserve(size_t bytes, uint32_t kind = 0) {
    using namespace ring_detail;
    const size_t needed = record_bytes(bytes);
    const size_t offset = position_ & mask_;
    // One line more than needed: see clear().
    if (bytes > ring_max_payload(capacity()) || offset + needed > capacity() ||
        position_ + needed + kRingLine > limit_) [[unlikely]] {
      if (!make_room(bytes)) return nullptr;
    }
    Header* record = header(position_);
    end_ = position_ + needed;
    clear(end_);
    record->bytes = static_cast<uint32_t>(bytes);
    record->kind = kind;
    return record + 1;
  }

  // As reserve(), for up to kRingLinePayload bytes, until commit_line(). May return null although
  // reserve() would find room.
  [[gnu::always_inline]] void* reserve_line(size_t bytes, uint32_t kind) {
    // A lap is a whole number of lines.
    if (position_ + 2 * kRingLine > limit_) [[unlikely]] {
      return nullptr;
    }
    ring_detail::Header* record = header(position_);
    clear(position_ + kRingLine);
    record->bytes = static_cast<uint32_t>(bytes);
    record->kind = kind;
    return record + 1;
  }

  // Makes the record that was reserved last visible to the consumer.
  void commit() {
    using namespace ring_detail;
    // Release pairs with the acquire in RingReader::peek().
    header(position_)->tag.store(tag_of(position_), std::memory_order_release);
    position_ = end_;
  }
  // As commit(), for the result of reserve_line().
  [[gnu::always_inline]] void commit_line(void* payload) {
    using namespace ring_detail;
    const uint64_t position = position_;
    (static_cast<Header*>(payload) - 1)->tag.store(tag_of(position), std::memory_order_release);
    position_ = position + kRingLine;
  }

  // Call it after reserve_line() returned null; another call may then find room.
  void look_for_room() { static_cast<void>(has_room(kRingLine)); }

 private:
  bool make_room(size_t bytes);
  bool has_room(size_t bytes);

  // The bytes behind a record must not look like a header when the record becomes visible. They
  // almost never do; then this only reads a line that is still in the producer's cache.
  [[gnu::always_inline]] void clear(uint64_t position) {
    std::atomic<uint64_t>& tag = header(position)->tag;
    if (tag.load(std::memory_order_relaxed) == ring_detail::tag_of(position)) [[unlikely]] {
      tag.store(0, std::memory_order_relaxed);
    }
  }

  uint64_t position_;  // position of the next record
  uint64_t end_ = 0;   // end of the reserved record
  uint64_t limit_;     // consumer's position when last read, plus one lap
};

struct RingRecord {
  const unsigned char* data = nullptr;
  uint32_t bytes = 0;
  uint32_t kind = 0;

  explicit operator bool() const { return data != nullptr; }
  std::span<const unsigned char> payload() const { return {data, bytes}; }
};

// Whether the record at a consumer's position() is there. Any thread. Once that record was released
// the answer may be wrong, because the bytes may belong to a payload that is being written. This
// race is intended, so ThreadSanitizer is told to ignore it.
[[gnu::no_sanitize("thread")]] inline bool ring_holds(const void* memory, size_t capacity,
                                                      uint64_t position) {
  const auto* records = static_cast<const unsigned char*>(memory) + kRingLine;
  const auto* tag = reinterpret_cast<const uint64_t*>(records + (position & (capacity - 1)));
  return __atomic_load_n(tag, __ATOMIC_RELAXED) == ring_detail::tag_of(position);
}

// The consumer's side; as RingWriter.
class RingReader : RingView {
 public:
  RingReader(void* memory, size_t capacity) : RingView(memory, capacity), position_(released()) {}

  // The oldest record that was not released, or one without data if there is none. It stays in
  // place and unchanged until release().
  RingRecord peek() {
    using namespace ring_detail;
    const uint64_t position = position_;
    const Header* record = header(position);
    // Acquire pairs with the release in RingWriter::commit().
    if (record->tag.load(std::memory_order_acquire) != tag_of(position)) return {};
    if (record->kind == kSkip) [[unlikely]] {
      position_ = (position | mask_) + 1;
      return peek();
    }
    next_ = position + record_bytes(record->bytes);
    return {reinterpret_cast<const unsigned char*>(record + 1), record->bytes, record->kind};
  }

  // The position of the next record, for ring_holds().
  uint64_t position() const { return position_; }

  // Releases the record that was peeked last. True if it informed the producer, which happens once
  // per quarter of the ring: then wake a producer that sleeps until there is room.
  bool release() {
    position_ = next_;
    return position_ >= publish_from_ && publish();
  }

  // Informs the producer of everything released so far. False if it already knows.
  //
  // Progress never depends on it: publication is less than a quarter of the ring late, and no
  // record needs more than three quarters, including the end of a lap that it skips.
  bool publish() {
    const uint64_t publish_from = position_ + capacity() / 4;
    if (publish_from_ == publish_from) return false;
    publish_from_ = publish_from;
    // Release pairs with the acquire in RingWriter::has_room(): the consumer has finished reading
    // there.
    released_->store(position_, std::memory_order_release);
    return true;
  }

 private:
  uint64_t position_;          // position of the next record
  uint64_t next_ = position_;  // position of the record after the peeked one
  // A quarter of the ring after the published position.
  uint64_t publish_from_ = position_ + capacity() / 4;
};

}  // namespace mobius::os
