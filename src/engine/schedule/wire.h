// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How a packed message looks: its pieces one after the other, each a few bytes that say what it is
// and where, then its data. Addresses are told as distances from the piece before, numbers in as
// few bytes as they need: a put of 8 bytes near the one before takes 12.
//
//   tag        1 byte: kind, whether it has rows, whether it is as long as the one before
//   distance   signed, from the end of the piece before to the address
//   length     of one row, unless it is the same
//   rows, stride                 with rows
//   type, op                     accumulates
//   op, value                    signals
//   data                         what carries any

#include <cstddef>
#include <cstdint>
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
  const unsigned char* data = nullptr;  // not aligned; null where the kind carries none

  size_t bytes() const { return row_bytes * rows; }
};

// Most that a packed message of a plan takes.
constexpr size_t most_wire_bytes(const Costs& costs) { return costs.message_bytes + 64; }

// Writes one issue of a plan to `out`, which has most_wire_bytes(). Returns how many bytes it is.
size_t write_pack(std::span<const Operation> queue, const Plan& plan, const Issue& issue,
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
