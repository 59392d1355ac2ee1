// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Hooks that test programs by delays and failures.

#include <atomic>

#include "engine/transfer/hooks/hook.h"
#include "engine/transfer/hooks/random.h"

namespace mobius::engine {

// Delays every operation by a random time before and after it is carried out.
class DelayHook final : public Hook {
 public:
  DelayHook(Carrier& next, uint64_t max_us, uint64_t seed, mob_rank_t rank)
      : Hook(next), max_us_(max_us), random_(seed, rank) {}

  mob_status_t carry(const Operation& operation) override;
  mob_status_t update(const WordUpdate& update) override;
  mob_status_t order() override;

 private:
  void delay();

  const uint64_t max_us_;
  Random random_;
};

// Fails one of every `every` operations, before anything is transferred. The seed chooses the first
// one.
class FaultHook final : public Hook {
 public:
  FaultHook(Carrier& next, uint64_t every, uint64_t seed, mob_rank_t rank)
      : Hook(next), every_(every), count_(Random(seed, rank).below(every)) {}

  mob_status_t carry(const Operation& operation) override;
  mob_status_t update(const WordUpdate& update) override;

 private:
  mob_status_t inject(const char* call, mob_rank_t rank);

  const uint64_t every_;
  std::atomic<uint64_t> count_;
};

}  // namespace mobius::engine
