// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Waiting for what other processes do, and waking those that wait. A thread that waits serves the
// requests of others meanwhile; how is the engine's business (wait_loop.h), so that components
// which wait need not know everything that may be asked of a process.

#include <atomic>
#include <cstdint>

#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/segment/segment.h"
#include "os/cpu/ticks.h"
#include "os/sync/waiter.h"

namespace mobius::engine {

// A condition that is waited for, as a reference to any callable. The callable outlives it.
class Condition {
 public:
  template <typename Done>
  explicit Condition(Done& done)
      : done_(&done), test_([](void* callable) { return (*static_cast<Done*>(callable))(); }) {}
  bool operator()() const { return test_(done_); }

 private:
  void* done_;
  bool (*test_)(void*);
};

using base::in_handler;

class Waiter {
 public:
  Waiter(Peers& peers, Segment& segment) : peers_(peers), segment_(segment) {}
  virtual ~Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Waits until `done()`, which reads with acquire; the process that makes it hold rings this one,
  // or does what `wakeup` says. Makes progress meanwhile. An error that `watch` (may be null)
  // returns ends the wait. MOB_ERR_STATE in a handler, which may not wait. Any thread.
  template <typename Done>
  mob_status_t wait_until(Done done, os::Watch* watch, os::Wakeup wakeup = os::Wakeup::kRung) {
    if (done()) return MOB_OK;
    if (in_handler) [[unlikely]] {
      return refuse_to_wait();
    }
    issue_recorded();
    if (comes_soon(done)) return MOB_OK;
    return wait_long(Condition(done), watch, wakeup);
  }

  // Issues operations that were only recorded, to go with others. Any thread; never waits.
  virtual void issue_recorded() = 0;
  // Carries out what other processes asked this one to do; whether there was anything. Any thread.
  virtual bool poll() = 0;

  // Wakes threads of a process that wait for what the caller has changed; nothing if the process is
  // on another host. The second form is for callers that have passed a full fence or a sequentially
  // consistent read-modify-write since, and for waits with os::Wakeup::kUnfenced. The read of the
  // number of sleepers is sequentially consistent, too, which costs nothing on x86: elsewhere a
  // later read could be made before such an update is seen.
  void ring(mob_rank_t rank) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    ring_after_fence(rank);
  }
  void ring_after_fence(mob_rank_t rank) {
    if (!peers_.is_here(rank)) return;
    ring_after_fence(segment_.doorbell(rank));
  }
  static void ring_after_fence(ProcessBlock::Doorbell& target) {
    if (target.sleepers.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
      os::ring_sleepers(target.bell);
    }
  }

 protected:
  // How a wait begins: by serving others at once, or by testing the condition alone for a moment
  // first, which is limited in time where the condition takes long to test.
  enum class Start { kServe, kTest, kTestTimed };
  virtual Start start() = 0;
  // The rest of a wait: tests, polls, yields and sleeps.
  virtual mob_status_t wait_long(Condition done, os::Watch* watch, os::Wakeup wakeup) = 0;

  Peers& peers_;
  Segment& segment_;

 private:
  [[gnu::cold]] static mob_status_t refuse_to_wait();

  // Polling for requests, with what it takes to begin and end it, costs about one cross-core cache
  // miss. So a wait tests its condition alone first, for as long as a few misses take, where
  // nothing can be asked or nobody has asked for anything lately.
  template <typename Done>
  bool comes_soon(Done& done) {
    const Start how = start();
    if (how == Start::kServe) return false;
    // A condition that another host fulfils is tested among what has arrived, under locks: the full
    // number of tests would take as long as a message does.
    const bool is_timed = how == Start::kTestTimed;
    const uint64_t begin = is_timed ? os::ticks() : 0;
    for (uint32_t test = 0; test < kFirstTests; ++test) {
      if (done()) return true;
      if (is_timed && test % 8 == 7 && os::ticks() - begin > kFirstTicks) break;
    }
    return false;
  }
  static constexpr uint32_t kFirstTests = 256;
  static constexpr uint64_t kFirstTicks = 1000;  // some 0.3 µs
};

}  // namespace mobius::engine
