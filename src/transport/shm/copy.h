// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The fastest copy between two places of this host's memory, for every size.

#include <mobius/rma.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mobius::transport {

// From which sizes on memcpy is not the best there is. A size of SIZE_MAX: never.
struct CopyTuning {
  size_t rep_movsb_from_bytes;  // x86: one string instruction
  size_t stream_from_bytes;     // stores past the caches, several pages at a time
  // From which size on both ways are tried, whatever the one above says (copy_peer.h).
  size_t try_from_bytes = size_t{4} << 10;
  // Whether string instructions crawl where is_near_in_page(): from 2 KiB on memcpy may use them.
  bool slow_near_in_page = false;
};

// Whether the target lies 1 to 31 bytes behind the source, whole pages left out. There `rep movsb`
// takes 20 times as long on AMD's Zen 3 (glibc's bug 30994), on Zen 4 30 times below 16 bytes and
// 2.3 times from there on. Memory from malloc(), which begins 16 bytes into a page, is that near to
// all that begins with one.
inline bool is_near_in_page(const void* to, const void* from) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t behind = reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from);
  return ((behind - 1) & (kPage - 1)) < 31;
}

// From here on it matters.
inline constexpr size_t kNearBytes = 2048;

// What suits processors of this kind, without measuring.
CopyTuning default_copy_tuning();

// What is in use: that of one kind of processor, until set_copy_tuning().
CopyTuning copy_tuning();

// Not while another thread copies: call it before the job's transfers begin.
void set_copy_tuning(const CopyTuning& tuning);

// Whether that is so here, in 20 to 50 us.
bool measure_near_in_page();

// Measures what suits this machine, in about 50 ms and never 150, with 16 MiB of memory. Gives what
// is in use if that memory cannot be had.
CopyTuning measure_copy_tuning();

namespace detail {
extern size_t memcpy_below_bytes;  // memcpy is best wherever the two lie
void copy_large(void* to, const void* from, size_t bytes);
// From kNearBytes on, wherever the two lie.
void copy_through_caches(void* to, const void* from, size_t bytes);
void rep_movsb(void* to, const void* from, size_t bytes);  // memcpy where there is no such thing
void stream(void* to, const void* from, size_t bytes);     // 64 bytes or more

// Two moves of N bytes that overlap copy N to 2 N bytes. Both are loaded before one is stored.
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

// One store. It may tell who waits for it that earlier puts are there, after a fence that
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

// Copies `bytes` bytes; the ranges must not overlap. Aligned 1, 2, 4 and 8 bytes are copied whole,
// and once: nobody sees half of them, and who changes them when they have come is not undone. What
// streaming stores wrote is ordered before all later stores.
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
