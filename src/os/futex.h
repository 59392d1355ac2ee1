// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The kernel's futex between processes, a pause for spinning, and the clock waits are measured by.

#include <cstdint>

namespace mobius::os {

// For futex_wait() and futex_wake(): a sleeper is woken only through a bit it asked for.
inline constexpr uint32_t kAnyFutexBit = UINT32_MAX;

inline constexpr uint64_t kNoTimeout = UINT64_MAX;

// Sleeps while `*word` holds `value`, until woken. May also return for no reason: look again.
// False when `timeout_ns` passed.
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

}  // namespace mobius::os
