// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Format of a packed message: a sequence of pieces, each with a short header and its data.
// Addresses are encoded as distances from the piece before, and numbers in as few bytes as they
// need: a put of 8 bytes near the one before takes 12 bytes, or 11 among many.
//
//   tag        1 byte: kind; flags: rows at one distance, scattered rows, length as before
//   distance   signed, from the end of the piece before to the address
//   length     of one row, unless it is as before
//   rows, stride                 with rows
//   rows, width, offsets         scattered rows: 1, 2, 3, 4 or 8 bytes for each offset
//   type, op                     accumulates
//   op, value                    signals
//   data                         all kinds but gets and signals

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "schedule/plan.h"

namespace mobius::schedule {

// A piece as received.
struct Arrived {
  Kind kind = Kind::kPut;
  uint8_t type = 0;
  uint8_t op = 0;
  uint64_t remote = 0;
  size_t row_bytes = 0;
  uint32_t rows = 1;
  int64_t stride = 0;
  uint64_t value = 0;
  const unsigned char* data = nullptr;     // unaligned; null if the kind carries none
  const unsigned char* offsets = nullptr;  // unaligned; of scattered rows, from `remote`
  uint8_t offset_bytes = 0;

  size_t bytes() const { return row_bytes * rows; }
  uint64_t row(uint32_t index) const;  // its address
  // Calls `each` with the address of every row, in order.
  template <typename Each>
  void for_rows(Each each) const {
    with_offsets([&](auto offset_of) {
      for (uint32_t index = 0; index < rows; ++index) each(remote + offset_of(index));
    });
  }
  Arrived only(uint32_t index) const;  // that row as a piece

 private:
  // Calls `use` with a function that returns a row's distance from the first: the representation is
  // tested once for all rows.
  template <typename Use>
  auto with_offsets(Use use) const {
    if (offsets == nullptr) {
      return use([this](uint32_t index) { return static_cast<uint64_t>(stride) * index; });
    }
    switch (offset_bytes) {
      case 1:
        return use([this](uint32_t index) { return uint64_t{offsets[index]}; });
      case 2:
        return use([this](uint32_t index) { return offset<uint16_t>(size_t{index} * 2); });
      case 3:
        return use([this](uint32_t index) {
          const size_t at = size_t{index} * 3;
          return offset<uint16_t>(at) | uint64_t{offsets[at + 2]} << 16;
        });
      case 4:
        return use([this](uint32_t index) { return offset<uint32_t>(size_t{index} * 4); });
      default:
        return use([this](uint32_t index) { return offset<uint64_t>(size_t{index} * 8); });
    }
  }
  template <typename T>
  uint64_t offset(size_t at) const {
    T read;
    std::memcpy(&read, offsets + at, sizeof read);
    return read;
  }
};

// Maximum size of a packed message of a plan.
constexpr size_t most_wire_bytes(const Costs& costs) { return costs.message_bytes + 64; }

// Size of a packed message as written, and the range of its puts and gets. The range is empty if
// there are none, or if a stride wraps around the address space.
struct Written {
  size_t bytes = 0;
  uint64_t lowest = UINT64_MAX;
  uint64_t highest = 0;
  bool only_puts = true;
};

// Writes one issue of a plan to `out`, which has most_wire_bytes().
Written write_pack(std::span<const Operation> queue, const Plan& plan, const Issue& issue,
                   unsigned char* out);

// Decodes a packed message from an untrusted process. Never reads outside of its bytes; is_whole()
// is false if they are malformed.
class PackReader {
 public:
  explicit PackReader(std::span<const unsigned char> bytes) : bytes_(bytes) {}

  // Reads the next piece. False after the last one, or if it is malformed.
  bool next(Arrived* piece);
  bool is_whole() const { return is_sound_ && at_ == bytes_.size(); }

 private:
  bool read_number(uint64_t* number);
  bool read_signed(int64_t* number);
  bool read_byte(uint8_t* byte);

  const std::span<const unsigned char> bytes_;
  size_t at_ = 0;
  uint64_t end_ = 0;
  size_t row_bytes_ = 0;
  bool is_sound_ = true;
};

}  // namespace mobius::schedule
