// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Notifies of a transfer's completion: completion counters (engine/progress/counters.h), the signal
// word at the target, and words of this process that count completions.

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

  // Finds the counters and words that a transfer names, and checks them. An error is recorded for
  // `call`.
  mob_status_t resolve(const char* call, const mob_transfer_t& transfer, Notice* notice);

  // To be called when the transfer's bytes are in place: counts and signals everything it names.
  void announce(const mob_transfer_t& transfer, const Notice& notice);

  // Sets or adds to a word of a local peer, mapped here, and wakes its waiters. A waiter that sees
  // the new value sees everything this thread wrote before.
  void signal(mob_rank_t rank, uint64_t* word, uint64_t value, mob_signal_op_t op);

  // Counts words of this process (null for none), and wakes their waiters.
  void count_own(uint64_t* origin_word, uint64_t* completion_word);

 private:
  Segment& segment_;
  Waiter& waiter_;
  Counters& counters_;
  Exposures& exposures_;
};

}  // namespace mobius::engine
