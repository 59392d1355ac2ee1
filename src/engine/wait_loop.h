// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The work of a waiting thread and of mob_poll(): both issue recorded operations and serve the
// requests of other processes on every path. Part of the composition root: it knows every component
// that may have work.

#include <atomic>
#include <new>

#include "engine/common/instrumentation.h"
#include "engine/message/message.h"
#include "engine/network/network.h"
#include "engine/progress/adaptive_yield.h"
#include "engine/progress/progress.h"
#include "engine/progress/request_activity.h"
#include "engine/progress/waiter.h"
#include "engine/remote/remote_objects.h"
#include "engine/rma/delegation.h"
#include "engine/rma/exposed/exposed_batch.h"
#include "engine/scheduler/scheduler.h"
#include "engine/transfer/router.h"

namespace mobius::engine {

class WaitLoop final : public Waiter {
 public:
  // The components that may have work.
  struct Sources {
    const Instrumentation& instrumentation;
    ExposedBatch& exposed_batch;
    Router& router;
    Messages& messages;
    Delegation& delegation;
    RemoteObjects& remote_objects;
    Scheduler& scheduler;
    Network& network;
    Progress& progress;
    RequestActivity& request_activity;
  };

  WaitLoop(Peers& peers, Segment& segment, const Sources& sources)
      : Waiter(peers, segment), sources_(sources) {}

  // Called once, after the job is joined and the components are open.
  void open();

  void issue_recorded() override {
    sources_.scheduler.issue_all();
    sources_.exposed_batch.issue();
  }
  bool poll() override { return poll(true); }

  // Polls the other engines of this process, where there are some (guests.h); else null. Whoever
  // waits for a process of one job also serves those of the others.
  static inline std::atomic<bool (*)(WaitLoop& except)> poll_others = nullptr;

  // The fast path of a program that polls: serves messages and calls Progress::note_poll(). It
  // applies if nothing waits to be issued or sent, and only messages of local peers can have
  // arrived. False, with nothing done, if that is not known.
  bool poll_messages() {
    if (!gets_messages_only_ || sources_.exposed_batch.any() || sources_.messages.has_queued())
        [[unlikely]] {
      return false;
    }
    const uint32_t rings = sources_.messages.rings();
    if (rings == 0) return true;
    sources_.progress.note_poll();
    if (sources_.messages.may_find_in(rings)) serve_messages();
    return true;
  }

 private:
  Start start() override;
  mob_status_t wait_long(Condition done, os::Watch* watch, os::Wakeup wakeup) override;

  // Marks the waiting thread as the one that polls (progress/progress.h).
  class PollingScope;

  // Also does the work that other ranks delegate to waiting threads.
  os::Work poll_waiting() {
    os::Work found = poll() ? os::Work::kSome : os::Work::kNone;
    bool (*const others)(WaitLoop&) = poll_others.load(std::memory_order_relaxed);
    if (others != nullptr && others(*this)) [[unlikely]] {
      found = os::Work::kSome;
    }
    const os::Work served = serve_delegated();
    return served != os::Work::kNone ? served : found;
  }

  os::Work serve_delegated() {
    if (!sources_.delegation.is_there()) return os::Work::kNone;
    const os::Work served = sources_.delegation.serve();
    if (served != os::Work::kNone) sources_.request_activity.note();
    return served;
  }

  // If memory is refused, the work stays as it was and the next poll tries again, because waiting
  // threads, the library's threads and destructors cannot handle the exception. Without `network`
  // requests in the network are left to another thread: looking for them costs a system call.
  bool poll(bool network) {
    try {
      return look_for_work(network);
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  bool look_for_work(bool network) {
    bool found = sources_.router.poll();
    if (sources_.messages.serve(network)) {
      found = true;
      note_handlers();
    }
    // After the messages, because they may bring what claims wait for.
    if (own_->doorbell.claims.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      if (sources_.remote_objects.locks().look()) found = true;
    }
    return found;
  }

  // Called after handlers may have run.
  void note_handlers() {
    if (sources_.delegation.is_there()) sources_.delegation.forget_memory();
  }

  // Like poll(), for messages only.
  void serve_messages() {
    try {
      if (sources_.messages.serve_by_turns(false)) note_handlers();
    } catch (const std::bad_alloc&) {
      return;
    }
  }

  // Whether other ranks may request work that a waiting thread must look for.
  bool is_asked() const { return sources_.messages.in_use() || sources_.delegation.is_there(); }

  // Whether a wait looks for requests from its start: a local peer sent one lately, or no other
  // thread would look for them or send what is queued.
  bool looks_at_once() {
    if (sources_.progress.rests() || sources_.messages.has_queued() ||
        sources_.network.has_unsettled()) {
      return true;
    }
    if (sources_.delegation.take_missed()) sources_.request_activity.note();
    return sources_.request_activity.is_recent();
  }

  const Sources sources_;
  ProcessBlock* own_ = nullptr;
  bool gets_messages_only_ = false;  // no other host and no hook
  AdaptiveYield adaptive_yield_;
};

}  // namespace mobius::engine
