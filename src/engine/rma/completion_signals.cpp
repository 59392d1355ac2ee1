// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rma/completion_signals.h"

#include "base/status.h"
#include "engine/progress/counters.h"
#include "engine/progress/waiter.h"
#include "engine/rma/exposed/exposures.h"
#include "engine/segment/segment.h"

namespace mobius::engine {

using base::fail;

mob_status_t CompletionSignals::resolve(const char* call, const mob_transfer_t& transfer,
                                        Notice* notice) {
  const mob_rank_t self = segment_.peers().rank();
  const struct {
    mob_rank_t owner;
    mob_counter_t counter;
    mob_counter** found;
  } wanted[] = {{self, transfer.origin_counter, &notice->origin},
                {transfer.rank, transfer.target_counter, &notice->target},
                {self, transfer.completion_counter, &notice->completion}};
  for (const auto& each : wanted) {
    if (each.counter == nullptr || !segment_.peers().is_here(each.owner)) continue;
    if (counters_.is_elsewhere(each.owner, each.counter)) {
      notice->by_target = true;
      continue;
    }
    *each.found = counters_.find(call, each.owner, each.counter);
    if (*each.found == nullptr) return MOB_ERR_HANDLE;
  }
  for (const uint64_t* word : {transfer.origin_word, transfer.completion_word}) {
    if (reinterpret_cast<uintptr_t>(word) % sizeof(uint64_t) == 0) continue;
    return fail(MOB_ERR_ARGUMENT, "%s: the word to count at %p is not aligned to 8 bytes", call,
                static_cast<const void*>(word));
  }
  if (transfer.signal == nullptr) return MOB_OK;
  if (reinterpret_cast<uintptr_t>(transfer.signal) % sizeof(uint64_t) != 0) {
    return fail(MOB_ERR_ARGUMENT, "%s: the signal word at %p is not aligned to 8 bytes", call,
                static_cast<void*>(transfer.signal));
  }
  if (transfer.signal_op != MOB_SIGNAL_SET && transfer.signal_op != MOB_SIGNAL_ADD) {
    return fail(MOB_ERR_ARGUMENT, "%s: %d is not a signal operation", call, transfer.signal_op);
  }
  if (!segment_.peers().is_here(transfer.rank)) {
    notice->by_target = true;
    return MOB_OK;
  }
  notice->signal =
      static_cast<uint64_t*>(segment_.reach(transfer.rank, transfer.signal, sizeof(uint64_t)));
  if (notice->signal != nullptr) return MOB_OK;
  if (!exposures_.covers(transfer.rank, reinterpret_cast<uintptr_t>(transfer.signal),
                         sizeof(uint64_t))) {
    return segment_.explain_unreachable(call, transfer.rank, transfer.signal, sizeof(uint64_t));
  }
  if (segment_.peers().is_same_process(transfer.rank)) {
    notice->signal = transfer.signal;
  } else {
    notice->by_target = true;
  }
  return MOB_OK;
}

void CompletionSignals::announce(const mob_transfer_t& transfer, const Notice& notice) {
  const mob_rank_t self = segment_.peers().rank();
  if (notice.signal != nullptr) {
    signal(transfer.rank, notice.signal, transfer.signal_value, transfer.signal_op);
  }
  if (notice.target != nullptr) counters_.count(transfer.rank, *notice.target);
  if (notice.origin != nullptr) counters_.count(self, *notice.origin);
  if (notice.completion != nullptr) counters_.count(self, *notice.completion);
  count_own(transfer.origin_word, transfer.completion_word);
}

void CompletionSignals::signal(mob_rank_t rank, uint64_t* word, uint64_t value,
                               mob_signal_op_t op) {
  // Sequentially consistent: data before signal, and signal before the check for sleepers. Pairs
  // with the acquire of the word's waiter.
  if (op == MOB_SIGNAL_SET) {
    __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
  } else {
    __atomic_fetch_add(word, value, __ATOMIC_SEQ_CST);
  }
  waiter_.ring_after_fence(rank);
}

void CompletionSignals::count_own(uint64_t* origin_word, uint64_t* completion_word) {
  if (origin_word == nullptr && completion_word == nullptr) return;
  Counters::count_word(origin_word);
  Counters::count_word(completion_word);
  waiter_.ring_after_fence(segment_.peers().rank());
}

}  // namespace mobius::engine
