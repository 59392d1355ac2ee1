// SPDX-License-Identifier: BSD-3-Clause
#include "schedule/wire.h"

#include <algorithm>
#include <cstring>

namespace mobius::schedule {
namespace {

constexpr uint8_t kKindMask = 0x07;
constexpr uint8_t kHasRows = 0x08;
constexpr uint8_t kSameLength = 0x10;
constexpr uint8_t kIsScattered = 0x20;

unsigned char* put_number(unsigned char* to, uint64_t number) {
  while (number >= 0x80) {
    *to++ = static_cast<unsigned char>(number | 0x80);
    number >>= 7;
  }
  *to++ = static_cast<unsigned char>(number);
  return to;
}

unsigned char* put_signed(unsigned char* to, int64_t number) {
  const auto bits = static_cast<uint64_t>(number);
  return put_number(to, bits << 1 ^ (number < 0 ? ~uint64_t{0} : 0));
}

unsigned char* put_bytes(unsigned char* to, const void* from, size_t bytes) {
  if (bytes == sizeof(uint64_t)) {  // the most frequent size
    std::memcpy(to, from, sizeof(uint64_t));
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
  return to + bytes;
}

// Writes the offsets of equal rows, and their data if they carry any.
template <typename Put>
unsigned char* put_rows(std::span<const Operation> queue, const Plan& plan, const Piece& piece,
                        unsigned char* out, Put put_offset) {
  unsigned char* offset = out;
  unsigned char* data = out + size_t{piece.rows} * piece.offset_bytes;
  const bool carries = carries_data(queue[plan.order[piece.first]].kind);
  for (uint32_t place = piece.first; place < piece.first + piece.count; ++place) {
    const Operation& each = queue[plan.order[place]];
    put_offset(offset, each.remote - piece.lowest);
    offset += piece.offset_bytes;
    if (carries) data = put_bytes(data, each.local, piece.row_bytes);
  }
  return data;
}

template <typename T>
void put_as(unsigned char* to, uint64_t offset) {
  const T value = static_cast<T>(offset);
  std::memcpy(to, &value, sizeof value);
}

unsigned char* put_rows(std::span<const Operation> queue, const Plan& plan, const Piece& piece,
                        unsigned char* out) {
  switch (piece.offset_bytes) {
    case 1:
      return put_rows(queue, plan, piece, out, put_as<uint8_t>);
    case 2:
      return put_rows(queue, plan, piece, out, put_as<uint16_t>);
    case 3:
      return put_rows(queue, plan, piece, out, [](unsigned char* to, uint64_t offset) {
        put_as<uint16_t>(to, offset);
        put_as<uint8_t>(to + 2, offset >> 16);
      });
    case 4:
      return put_rows(queue, plan, piece, out, put_as<uint32_t>);
    default:
      return put_rows(queue, plan, piece, out, put_as<uint64_t>);
  }
}

// The address behind the last row.
uint64_t end_of(uint64_t remote, size_t row_bytes, uint32_t rows, int64_t stride) {
  return remote + static_cast<uint64_t>(stride) * (rows - 1) + row_bytes;
}

}  // namespace

Written write_pack(std::span<const Operation> queue, const Plan& plan, const Issue& issue,
                   unsigned char* out) {
  Written written;
  unsigned char* to = out;
  uint64_t end = 0;
  size_t length = 0;
  for (uint32_t i = 0; i < issue.count; ++i) {
    const Piece& piece = plan.pieces[issue.first + i];
    const Operation& first = queue[plan.order[piece.first]];
    const bool has_rows = piece.rows > 1;
    const bool same = piece.row_bytes == length;
    written.only_puts = written.only_puts && first.kind == Kind::kPut;
    if (piece.is_scattered()) {
      *to++ = static_cast<uint8_t>(static_cast<uint8_t>(first.kind) | kIsScattered |
                                   (same ? kSameLength : 0));
      to = put_signed(to, static_cast<int64_t>(piece.lowest - end));
      if (!same) to = put_number(to, piece.row_bytes);
      to = put_number(to, piece.rows);
      *to++ = piece.offset_bytes;
      to = put_rows(queue, plan, piece, to);
      length = piece.row_bytes;
      end = piece.lowest + piece.row_bytes;
      written.lowest = std::min(written.lowest, piece.lowest);
      written.highest = std::max(written.highest, piece.highest);
      continue;
    }
    *to++ = static_cast<uint8_t>(static_cast<uint8_t>(first.kind) | (has_rows ? kHasRows : 0) |
                                 (same ? kSameLength : 0));
    to = put_signed(to, static_cast<int64_t>(first.remote - end));
    if (!same) to = put_number(to, piece.row_bytes);
    if (has_rows) to = put_signed(put_number(to, piece.rows), piece.stride);
    if (first.kind == Kind::kAccumulate || first.kind == Kind::kFetch) {
      *to++ = first.type;
      *to++ = first.op;
    } else if (first.kind == Kind::kSignal) {
      *to++ = first.op;
      const uint64_t value = first.value();
      to = put_bytes(to, &value, sizeof value);
    }
    length = piece.row_bytes;
    end = end_of(first.remote, piece.row_bytes, piece.rows, piece.stride);
    if (first.kind == Kind::kPut || first.kind == Kind::kGet) {
      const uint64_t last = end - piece.row_bytes;
      written.lowest = std::min({written.lowest, first.remote, last});
      written.highest = std::max(written.highest, std::max(first.remote, last) + piece.row_bytes);
    }
    if (!carries_data(first.kind)) continue;
    for (uint32_t place = piece.first; place < piece.first + piece.count; ++place) {
      const Operation& each = queue[plan.order[place]];
      to = put_bytes(to, each.local, each.bytes);
    }
  }
  written.lowest = std::min(written.lowest, written.highest);
  written.bytes = static_cast<size_t>(to - out);
  return written;
}

uint64_t Arrived::row(uint32_t index) const {
  return with_offsets([&](auto offset_of) { return remote + offset_of(index); });
}

Arrived Arrived::only(uint32_t index) const {
  Arrived one = *this;
  one.remote = row(index);
  one.rows = 1;
  one.stride = 0;
  one.offsets = nullptr;
  if (data != nullptr) one.data = data + index * row_bytes;
  return one;
}

bool PackReader::read_byte(uint8_t* byte) {
  if (at_ == bytes_.size()) return false;
  *byte = bytes_[at_++];
  return true;
}

bool PackReader::read_number(uint64_t* number) {
  *number = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte = 0;
    if (!read_byte(&byte)) return false;
    *number |= uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

bool PackReader::read_signed(int64_t* number) {
  uint64_t bits = 0;
  if (!read_number(&bits)) return false;
  *number = static_cast<int64_t>(bits >> 1 ^ ((bits & 1) != 0 ? ~uint64_t{0} : 0));
  return true;
}

bool PackReader::next(Arrived* piece) {
  if (!is_sound_ || at_ == bytes_.size()) return false;
  is_sound_ = false;
  uint8_t tag = 0;
  int64_t distance = 0;
  if (!read_byte(&tag) || (tag & kKindMask) >= kKinds || !read_signed(&distance)) return false;
  *piece = {};
  piece->kind = static_cast<Kind>(tag & kKindMask);
  piece->remote = end_ + static_cast<uint64_t>(distance);
  uint64_t length = row_bytes_;
  if ((tag & kSameLength) == 0 && !read_number(&length)) return false;
  uint64_t rows = 1;
  if ((tag & kHasRows) != 0 && !(read_number(&rows) && read_signed(&piece->stride))) return false;
  const bool is_scattered = (tag & kIsScattered) != 0;
  if (is_scattered) {
    const bool moves = piece->kind == Kind::kPut || piece->kind == Kind::kGet;
    if (!moves || (tag & kHasRows) != 0 || !read_number(&rows) ||
        !read_byte(&piece->offset_bytes)) {
      return false;
    }
    const bool has_width = piece->offset_bytes - 1u < 4 || piece->offset_bytes == sizeof(uint64_t);
    if (!has_width || rows > (bytes_.size() - at_) / piece->offset_bytes) {
      return false;
    }
  }
  // Limit of the lengths in a message or its answer.
  constexpr uint64_t kMost = uint64_t{1} << 31;
  if (length >= kMost || rows == 0 || rows >= kMost || length * rows >= kMost) return false;
  // Each row is an operation. Rows with data are limited by the message's bytes or by its answer's;
  // without data, a few bytes could keep the target busy for minutes.
  if (rows > 1 && (length == 0 || piece->kind == Kind::kSignal)) return false;
  piece->row_bytes = length;
  piece->rows = static_cast<uint32_t>(rows);
  if (is_scattered) {
    piece->offsets = bytes_.data() + at_;
    at_ += rows * piece->offset_bytes;
  }
  if (piece->kind == Kind::kAccumulate || piece->kind == Kind::kFetch) {
    if (!read_byte(&piece->type) || !read_byte(&piece->op)) return false;
  } else if (piece->kind == Kind::kSignal) {
    if (!read_byte(&piece->op) || bytes_.size() - at_ < sizeof piece->value) return false;
    std::memcpy(&piece->value, bytes_.data() + at_, sizeof piece->value);
    at_ += sizeof piece->value;
  }
  if (carries_data(piece->kind)) {
    if (bytes_.size() - at_ < piece->bytes()) return false;
    piece->data = bytes_.data() + at_;
    at_ += piece->bytes();
  }
  row_bytes_ = piece->row_bytes;
  end_ = end_of(piece->remote, piece->row_bytes, piece->rows, piece->stride);
  return is_sound_ = true;
}

}  // namespace mobius::schedule
