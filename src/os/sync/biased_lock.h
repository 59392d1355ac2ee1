// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A lock between threads of one process for critical sections that mostly take nanoseconds and are
// mostly used by one thread. Once that thread has come often enough, it acquires and releases the
// lock by plain loads and stores. Another thread that comes along takes this bias back by a heavy
// fence of some microseconds. That has to pay, so the more often it happens, the longer there is no
// bias. Without a bias, an atomic instruction acquires the lock and a plain store releases it. A
// thread that finds the lock held spins, yields, then sleeps for moments. Therefore no thread may
// wait for long while it holds the lock, and paths that must be fast must not need the lock where a
// thread could do so. (Kawachiya, Koseki and Onodera, "Lock reservation", OOPSLA 2002.)

#include <mobius/detail/bias_inline.h>

#include <atomic>
#include <cstdint>

namespace mobius::os {

// Not reentrant. Meets BasicLockable, for std::lock_guard. The owner of the lock places the part
// that the thread with the bias uses, so that programs can inline it. That part is zeroed at first
// and outlives the lock.
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
    // A thread that has lost the bias may set it for an instant too.
    if (inside().load(std::memory_order_relaxed) != 0 &&
        only_.load(std::memory_order_relaxed) == mob_thread_()) {
      leave();
    } else {
      held_.store(false, std::memory_order_release);
    }
  }

  // Acquires the lock if the calling thread has the bias; leave() then releases it.
  bool enter() {
    if (mob_bias_enter_(&bias_) == 0) return false;
    ++bias_.uses;
    return true;
  }
  void leave() { mob_bias_leave_(&bias_); }

  // Whether the calling thread has the bias.
  bool is_biased() const { return biased().load(std::memory_order_relaxed) == mob_thread_(); }

  // The number of consecutive acquisitions that give a thread the bias, at first and at most; and
  // the number of further acquisitions by which the bias has paid for its end.
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
  // The first thread, the only one that ever gets the bias. A second thread with the bias could
  // meet, at any later time, the store to `inside` of a thread that was stopped just before it.
  std::atomic<const void*> only_ = nullptr;
  // `held_` guards the members below.
  uint32_t streak_ = 0;  // consecutive acquisitions by `last_`, the last thread
  uint32_t needed_ = kFirstStreak;
  const void* last_ = nullptr;
};

}  // namespace mobius::os
