// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Who is told of a transfer: completion counters (engine/progress/counters.h), the signal word at
// the target and the words of this process that count.

#include <mobius/transfer.h>

#include <cstdint>

#include "engine/rma/operation.h"

namespace mobius::engine {

class Counters;
class Exposures;
class Segment;
class Waiter;

class CompletionSignals {
 public:
  CompletionSignals(Segment& segment, Waiter& waiter, Counters& counters, Exposures& exposures)
      : segment_(segment), waiter_(waiter), counters_(counters), exposures_(exposures) {}

  // Finds whom a transfer names, and checks them. An error is recorded for `call`.
  mob_status_t resolve(const char* call, const mob_transfer_t& transfer, Notice* notice);

  // The transfer's bytes are where they belong: tells everyone.
  void announce(const mob_transfer_t& transfer, const Notice& notice);

  // Sets or adds to a word of a host-mate, mapped here, and wakes who waits for it there. What this
  // thread wrote before is visible to who sees it.
  void signal(mob_rank_t rank, uint64_t* word, uint64_t value, mob_signal_op_t op);

  // Counts words of this process, null for none, and wakes who waits for them.
  void count_own(uint64_t* origin_word, uint64_t* completion_word);

 private:
  Segment& segment_;
  Waiter& waiter_;
  Counters& counters_;
  Exposures& exposures_;
};

}  // namespace mobius::engine
