// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Copies to memory that another process is to read, or of memory that another process has written:
// as copy(), but from some size on through the caches or past them, as is faster (copy_trial.h).
// Not for rows with gaps: past the caches 128 of 512 bytes took the writer a third of the time on
// Zen 4, and both of them 1.2 times as long.

#include "transport/shm/copy.h"

namespace mobius::transport {

namespace detail {
// To look at what is to be done costs shorter ones too much.
inline constexpr size_t kLeastTriedBytes = size_t{16} << 10;
inline constexpr size_t kLeastTriedPart = size_t{4} << 10;
// Who gets something reads it next, mostly. Past the caches goes only what does not fit into them.
inline constexpr size_t kLeastTriedGet = size_t{256} << 10;

void copy_large_to_peer(void* to, const void* from, size_t bytes);
void copy_large_part_to_peer(void* to, const void* from, size_t bytes);
void copy_large_from_peer(void* to, const void* from, size_t bytes);
}  // namespace detail

// As copy(). Any thread.
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

// copy_to_peer() of a part of something longer, a message for instance, that its reader takes while
// the next is written.
inline void copy_part_to_peer(void* to, const void* from, size_t bytes) {
  if (bytes >= detail::kLeastTriedPart) {
    detail::copy_large_part_to_peer(to, from, bytes);
  } else {
    copy(to, from, bytes);
  }
}

}  // namespace mobius::transport
