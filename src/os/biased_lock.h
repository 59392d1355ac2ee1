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

#include <atomic>
#include <cstdint>

#include "os/asymmetric_fence.h"

namespace mobius::os {

namespace lock_detail {
extern constinit thread_local char thread_mark [[gnu::tls_model("initial-exec")]];
}  // namespace lock_detail

// Not reentrant. Meets BasicLockable, for std::lock_guard.
class BiasedLock {
 public:
  void lock() {
    if (!enter()) [[unlikely]] {
      acquire();
    }
  }
  void unlock() {
    // Another thread may find `inside_` set for an instant, too: by one that has lost the bias.
    if (inside_.load(std::memory_order_relaxed) &&
        only_.load(std::memory_order_relaxed) == self()) {
      leave();
    } else {
      held_.store(false, std::memory_order_release);
    }
  }

  // Acquires it if the calling thread has the bias; then leave() releases it.
  bool enter() {
    const void* const me = self();
    if (biased_.load(std::memory_order_relaxed) != me) return false;
    inside_.store(true, std::memory_order_relaxed);
    light_fence();  // pairs with the heavy one in take_bias()
    if (biased_.load(std::memory_order_relaxed) != me) [[unlikely]] {
      leave();
      return false;
    }
    ++uses_;
    return true;
  }
  void leave() { inside_.store(false, std::memory_order_release); }

  // Whether the calling thread has the bias.
  bool is_biased() const { return biased_.load(std::memory_order_relaxed) == self(); }

  // How often in a row a thread acquires it before it has the bias, at first and at most; and how
  // often it has to, then, for the bias to have paid for its end.
  static constexpr uint32_t kFirstStreak = 64;
  static constexpr uint32_t kLongestStreak = 1 << 20;
  static constexpr uint32_t kPays = 2000;

 private:
  static const void* self() { return &lock_detail::thread_mark; }

  void acquire();
  void wait_until_free();
  void acquired();
  void take_bias();

  std::atomic<const void*> biased_ = nullptr;  // the thread that has the bias
  std::atomic<bool> inside_ = false;           // that thread holds the lock
  std::atomic<bool> held_ = false;             // a thread without the bias does
  uint32_t uses_ = 0;                          // by the thread with the bias, since it has that
  // The only thread that ever gets the bias: the first one. Another one could meet, at any time
  // later, the store to `inside_` of one that was stopped just before it.
  std::atomic<const void*> only_ = nullptr;
  // Guarded by `held_`.
  uint32_t streak_ = 0;  // of acquisitions by `last_`, the thread that came last
  uint32_t needed_ = kFirstStreak;
  const void* last_ = nullptr;
};

}  // namespace mobius::os
