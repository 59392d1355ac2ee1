// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A lock between threads of one process for what is mostly over in nanoseconds and mostly used by
// one thread: that one acquires and releases it by plain loads and stores, once it has come often
// enough. Another thread that comes along takes this bias back, by a heavy fence of some
// microseconds; which has to pay, so the more often it happens the longer there is no bias. Without
// one an atomic instruction acquires it and a plain store releases it. Who finds it held spins,
// yields, then sleeps for moments; so nobody waits for long in it, and nothing that must be quick
// is behind it when somebody might. (Kawachiya, Koseki and Onodera, "Lock reservation", OOPSLA
// 2002.)

#include <mobius/detail/bias_inline.h>

#include <atomic>
#include <cstdint>

namespace mobius::os {

// Not reentrant. Meets BasicLockable, for std::lock_guard. What the thread with the bias uses lies
// where whoever owns the lock wants it, so that programs can have it inlined; zeroed at first, and
// outlives the lock.
class BiasedLock {
 public:
  explicit constexpr BiasedLock(mob_bias_t_& bias) noexcept : bias_(bias) {}
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  void lock() {
    if (!enter()) [[unlikely]] {
      acquire();
    }
  }
  void unlock() {
    // Another thread may find it set for an instant, too: by one that has lost the bias.
    if (inside().load(std::memory_order_relaxed) != 0 &&
        only_.load(std::memory_order_relaxed) == mob_thread_()) {
      leave();
    } else {
      held_.store(false, std::memory_order_release);
    }
  }

  // Acquires it if the calling thread has the bias; then leave() releases it.
  bool enter() {
    if (mob_bias_enter_(&bias_) == 0) return false;
    ++bias_.uses;
    return true;
  }
  void leave() { mob_bias_leave_(&bias_); }

  // Whether the calling thread has the bias.
  bool is_biased() const { return biased().load(std::memory_order_relaxed) == mob_thread_(); }

  // How often in a row a thread acquires it before it has the bias, at first and at most; and how
  // often it has to, then, for the bias to have paid for its end.
  static constexpr uint32_t kFirstStreak = 64;
  static constexpr uint32_t kLongestStreak = 1 << 20;
  static constexpr uint32_t kPays = 2000;

 private:
  std::atomic_ref<const void*> biased() const { return std::atomic_ref<const void*>(bias_.thread); }
  std::atomic_ref<uint8_t> inside() const { return std::atomic_ref<uint8_t>(bias_.inside); }

  void acquire();
  void wait_until_free();
  void acquired();
  void take_bias();

  mob_bias_t_& bias_;
  std::atomic<bool> held_ = false;  // a thread without the bias holds the lock
  // The only thread that ever gets the bias: the first one. Another one could meet, at any time
  // later, the store to `inside` of one that was stopped just before it.
  std::atomic<const void*> only_ = nullptr;
  // Guarded by `held_`.
  uint32_t streak_ = 0;  // of acquisitions by `last_`, the thread that came last
  uint32_t needed_ = kFirstStreak;
  const void* last_ = nullptr;
};

}  // namespace mobius::os
