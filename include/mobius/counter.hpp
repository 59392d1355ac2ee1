/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MOBIUS_COUNTER_HPP
#define MOBIUS_COUNTER_HPP

/**
 * @file
 * Owned completion counters. */

#include <mobius/counter.h>
#include <mobius/error.hpp>

namespace mob {

/**
 * Owns a completion counter of this process (counter.h). Pass its handle in a mob_transfer_t or
 * mob_notify_t, here or in another process. Movable. An object that was moved from or freed has no
 * counter, and its calls throw Error with MOB_ERR_HANDLE.
 *
 * When it is destroyed, no operation may still count the counter, and no thread may wait for it.
 */
class Counter {
 public:
  /** Makes a counter that holds 0: mob_counter_create(). @throws Error if it fails */
  Counter() {
    mob_counter_t counter = nullptr;
    check(mob_counter_create(&counter));
    counter_ = detail::Owner<mob_counter_t, &mob_counter_free, false>(counter);
  }

  /** @return the counter for the C interface; this object still owns it */
  [[nodiscard]] mob_counter_t handle() const noexcept { return counter_.get(); }

  /** Reads it: mob_counter_get(). Makes progress. Thread safety: any. @throws Error if it fails */
  [[nodiscard]] uint64_t value() const {
    uint64_t value = 0;
    check(mob_counter_get(counter_.get(), &value));
    return value;
  }

  /** Sets it: mob_counter_set(). Thread safety: any. @throws Error if it fails */
  void set(uint64_t value) { check(mob_counter_set(counter_.get(), value)); }

  /**
   * Waits until it holds at least `value`, then subtracts `value`: mob_counter_wait(). Blocks,
   * makes progress. Thread safety: any.
   * @return        the value after the subtraction
   * @throws Error  if it fails
   */
  uint64_t wait(uint64_t value) {
    uint64_t left = 0;
    check(mob_counter_wait(counter_.get(), value, &left));
    return left;
  }

  /** Frees it before destruction: mob_counter_free(). @throws Error if it fails */
  void free() { check(counter_.free()); }

 private:
  detail::Owner<mob_counter_t, &mob_counter_free, false> counter_;
};

}  // namespace mob

#endif
