// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The lock of one member of a window whose members all share memory: shared by many or held by one.
// To lock it takes one atomic instruction if nobody else wants it, to free it a store (exclusive)
// or an atomic instruction (shared). It belongs to a process, not to a thread, as MPI's locks do.

#include <mobius/job.h>

#include <atomic>
#include <bit>
#include <cstdint>

namespace mobius::mpi {

// Lies in shared memory; free when it is zero.
class TargetLock {
 public:
  void lock_shared() {
    // Acquire pairs with the releases of those who had it exclusively.
    if ((word_.fetch_add(kReader, std::memory_order_acquire) & kWriters) != 0) [[unlikely]] {
      wait_shared();
    }
  }
  void unlock_shared() { word_.fetch_sub(kReader, std::memory_order_release); }

  // `me` is the rank in the job.
  void lock_exclusive(mob_rank_t me) {
    uint64_t expected = 0;
    if (!word_.compare_exchange_strong(expected, holder(me), std::memory_order_acquire,
                                       std::memory_order_relaxed)) [[unlikely]] {
      wait_exclusive(me);
    }
  }
  // Only the holder writes its half of the word, until it has freed it; so it needs no atomic
  // instruction. Those that change the whole word come before the store or after it.
  void unlock_exclusive() {
    __atomic_store_n(reinterpret_cast<Half*>(&word_) + kHolderHalf, 0, __ATOMIC_RELEASE);
  }

 private:
  // From the lowest bits on: how many share it, how many wait for it exclusively, and the rank plus
  // one of the process that holds it exclusively. A process that comes to share it waits for the
  // others.
  static constexpr uint64_t kReader = 1;
  static constexpr uint64_t kReaders = 0xffff;
  static constexpr uint64_t kWaiter = kReaders + 1;
  static constexpr unsigned kHolderShift = 32;
  static constexpr uint64_t kWriters = ~kReaders;
  using Half = uint32_t __attribute__((may_alias));
  static constexpr int kHolderHalf = std::endian::native == std::endian::little ? 1 : 0;

  static uint64_t holder(mob_rank_t rank) {
    return static_cast<uint64_t>(rank + 1) << kHolderShift;
  }
  void wait_shared();
  void wait_exclusive(mob_rank_t me);
  void free_of_dead(uint64_t seen);

  std::atomic<uint64_t> word_;
};

}  // namespace mobius::mpi
