// SPDX-License-Identifier: BSD-3-Clause
#include "os/waiter.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace mobius::os {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Not FUTEX_PRIVATE: waiter and waker are different processes.
void futex(const std::atomic<uint32_t>& word, int operation, uint32_t value) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

bool spin(const std::atomic<uint32_t>& word, uint32_t value, uint64_t spin_ns) {
  // A pause takes up to 50 ns, half of what a cache line needs between two cores: poll without it
  // first, and look at the clock seldom.
  constexpr int kEagerPolls = 256;
  constexpr int kPollsPerClock = 32;
  if (spin_ns == 0) return word.load(std::memory_order_acquire) != value;
  for (int i = 0; i < kEagerPolls; ++i) {
    if (word.load(std::memory_order_acquire) != value) return true;
  }
  const uint64_t end = now_ns() + spin_ns;
  do {
    for (int i = 0; i < kPollsPerClock; ++i) {
      if (word.load(std::memory_order_acquire) != value) return true;
      relax();
    }
  } while (now_ns() < end);
  return false;
}

}  // namespace

void wait_while_equal(const std::atomic<uint32_t>& word, uint32_t value,
                      std::atomic<uint32_t>& sleepers, const WaitPolicy& policy) {
  if (spin(word, value, policy.spin_ns)) return;
  for (uint64_t i = 0; i < policy.yields; ++i) {
    sched_yield();
    if (word.load(std::memory_order_acquire) != value) return;
  }
  // seq_cst pairs with wake_all(): either it sees this sleeper, or the load below sees its change.
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (word.load(std::memory_order_seq_cst) == value) futex(word, FUTEX_WAIT, value);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void wake_all(const std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with wait_while_equal()
  if (sleepers.load(std::memory_order_relaxed) != 0) futex(word, FUTEX_WAKE, INT_MAX);
}

}  // namespace mobius::os
