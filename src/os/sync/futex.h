// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The kernel's futex between processes, a pause for spinning, and the clock that measures waits.

#include <cstdint>

namespace mobius::os {

// For futex_wait() and futex_wake(): a sleeper is woken only by a bit that it asked for.
inline constexpr uint32_t kAnyFutexBit = UINT32_MAX;

inline constexpr uint64_t kNoTimeout = UINT64_MAX;

// Sleeps while `*word` holds `value`, until woken. May return spuriously: check again. False if
// `timeout_ns` passed.
bool futex_wait(const void* word, uint32_t value, uint64_t timeout_ns,
                uint32_t bits = kAnyFutexBit);

// Wakes up to `count` sleepers of `*word` that wait with one of `bits`.
void futex_wake(const void* word, int count, uint32_t bits = kAnyFutexBit);

uint64_t now_ns();

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Prefetches a cache line for reading, without waiting for it.
inline void prefetch_to_read(const void* line) { __builtin_prefetch(line); }

// Prefetches a cache line for writing, without waiting for it.
inline void prefetch_to_write(const void* line) {
#if defined(__x86_64__)
  // The builtin prefetches for reading unless the compiler may assume newer processors. On
  // processors that lack this instruction it does nothing.
  __asm__ volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace mobius::os
