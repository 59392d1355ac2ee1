// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What excludes accumulates into one process from each other: locks, one for each stripe of its
// memory (transport/shm/accumulate.h).
//
// Updates of single words, mob_fetch_add8() and its kin, take no lock: they are one instruction in
// the caller. So that accumulates of integers may be loops under a lock all the same, who is about
// to update words of a stripe first admits words to it: says so in the stripe, then takes its lock
// once, so that nobody is left inside who did not see it. From then on, and for good, accumulates
// combine the integers of that stripe by atomic instructions, too.

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/host_memory.h"
#include "transport/shm/accumulate.h"

namespace mobius::engine {

class Engine;

class Stripes {
 public:
  explicit Stripes(Engine& engine) : engine_(engine) {}
  void open();

  // When it returns, words among `bytes` bytes at an address of a process of this host may be
  // updated by atomic instructions. Any thread.
  void admit_words(mob_rank_t host_index, uintptr_t address, uint64_t bytes) {
    const uint64_t admitted = admitted_[host_index].load(std::memory_order_acquire);
    if (admitted == kAll) [[likely]] {
      return;
    }
    const uint64_t wanted = stripes_of(address, bytes);
    if ((wanted & ~admitted) != 0) admit(host_index, wanted & ~admitted);
  }

  // Combines a few elements that lie in one piece, reached at `here`. False, with nothing done, if
  // it is more than that, or not defined, or what is fetched is the first word ever; accumulate()
  // does all.
  bool accumulate_few(mob_rank_t host_index, uintptr_t address, void* here, const void* local,
                      size_t count, const transport::Combination& what);

  // Combines elements of a process of this host, reached at their address there plus
  // `remote_delta`.
  void accumulate(mob_rank_t host_index, const transport::Shape& shape, ptrdiff_t remote_delta,
                  const transport::Combination& combination);

 private:
  static constexpr uint64_t kAll = UINT64_MAX;
  static_assert(transport::kLockStripes == 64);

  static uint64_t stripes_of(uintptr_t address, uint64_t bytes);
  [[gnu::cold]] void admit(mob_rank_t host_index, uint64_t stripes);

  Engine& engine_;
  // By host index: the stripes that this process knows to admit words.
  std::unique_ptr<std::atomic<uint64_t>[]> admitted_;
};

}  // namespace mobius::engine
