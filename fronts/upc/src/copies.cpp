// SPDX-License-Identifier: BSD-3-Clause

// upc_memcpy() and its relatives.

#include <upc.h>

#include <algorithm>
#include <cstring>

#include "front.h"

namespace mobius::upc {
namespace {

// From here on Möbius' own copy is not slower than memcpy().
constexpr size_t kShortBytes = 2048;

// Copies up to 32 bytes without a call: two pieces, which may overlap.
template <typename Piece>
inline void copy_ends(char* to, const char* from, size_t bytes) {
  Piece first;
  Piece last;
  std::memcpy(&first, from, sizeof first);
  std::memcpy(&last, from + bytes - sizeof last, sizeof last);
  std::memcpy(to, &first, sizeof first);
  std::memcpy(to + bytes - sizeof last, &last, sizeof last);
}

inline void copy(void* to, const void* from, size_t bytes) {
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  if (bytes > 32 || bytes < 4) {
    std::memcpy(to, from, bytes);
  } else if (bytes > 16) {
    copy_ends<mob_upc_uint128_t_>(target, source, bytes);
  } else if (bytes >= 8) {
    copy_ends<uint64_t>(target, source, bytes);
  } else {
    copy_ends<uint32_t>(target, source, bytes);
  }
}

}  // namespace
}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void upc_memget(void* dst, mob_upc_ptr_t src, size_t n) {
  if (n == 0) return;
  check_pointer(src, "upc_memget", "src");
  char* const base = mob_upc_bases_[src.thread];
  if (base == nullptr) {
    mob_upc_get_remote_(dst, src, n);
  } else if (n <= kShortBytes) {
    copy(dst, mob_upc_at_(base, src.offset), n);
  } else {
    check(mob_get(static_cast<mob_rank_t>(src.thread), remote(src), dst, n), "upc_memget");
  }
}

void upc_memput(mob_upc_ptr_t dst, const void* src, size_t n) {
  if (n == 0) return;
  check_pointer(dst, "upc_memput", "dst");
  char* const base = mob_upc_bases_[dst.thread];
  if (base == nullptr) {
    mob_upc_put_remote_(dst, src, n);
  } else if (n <= kShortBytes) {
    copy(mob_upc_at_(base, dst.offset), src, n);
  } else {
    check(mob_put(static_cast<mob_rank_t>(dst.thread), remote(dst), src, n), "upc_memput");
  }
}

void upc_memcpy(mob_upc_ptr_t dst, mob_upc_ptr_t src, size_t n) {
  if (n == 0) return;
  check_pointer(dst, "upc_memcpy", "dst");
  check_pointer(src, "upc_memcpy", "src");
  const void* const source = mob_upc_here(src);
  if (source != nullptr) {
    upc_memput(dst, source, n);
  } else if (void* const target = mob_upc_here(dst)) {
    upc_memget(target, src, n);
  } else {
    mob_upc_copy_bytes(dst, src, n);
  }
}

void upc_memset(mob_upc_ptr_t dst, int c, size_t n) {
  if (n == 0) return;
  check_pointer(dst, "upc_memset", "dst");
  if (void* const target = mob_upc_here(dst)) {
    std::memset(target, c, n);
    return;
  }
  char values[4096];
  std::memset(values, c, std::min(n, sizeof values));
  for (size_t done = 0; done < n; done += sizeof values) {
    mob_upc_put_remote_(mob_upc_member(dst, done), values, std::min(n - done, sizeof values));
  }
}

}  // extern "C"
