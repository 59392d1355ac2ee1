// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Operations that a thread begins in a locked region before it has the lock: they are held back and
// travel with the request for the lock (sync/lazy_lock.h). The router and the scheduler ask here
// whether an operation is one of them.

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

  // Whether any thread has deferred a lock; if not, nothing below does anything.
  bool is_used() const { return started_.load(std::memory_order_relaxed) != 0; }

  // Of a checked operation on memory of another host: whether it belongs to the calling thread's
  // deferred access and was kept, or failed. Otherwise that thread has its lock now.
  bool takes(const Operation& operation, mob_status_t* status) {
    return is_used() && keep(operation, status);
  }

  // Has the calling thread gain the locks that it deferred; with complete() only if operations for
  // `rank` (Completion::kAll: for any rank) were kept. Nothing in a handler, which must not wait.
  mob_status_t gain(const char* call) { return is_used() ? gain_own(call) : MOB_OK; }
  mob_status_t complete(const char* call, mob_rank_t rank) {
    return is_used() ? complete_own(call, rank) : MOB_OK;
  }

 protected:
  std::atomic<uint32_t> started_ = 0;  // of all threads, not gained or ended

 private:
  virtual bool keep(const Operation& operation, mob_status_t* status) = 0;
  virtual mob_status_t gain_own(const char* call) = 0;
  virtual mob_status_t complete_own(const char* call, mob_rank_t rank) = 0;
};

}  // namespace mobius::engine
