// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Operations that a thread starts in a locked region before it holds the lock: they are kept and
// travel with the request for the lock (sync/lazy_lock.h). The router and the scheduler ask this
// class whether an operation is one of them.

#include <mobius/job.h>

#include <atomic>
#include <cstdint>

#include "engine/rma/operation.h"

namespace mobius::engine {

// Any thread.
class DeferredAccess {
 public:
  DeferredAccess() = default;
  virtual ~DeferredAccess() = default;
  DeferredAccess(const DeferredAccess&) = delete;
  DeferredAccess& operator=(const DeferredAccess&) = delete;

  // Whether any thread has deferred a lock; if not, every other call here does nothing.
  bool is_used() const { return started_.load(std::memory_order_relaxed) != 0; }

  // For a checked operation on memory of another host: true if it belongs to the calling thread's
  // deferred access and was kept, or failed. After false the thread holds its lock.
  bool takes(const Operation& operation, mob_status_t* status) {
    return is_used() && keep(operation, status);
  }

  // gain() acquires the locks that the calling thread deferred. complete() does so only if
  // operations for `rank` (Completion::kAll: for any rank) were kept. Neither does anything in a
  // handler, which must not wait.
  mob_status_t gain(const char* call) { return is_used() ? gain_own(call) : MOB_OK; }
  mob_status_t complete(const char* call, mob_rank_t rank) {
    return is_used() ? complete_own(call, rank) : MOB_OK;
  }

 protected:
  std::atomic<uint32_t> started_ = 0;  // deferred locks that are pending

 private:
  virtual bool keep(const Operation& operation, mob_status_t* status) = 0;
  virtual mob_status_t gain_own(const char* call) = 0;
  virtual mob_status_t complete_own(const char* call, mob_rank_t rank) = 0;
};

}  // namespace mobius::engine
