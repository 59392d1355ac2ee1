// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/counter.h>
#include <mobius/job.h>
#include <mobius/status.h>

#include <atomic>

namespace mobius::engine {

// Operations that the program started before a message, and that wait for others to go with. They
// must go before the message does. The layers that record operations implement it.
class SendGate {
 public:
  // True while puts to exposed memory of a local peer wait. Senders read it before each message.
  virtual const std::atomic<bool>& puts_wait() const = 0;
  // Lets those puts go. Any thread; never waits.
  virtual void issue_puts() = 0;
  // Lets all recorded operations to a rank of another host go, and waits for those that a message
  // could overtake. `call` names the public function in error texts. In a handler it does not wait.
  virtual void issue_to(const char* call, mob_rank_t rank) = 0;

 protected:
  ~SendGate() = default;
};

// Counts counters whose owner is on another host. Never waits; an owner that is gone is not
// counted.
class RemoteCounts {
 public:
  virtual mob_status_t count(mob_rank_t owner, mob_counter_t counter) = 0;

 protected:
  ~RemoteCounts() = default;
};

}  // namespace mobius::engine
