// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How a packed message looks: its pieces one after the other, each a few bytes that say what it is
// and where, then its data. Addresses are told as distances from the piece before, numbers in as
// few bytes as they need: a put of 8 bytes near the one before takes 12, or 11 among many.
//
//   tag        1 byte: kind, whether it has rows, at one distance or scattered, whether it is as
//              long as the one before
//   distance   signed, from the end of the piece before to the address
//   length     of one row, unless it is the same
//   rows, stride                 with rows
//   rows, width, offsets         scattered rows: of each from the address, in 1, 2, 3, 4 or 8 bytes
//   type, op                     accumulates
//   op, value                    signals
//   data                         what carries any

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "schedule/plan.h"

namespace mobius::schedule {

// A piece as it arrives.
struct Arrived {
  Kind kind = Kind::kPut;
  uint8_t type = 0;
  uint8_t op = 0;
  uint64_t remote = 0;
  size_t row_bytes = 0;
  uint32_t rows = 1;
  int64_t stride = 0;
  uint64_t value = 0;
  const unsigned char* data = nullptr;     // not aligned; null where the kind carries none
  const unsigned char* offsets = nullptr;  // not aligned; of scattered rows from `remote`
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
  Arrived only(uint32_t index) const;  // that row, as a piece

 private:
  // Calls `use` with what knows how far a row is from the first: how they are described is looked
  // at once for all of them.
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

// Most that a packed message of a plan takes.
constexpr size_t most_wire_bytes(const Costs& costs) { return costs.message_bytes + 64; }

// A packed message as written: its bytes, and between which addresses its puts and gets lie (the
// lowest is the highest if there are none, or if a stride leads around the end of all addresses).
struct Written {
  size_t bytes = 0;
  uint64_t lowest = UINT64_MAX;
  uint64_t highest = 0;
  bool only_puts = true;
};

// Writes one issue of a plan to `out`, which has most_wire_bytes().
Written write_pack(std::span<const Operation> queue, const Plan& plan, const Issue& issue,
                   unsigned char* out);

// Reads what write_pack() wrote. Of bytes that nobody has written so, it reads none that are not
// there, and says false in the end.
class PackReader {
 public:
  explicit PackReader(std::span<const unsigned char> bytes) : bytes_(bytes) {}

  // The next piece; false after the last, or when it makes no sense.
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
