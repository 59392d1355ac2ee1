// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Small puts to exposed memory of a host-mate that were only started: they wait here, for one
// target at a time, and go to the kernel many in one call, in their order. A call of the kernel
// costs as much as the copies of some pieces.
//
// Where nothing came to one that waited, the next go at once, by themselves: to wait costs as much
// as half a call of the kernel.
//
// They are issued when a thread waits in the library or polls, when the batch is full, and before
// anything else that does not go by loads and stores to a host-mate. Their bytes are the user's
// until a flush, as for every put that is only started.

#include <mobius/job.h>
#include <mobius/transfer.h>

#include <atomic>
#include <cstddef>
#include <mutex>

#include "engine/progress/completion.h"
#include "engine/rma/operation.h"

namespace mobius::engine {

class ExposedPath;

class ExposedBatch {
 public:
  // What one call of the kernel is given at once (transport/cma).
  static constexpr size_t kMost = 128;
  // Longer ones gain nothing.
  static constexpr size_t kMostBytes = 4096;
  // So many go at once behind one that waited alone.
  static constexpr uint32_t kAlone = 31;

  ExposedBatch(Completion& completion, ExposedPath& path) : completion_(completion), path_(path) {}

  // Whether a checked operation by cross-memory attach is one to wait; then record() it.
  bool takes(const Operation& operation);
  // Whether the next one goes at once.
  bool lets_go_alone();
  mob_status_t record(const Operation& operation);

  bool any() const { return any_.load(std::memory_order_relaxed); }
  const std::atomic<bool>& any_flag() const { return any_; }
  // Any thread; never waits.
  void issue() {
    if (any()) issue_recorded();
  }

 private:
  void issue_recorded();
  void issue_locked();

  Completion& completion_;
  ExposedPath& path_;
  std::atomic<bool> any_ = false;
  std::atomic<uint32_t> alone_ = 0;  // that still go at once
  std::mutex mutex_;                 // guards what follows
  mob_rank_t rank_ = 0;
  Pending* pending_ = nullptr;
  size_t count_ = 0;
  mob_span_t remote_[kMost];
  mob_span_t local_[kMost];
};

}  // namespace mobius::engine
