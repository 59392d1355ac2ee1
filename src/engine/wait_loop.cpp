// SPDX-License-Identifier: BSD-3-Clause
#include "engine/wait_loop.h"

namespace mobius::engine {

class WaitLoop::PollingScope {
 public:
  explicit PollingScope(WaitLoop& loop)
      : loop_(loop), counted_(loop.is_asked()), stay_(loop.sources_.delegation) {
    if (counted_) loop_.sources_.progress.join();
  }
  ~PollingScope() {
    if (counted_) {
      loop_.sources_.progress.leave();
      loop_.sources_.request_activity.note_wait();
    }
    loop_.serve_delegated();  // serves an origin that saw this thread wait and counts on it
    // Leaves any work that remains after one more poll to another thread.
    if (loop_.poll(false)) Progress::wake(loop_.own_->doorbell);
    if (loop_.sources_.network.is_open()) loop_.sources_.network.leave();
  }
  PollingScope(const PollingScope&) = delete;
  PollingScope& operator=(const PollingScope&) = delete;

 private:
  WaitLoop& loop_;
  const bool counted_;
  const Delegation::Stay stay_;
};

void WaitLoop::open() {
  own_ = &segment_.own_process();
  gets_messages_only_ = peers_.job().hosts() == 1 && !sources_.instrumentation.hooked();
}

Waiter::Start WaitLoop::start() {
  if ((is_asked() && looks_at_once()) || sources_.instrumentation.hooked() ||
      sources_.instrumentation.timeline() != nullptr || peers_.host().policy().spin_ns == 0) {
    return Start::kServe;
  }
  return sources_.network.is_open() ? Start::kTestTimed : Start::kTest;
}

mob_status_t WaitLoop::wait_long(Condition done, os::Watch* watch, os::Wakeup wakeup) {
  const PollingScope scope(*this);
  const TraceScope trace(sources_.instrumentation.timeline(), "waiting");
  ProcessBlock::Doorbell& own = own_->doorbell;
  Network& network = sources_.network;
  uint32_t looks = 0;
  return os::wait_until(
      done, own.bell, own.sleepers, peers_.host().policy(), watch,
      [this, &own, &network, &looks] {
        if (network.is_open() && ++looks >= adaptive_yield_.looks()) {
          looks = 0;
          adaptive_yield_.offer();
        }
        // Before it sleeps, a thread that polled the network wakes the thread that did not.
        if (network.is_open() && own.sleepers.load(std::memory_order_relaxed) != 0) {
          network.unpark();
        }
        // Another thread may have recorded an operation that this wait depends on.
        issue_recorded();
        return poll_waiting();
      },
      wakeup);
}

}  // namespace mobius::engine
