// SPDX-License-Identifier: BSD-3-Clause
#include "engine/request/span_wire.h"

#include <bit>
#include <cstring>

namespace mobius::engine {
namespace {

constexpr size_t kPad = 16;  // aligns elements behind a list as the list is

uint64_t address_of(const mob_span_t& span) { return reinterpret_cast<uint64_t>(span.address); }

// Calls visit(T{}) with the integer type of `width` bytes; false if there is none.
template <typename Visit>
bool with_width(unsigned width, Visit visit) {
  switch (width) {
    case 1:
      visit(uint8_t{});
      return true;
    case 2:
      visit(uint16_t{});
      return true;
    case 4:
      visit(uint32_t{});
      return true;
    case 8:
      visit(uint64_t{});
      return true;
    default:
      return false;
  }
}

}  // namespace

// `any` is the bitwise or of all numbers: it bounds the largest within a factor of two.
SpanWire::Numbers SpanWire::Numbers::holding(uint64_t any) {
  Numbers numbers;
  numbers.shift = any == 0 ? 0 : static_cast<uint8_t>(std::countr_zero(any));
  const uint64_t largest = any >> numbers.shift;
  numbers.width = largest <= UINT8_MAX    ? 1
                  : largest <= UINT16_MAX ? 2
                  : largest <= UINT32_MAX ? 4
                                          : 8;
  return numbers;
}

size_t SpanWire::Head::bytes() const {
  return (sizeof(Head) + distances_bytes() + lengths_bytes() + kPad - 1) / kPad * kPad;
}

SpanWire::SpanWire(const mob_span_t* spans, size_t count) : spans_(spans) {
  head_.address = address_of(spans[0]);
  head_.length = spans[0].bytes;
  head_.count = static_cast<uint32_t>(count);
  uint64_t any_distance = 0;
  uint64_t any_length = 0;
  uint64_t differ = 0;
  for (size_t i = 1; i < count; ++i) {
    any_distance |= address_of(spans[i]) - address_of(spans[i - 1]);
    any_length |= spans[i].bytes;
    differ |= spans[i].bytes ^ head_.length;
  }
  head_.distances = Numbers::holding(any_distance);
  if (differ != 0) head_.lengths = Numbers::holding(any_length);
  bytes_ = head_.bytes();
}

void SpanWire::write(unsigned char* to) const {
  std::memset(to + bytes_ - kPad, 0, kPad);
  std::memcpy(to, &head_, sizeof head_);
  unsigned char* at = to + sizeof head_;
  const auto write_numbers = [&](Numbers numbers, auto number_of) {
    with_width(numbers.width, [&]<typename T>(T) {
      for (size_t i = 1; i < head_.count; ++i, at += sizeof(T)) {
        const T number = static_cast<T>(number_of(i) >> numbers.shift);
        std::memcpy(at, &number, sizeof number);
      }
    });
  };
  write_numbers(head_.distances,
                [this](size_t i) { return address_of(spans_[i]) - address_of(spans_[i - 1]); });
  write_numbers(head_.lengths, [this](size_t i) { return spans_[i].bytes; });
}

bool SpanWire::read(const unsigned char* from, size_t bytes, size_t most,
                    std::vector<mob_span_t>* spans) {
  Head head;
  if (bytes < sizeof head) return false;
  std::memcpy(&head, from, sizeof head);
  const bool is_sane = head.count != 0 && head.count <= most && head.distances.width != 0 &&
                       head.distances.width <= 8 && head.lengths.width <= 8 &&
                       head.distances.shift < 64 && head.lengths.shift < 64;
  if (!is_sane || bytes != head.bytes()) return false;
  spans->resize(head.count);
  mob_span_t* span = spans->data();
  span[0] = {reinterpret_cast<void*>(head.address), head.length};
  const unsigned char* distances = from + sizeof head;
  const bool has_distances = with_width(head.distances.width, [&]<typename T>(T distance) {
    uint64_t address = head.address;
    for (size_t i = 1; i < head.count; ++i) {
      std::memcpy(&distance, distances + (i - 1) * sizeof(T), sizeof(T));
      address += uint64_t{distance} << head.distances.shift;
      span[i] = {reinterpret_cast<void*>(address), head.length};
    }
  });
  if (!has_distances) return false;
  if (head.lengths.width == 0) return true;
  const unsigned char* lengths = distances + head.distances_bytes();
  return with_width(head.lengths.width, [&]<typename T>(T length) {
    for (size_t i = 1; i < head.count; ++i) {
      std::memcpy(&length, lengths + (i - 1) * sizeof(T), sizeof(T));
      span[i].bytes = uint64_t{length} << head.lengths.shift;
    }
  });
}

}  // namespace mobius::engine
