// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Chooses the path for one contiguous range of exposed memory while its target waits: delegation
// (delegation.h), with two copies and a few cache lines back and forth, or one system call. Kernels
// and processors differ in both by several times, so both are tried for each kind and size. They
// are tried in rows, since the kernel copies through the origin's caches, and a target through its
// own.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "engine/common/ab_tuner.h"
#include "engine/rma/delegation.h"

namespace mobius::engine {

// Any thread.
class ExposedTuning {
 public:
  // Below this size delegation is faster wherever there is a kernel to call.
  static constexpr size_t kLeastBytes = 512;

  struct Turn {
    bool delegates = true;
    bool is_timed = false;  // the caller reports the time to add()
  };
  // Called before each transfer of kLeastBytes to Delegation::kMostBytes.
  Turn begin(bool put, size_t bytes) {
    AbTuner& tuner = tuner_of(put, bytes);
    const std::lock_guard lock(mutex_);
    const bool delegates = tuner.takes_first();
    return {delegates, tuner.begins()};
  }
  // Reports the time of a transfer by the path of `delegates`.
  void add(bool put, size_t bytes, bool delegates, uint64_t ns) {
    AbTuner& tuner = tuner_of(put, bytes);
    const std::lock_guard lock(mutex_);
    tuner.add(delegates, static_cast<int64_t>(ns));
  }

 private:
  struct InRows : AbTuner {
    InRows() : AbTuner(Order::kInRows) {}
  };
  static constexpr size_t kSizes = std::bit_width(Delegation::kMostBytes / kLeastBytes);

  AbTuner& tuner_of(bool put, size_t bytes) {
    return tuners_[put ? 0 : 1][static_cast<size_t>(std::bit_width(bytes / kLeastBytes)) - 1];
  }

  std::mutex mutex_;  // guards the members below
  std::array<std::array<InRows, kSizes>, 2> tuners_;
};

}  // namespace mobius::engine
