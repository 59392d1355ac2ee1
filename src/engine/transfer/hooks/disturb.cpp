// SPDX-License-Identifier: BSD-3-Clause
#include "engine/transfer/hooks/disturb.h"

#include <chrono>
#include <thread>

#include "base/status.h"

namespace mobius::engine {

// Yields instead of sleeping: a sleep takes longer than most delays.
void DelayHook::delay() {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::microseconds(random_.below(max_us_ + 1));
  while (Clock::now() < end) std::this_thread::yield();
}

mob_status_t DelayHook::carry(const Operation& operation) {
  delay();
  const mob_status_t status = next_.carry(operation);
  delay();
  return status;
}

mob_status_t DelayHook::update(const WordUpdate& update) {
  delay();
  const mob_status_t status = next_.update(update);
  delay();
  return status;
}

mob_status_t DelayHook::order() {
  delay();
  return next_.order();
}

mob_status_t FaultHook::inject(const char* call, mob_rank_t rank) {
  const uint64_t count = count_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (count % every_ != 0) return MOB_OK;
  return base::fail(MOB_ERR_PEER,
                    "%s: injected by the fault hook (MOBIUS_HOOKS): nothing was transferred to or "
                    "from rank %d, which lives",
                    call, rank);
}

mob_status_t FaultHook::carry(const Operation& operation) {
  if (const mob_status_t status = inject(operation.call, operation.transfer->rank)) return status;
  return next_.carry(operation);
}

mob_status_t FaultHook::update(const WordUpdate& update) {
  if (const mob_status_t status = inject(update.call, update.rank)) return status;
  return next_.update(update);
}

}  // namespace mobius::engine
