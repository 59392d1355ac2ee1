// SPDX-License-Identifier: BSD-3-Clause

// Accesses to threads of other hosts, and those that are not inlined.

#include <algorithm>
#include <cstring>
#include <vector>

#include "front.h"

namespace mobius::upc {
namespace {

// The bytes of a thread of another host that this one has written since it last waited for them:
// one range that has them all. Möbius may exchange a write and a later read or write of the same
// bytes; UPC may not.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool overlaps(uint64_t other_begin, uint64_t other_end) const {
    return begin < other_end && other_begin < end;
  }
};

std::vector<Range> written;
bool is_any_written = false;

Range& written_of(uint32_t thread) {
  if (written.empty()) written.resize(static_cast<size_t>(threads()));
  return written[thread];
}

// Offsets may wrap around: those of blocks below the area are the largest.
uint64_t end_of(mob_upc_ptr_t p, size_t bytes) {
  return p.offset + bytes < p.offset ? ~uint64_t{0} : p.offset + bytes;
}

constexpr const char* kRead = "read of shared memory";
constexpr const char* kWrite = "write to shared memory";

}  // namespace

void order_read(mob_upc_ptr_t p, size_t bytes, const char* place) {
  Range& range = written_of(p.thread);
  if (!range.overlaps(p.offset, end_of(p, bytes))) return;
  check(mob_flush(static_cast<mob_rank_t>(p.thread)), place);
  range = Range();
}

void order_write(mob_upc_ptr_t p, size_t bytes, const char* place) {
  Range& range = written_of(p.thread);
  const uint64_t end = end_of(p, bytes);
  if (range.overlaps(p.offset, end)) check(mob_fence(), place);
  range = range.end == 0 ? Range{p.offset, end}
                         : Range{std::min(range.begin, p.offset), std::max(range.end, end)};
  is_any_written = true;
}

}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void mob_upc_get_remote_(void* to, mob_upc_ptr_t from, size_t bytes) {
  check_pointer(from, kRead, "the pointer");
  order_read(from, bytes, kRead);
  check(mob_get(static_cast<mob_rank_t>(from.thread), remote(from), to, bytes), kRead);
}

void mob_upc_put_remote_(mob_upc_ptr_t to, const void* from, size_t bytes) {
  check_pointer(to, kWrite, "the pointer");
  order_write(to, bytes, kWrite);
  check(mob_put(static_cast<mob_rank_t>(to.thread), remote(to), from, bytes), kWrite);
}

void mob_upc_flush_(void) {
  check_started("upc_fence");
  check(mob_flush_all(), "upc_fence");
  if (is_any_written) written.assign(written.size(), Range());
  is_any_written = false;
}

void* mob_upc_refuse_private_(mob_upc_ptr_t p) {
  constexpr const char* kCast = "cast to a private pointer";
  check_pointer(p, kCast, "the pointer-to-shared");
  die(kCast,
      "the object has affinity to thread %u, which runs on another host: read it by upc_memget(), "
      "or test upc_threadof(p) == MYTHREAD or upc_cast(p) before",
      p.thread);
}

void mob_upc_copy_bytes(mob_upc_ptr_t to, mob_upc_ptr_t from, size_t bytes) {
  void* const target = mob_upc_here(to);
  const void* const source = mob_upc_here(from);
  if (target != nullptr && source != nullptr) {
    std::memmove(target, source, bytes);
  } else if (source != nullptr) {
    mob_upc_put_remote_(to, source, bytes);
  } else if (target != nullptr) {
    mob_upc_get_remote_(target, from, bytes);
  } else {
    std::vector<char> between(bytes);
    mob_upc_get_remote_(between.data(), from, bytes);
    mob_upc_put_remote_(to, between.data(), bytes);
  }
}

// The bytes that hold a bit field: nine at most.
uint64_t mob_upc_get_bits(mob_upc_ptr_t p, uint64_t bit, unsigned width) {
  unsigned char bytes[16] = {};
  const unsigned shift = static_cast<unsigned>(bit % 8);
  mob_upc_get_bytes(bytes, mob_upc_member(p, bit / 8), (shift + width + 7) / 8);
  mob_upc_uint128_t_ all = 0;
  std::memcpy(&all, bytes, sizeof all);
  const auto value = static_cast<uint64_t>(all >> shift);
  return width < 64 ? value & ((uint64_t{1} << width) - 1) : value;
}

int64_t mob_upc_get_signed_bits(mob_upc_ptr_t p, uint64_t bit, unsigned width) {
  const uint64_t value = mob_upc_get_bits(p, bit, width);
  const uint64_t sign = uint64_t{1} << (width - 1);
  return static_cast<int64_t>((value ^ sign) - sign);
}

void mob_upc_put_bits(mob_upc_ptr_t p, uint64_t bit, unsigned width, uint64_t value) {
  unsigned char bytes[16] = {};
  const unsigned shift = static_cast<unsigned>(bit % 8);
  const size_t count = (shift + width + 7) / 8;
  mob_upc_get_bytes(bytes, mob_upc_member(p, bit / 8), count);
  mob_upc_uint128_t_ all = 0;
  std::memcpy(&all, bytes, sizeof all);
  const mob_upc_uint128_t_ mask = ((mob_upc_uint128_t_{1} << width) - 1) << shift;
  all = (all & ~mask) | ((mob_upc_uint128_t_{value} << shift) & mask);
  std::memcpy(bytes, &all, sizeof all);
  mob_upc_put_bytes(mob_upc_member(p, bit / 8), bytes, count);
}

}  // extern "C"
