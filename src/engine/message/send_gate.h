// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/counter.h>
#include <mobius/job.h>
#include <mobius/status.h>

#include <atomic>

namespace mobius::engine {

// Operations that the program started before a message, and that wait for others to be sent with.
// They must go before the message. The layers that record operations implement this interface.
class SendGate {
 public:
  // True while puts to exposed memory of a local peer wait. Senders read it before each message.
  virtual const std::atomic<bool>& puts_wait() const = 0;
  // Sends those puts. Any thread; never waits.
  virtual void issue_puts() = 0;
  // Sends all recorded operations to a rank of another host, and waits for those that a message
  // could overtake; in a handler it does not wait. `call` names the public function in error texts.
  virtual void issue_to(const char* call, mob_rank_t rank) = 0;

 protected:
  ~SendGate() = default;
};

// Counts counters whose owner is on another host. Never waits; does nothing if the owner is gone.
class RemoteCounts {
 public:
  virtual mob_status_t count(mob_rank_t owner, mob_counter_t counter) = 0;

 protected:
  ~RemoteCounts() = default;
};

}  // namespace mobius::engine
