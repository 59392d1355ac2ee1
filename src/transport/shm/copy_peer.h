// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Copies to memory that another process will read, or of memory that another process has written.
// As copy(), but from some size on through the caches or past them, whichever is faster
// (copy_tuner.h). Not for rows with gaps: for 128 rows of 512 bytes on Zen 4, bypassing the caches
// took the writer a third of the time, but writer and reader together 1.2 times as long.

#include "transport/shm/copy.h"

namespace mobius::transport {

namespace detail {
// For shorter copies the decision itself costs too much.
inline constexpr size_t kLeastTriedBytes = size_t{16} << 10;
inline constexpr size_t kLeastTriedPart = size_t{4} << 10;
// The reader of a get usually uses the data next, so only gets that do not fit into the caches
// bypass them.
inline constexpr size_t kLeastTriedGet = size_t{256} << 10;

void copy_large_to_peer(void* to, const void* from, size_t bytes);
void copy_large_part_to_peer(void* to, const void* from, size_t bytes);
void copy_large_from_peer(void* to, const void* from, size_t bytes);
}  // namespace detail

// As copy(). Any thread may call it.
[[gnu::always_inline]] inline void copy_to_peer(void* to, const void* from, size_t bytes) {
  if (bytes >= detail::kLeastTriedBytes) [[unlikely]] {
    detail::copy_large_to_peer(to, from, bytes);
  } else {
    copy(to, from, bytes);
  }
}

[[gnu::always_inline]] inline void copy_from_peer(void* to, const void* from, size_t bytes) {
  if (bytes >= detail::kLeastTriedGet) [[unlikely]] {
    detail::copy_large_from_peer(to, from, bytes);
  } else {
    copy(to, from, bytes);
  }
}

// As copy_to_peer(), for a part of something longer, such as a message, whose reader reads one part
// while the writer writes the next.
inline void copy_part_to_peer(void* to, const void* from, size_t bytes) {
  if (bytes >= detail::kLeastTriedPart) {
    detail::copy_large_part_to_peer(to, from, bytes);
  } else {
    copy(to, from, bytes);
  }
}

}  // namespace mobius::transport
