// SPDX-License-Identifier: BSD-3-Clause

// Accesses to threads of other hosts, and those that are not inlined.

#include <cstring>
#include <vector>

#include "front.h"

namespace mobius::upc {
namespace {

// Threads of other hosts to which this one has written since it last waited for them. Möbius may
// exchange a write and a later read or write of the same bytes; UPC may not.

bool& is_written(uint32_t thread) {
  static bool* const all = new bool[MOB_UPC_MOST_THREADS]();
  return all[thread];
}

constexpr const char* kRead = "read of shared memory";
constexpr const char* kWrite = "write to shared memory";

}  // namespace

void order_read(uint32_t thread, const char* place) {
  if (!is_written(thread)) return;
  check(mob_flush(static_cast<mob_rank_t>(thread)), place);
  is_written(thread) = false;
}

void order_write(uint32_t thread, const char* place) {
  if (is_written(thread)) check(mob_fence(), place);
  is_written(thread) = true;
}
}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void mob_upc_get_remote_(void* to, mob_upc_ptr_t from, size_t bytes) {
  check_pointer(from, kRead, "the pointer");
  order_read(from.thread, kRead);
  check(mob_get(static_cast<mob_rank_t>(from.thread), remote(from), to, bytes), kRead);
}

void mob_upc_put_remote_(mob_upc_ptr_t to, const void* from, size_t bytes) {
  check_pointer(to, kWrite, "the pointer");
  order_write(to.thread, kWrite);
  check(mob_put(static_cast<mob_rank_t>(to.thread), remote(to), from, bytes), kWrite);
}

void mob_upc_flush_(void) {
  check_started("upc_fence");
  check(mob_flush_all(), "upc_fence");
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
