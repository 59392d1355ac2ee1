// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a thread does while it waits, and what mob_poll() does: it issues operations that were only
// recorded and serves the requests of others, wherever they arrive. Part of the composition root:
// it knows every component that may have something to do.

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
#include "engine/rma/exposed_batch.h"
#include "engine/scheduler/scheduler.h"
#include "engine/transfer/router.h"

namespace mobius::engine {

class WaitLoop final : public Waiter {
 public:
  // Where a process may find something to do.
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

  // Once the job is joined and the components are open.
  void open();

  void issue_recorded() override {
    sources_.scheduler.issue_all();
    sources_.exposed_batch.issue();
  }
  bool poll() override { return poll(true); }

  // What a program that polls does mostly: the same with Progress::note_poll(), where nothing waits
  // to be issued or sent and nothing but messages of local peers can have come. False if that is
  // not known; then nothing was done.
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

  // While a thread waits, it is the one that polls (progress/progress.h).
  class PollingScope;

  // Also what is done for others only while a thread waits.
  os::Work poll_waiting() {
    const os::Work found = poll() ? os::Work::kSome : os::Work::kNone;
    const os::Work served = serve_delegated();
    return served != os::Work::kNone ? served : found;
  }

  os::Work serve_delegated() {
    if (!sources_.delegation.is_there()) return os::Work::kNone;
    const os::Work served = sources_.delegation.serve();
    if (served != os::Work::kNone) sources_.request_activity.note();
    return served;
  }

  // Nothing in it is begun that cannot be tried again where memory is refused, and then the next
  // poll tries again: waiting threads, the library's threads, and destructors call this. Without
  // `network`, requests that have arrived there are left to the thread that finds them without this
  // one: looking for them costs a system call.
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
    // After the messages, which may have brought what claims wait for.
    if (own_->doorbell.claims.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      if (sources_.remote_objects.locks().look()) found = true;
    }
    return found;
  }

  // Handlers may have run.
  void note_handlers() {
    if (sources_.delegation.is_there()) sources_.delegation.forget_memory();
  }

  // As poll() with what can have come.
  void serve_messages() {
    try {
      if (sources_.messages.serve_by_turns(false)) note_handlers();
    } catch (const std::bad_alloc&) {
      return;
    }
  }

  // Whether anybody may ask for something that a waiting thread has to look for.
  bool is_asked() const { return sources_.messages.in_use() || sources_.delegation.is_there(); }

  // Whether a wait looks for that from its start: a local peer asked lately, or nobody else would
  // look, or send what is to be sent.
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
  bool gets_messages_only_ = false;  // no other host, no hook
  AdaptiveYield adaptive_yield_;
};

}  // namespace mobius::engine
