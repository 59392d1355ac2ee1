// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Collects small implicit puts to exposed memory of a local peer, for one target at a time. The
// kernel copies many of them in one system call, in their order, since a system call costs as much
// as the copies of some pieces.
//
// If a put waited alone in the batch, the next puts are carried out at once: waiting costs half as
// much as a system call.
//
// The batch is issued when a thread waits in the library or polls, when it is full, and before any
// operation that does not use loads and stores to a local peer. The puts' bytes are the user's
// until a flush, as for every implicit put.

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
  // Most pieces of one system call (transport/cma).
  static constexpr size_t kMost = 128;
  // Larger puts gain nothing.
  static constexpr size_t kMostBytes = 4096;
  // Number of puts that are carried out at once after one that waited alone.
  static constexpr uint32_t kAlone = 31;

  ExposedBatch(Completion& completion, ExposedPath& path) : completion_(completion), path_(path) {}

  // Whether a checked operation by cross-memory attach is to wait in the batch; then record() it.
  bool takes(const Operation& operation);
  // Whether the next put is carried out at once.
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
  std::atomic<uint32_t> alone_ = 0;  // puts that are still carried out at once
  std::mutex mutex_;                 // guards the members below
  mob_rank_t rank_ = 0;
  Pending* pending_ = nullptr;
  size_t count_ = 0;
  mob_span_t remote_[kMost];
  mob_span_t local_[kMost];
};

}  // namespace mobius::engine
