// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The fastest copy between two places of this host's memory, for every size.

#include <mobius/rma.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mobius::transport {

// Sizes from which on another way is faster than memcpy. SIZE_MAX: never.
struct CopyTuning {
  size_t rep_movsb_from_bytes;  // x86: one string instruction
  size_t stream_from_bytes;     // stores that bypass the caches, several pages at a time
  // Size from which on both ways are timed (copy_peer.h), whatever stream_from_bytes says.
  size_t try_from_bytes = size_t{4} << 10;
  // Whether string instructions are very slow where is_near_in_page() holds; memcpy may use them
  // from 2 KiB on.
  bool slow_near_in_page = false;
};

// Whether the target lies 1 to 31 bytes behind the source, ignoring whole pages. `rep movsb` then
// takes 20 times as long on AMD's Zen 3 (glibc bug 30994); on Zen 4 it takes 30 times as long below
// 16 bytes and 2.3 times from 16 bytes on. Memory from malloc(), which begins 16 bytes into a page,
// has this relation to all memory that begins with a page.
inline bool is_near_in_page(const void* to, const void* from) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t behind = reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from);
  return ((behind - 1) & (kPage - 1)) < 31;
}

// The size from which on this matters.
inline constexpr size_t kNearBytes = 2048;

// The default for processors of this kind, without measuring.
CopyTuning default_copy_tuning();

// The values in use: the default of this processor, until set_copy_tuning() is called.
CopyTuning copy_tuning();

// Must not run while another thread copies: call it before the job's transfers begin.
void set_copy_tuning(const CopyTuning& tuning);

// Measures CopyTuning::slow_near_in_page on this processor, in 20 to 50 us.
bool measure_near_in_page();

// Measures the best values for this machine, in about 50 ms (never 150 ms), with 16 MiB of memory.
// Returns the values in use if that memory is not available.
CopyTuning measure_copy_tuning();

namespace detail {
extern size_t memcpy_below_bytes;  // below this, memcpy is best at any relative position of the two
void copy_large(void* to, const void* from, size_t bytes);
// From kNearBytes on, at any relative position of the two.
void copy_through_caches(void* to, const void* from, size_t bytes);
void rep_movsb(void* to, const void* from, size_t bytes);  // memcpy on processors without it
void stream(void* to, const void* from, size_t bytes);     // 64 bytes or more

// Two overlapping moves of N bytes copy N to 2 N bytes. Both loads precede the first store.
template <size_t N>
[[gnu::always_inline]] inline void copy_ends(char* to, const char* from, size_t bytes) {
  struct Block {
    char data[N];
  };
  Block head;
  Block tail;
  std::memcpy(&head, from, N);
  std::memcpy(&tail, from + bytes - N, N);
  std::memcpy(to, &head, N);
  std::memcpy(to + bytes - N, &tail, N);
}

// One store. It may inform a waiter that earlier puts are visible, after a fence that
// ThreadSanitizer does not know.
template <typename T>
[[gnu::always_inline]] inline void copy_word(char* to, const char* from) {
  T word;
  std::memcpy(&word, from, sizeof word);
  if (MOB_PUT_ORDER_ == __ATOMIC_RELEASE && reinterpret_cast<uintptr_t>(to) % sizeof word == 0) {
    __atomic_store_n(reinterpret_cast<T*>(to), word, MOB_PUT_ORDER_);
  } else {
    std::memcpy(to, &word, sizeof word);
  }
}

template <typename T>
[[gnu::always_inline]] inline void copy_word_or_ends(char* to, const char* from, size_t bytes) {
  if (bytes == sizeof(T)) [[likely]] {
    copy_word<T>(to, from);
  } else {
    copy_ends<sizeof(T)>(to, from, bytes);
  }
}
}  // namespace detail

// Copies `bytes` bytes; the ranges must not overlap. Aligned 1, 2, 4 and 8 bytes are copied by one
// load and one store: no reader sees half of them, and a change made after they arrived is not
// overwritten. Streaming stores are ordered before all later stores.
[[gnu::always_inline]] inline void copy(void* to, const void* from, size_t bytes) {
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  if (bytes >= 16) {
    if (bytes <= 32) {
      detail::copy_ends<16>(target, source, bytes);
    } else if (bytes <= 64) {
      detail::copy_ends<32>(target, source, bytes);
    } else if (bytes < detail::memcpy_below_bytes) [[likely]] {
      std::memcpy(to, from, bytes);
    } else {
      detail::copy_large(to, from, bytes);
    }
  } else if (bytes >= 8) {
    detail::copy_word_or_ends<uint64_t>(target, source, bytes);
  } else if (bytes >= 4) {
    detail::copy_word_or_ends<uint32_t>(target, source, bytes);
  } else if (bytes >= 2) {
    detail::copy_word_or_ends<uint16_t>(target, source, bytes);
  } else if (bytes == 1) {
    detail::copy_word<uint8_t>(target, source);
  }
}

}  // namespace mobius::transport
