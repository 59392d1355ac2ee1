// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Records operations on other hosts' memory that may be delayed, and issues them by a plan
// (schedule/plan.h): reordered, merged, or many in one message that has one answer.
//
// It records small and implicit operations. They are issued
//
// - when any thread of the process waits in the library or calls mob_poll(): a flush, a lock, a
//   blocking get, the end of an epoch;
// - when the target's queue is full;
// - before any operation on the same target that is not recorded, so that the target receives
//   operations in the order of the calls;
// - if the recording call has no "nb" in its name, as soon as no other message of this queue is
//   pending at the target: at once on a quiet link, else with the next answer.
//
// Issuing never waits. The lock of a queue is also held during issuing, so operations that are
// issued later reach the target later. For flow control a recording thread waits, with no lock
// held.

#include <mobius/job.h>
#include <mobius/message.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/common/sparse_array.h"
#include "engine/progress/completion.h"
#include "engine/request/link_observer.h"
#include "engine/rma/operation.h"
#include "engine/scheduler/policy_hints.h"
#include "engine/scheduler/scheduler_services.h"
#include "schedule/operation.h"

namespace mobius::schedule {
struct Costs;
struct Issue;
struct Plan;
}  // namespace mobius::schedule

namespace mobius::engine {

class Scheduler final : public LinkObserver {
 public:
  explicit Scheduler(const SchedulerServices& services);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Does nothing on one host. Called before anything is recorded or can arrive.
  mob_status_t open();

  // Every operation on another host's memory is offered here before it goes by itself. The result
  // says whether the scheduler took it, which means that it recorded it, or sent it behind what it
  // had recorded; `*status` is the outcome then. False: nothing was done, take another path.
  //
  // A checked operation. A blocking get or fetch waits for its data.
  bool try_submit(const Operation& operation, mob_status_t* status);
  // One contiguous range of at most kMostKept bytes, without a description: a put, which is locally
  // complete on return, or a blocking get. An urgent put is issued without a flush. `call` is the
  // public function, for error texts. Where the result is false, Router::run() finds out why.
  enum class Urgency { kUrgent, kAtFlush };
  bool try_put(const char* call, mob_rank_t rank, void* remote, const void* local, size_t bytes,
               Urgency urgency, mob_status_t* status);
  bool try_get(const char* call, mob_rank_t rank, const void* remote, void* local, size_t bytes,
               mob_status_t* status);
  static constexpr size_t kMostKept = 1024;

  // Records an implicit put or get behind others of its target, after all checks. False if there
  // are no others, or it cannot be recorded this way; try_submit() finds out why.
  bool try_append(schedule::Kind kind, mob_rank_t rank, void* remote, const void* local,
                  size_t bytes);
  // The same for a put that follows another put of this thread to the target, which is all it has
  // to check; calls `otherwise` for any other put. To be tried before try_append().
  using Put = mob_status_t(mob_rank_t rank, void* remote, const void* local, size_t bytes);
  static mob_status_t append_put(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                                 Put* otherwise);
  // Implicit puts up to this size are copied: that is cheaper than to remember where they are.
  static constexpr size_t kMostCopied = 64;

  // Sends `bytes` bytes to the engine of a target (RemoteObjects) in the same message as the
  // operations recorded for it, behind them, and issues that message. False: nothing was sent;
  // recorded operations, if any, were issued.
  bool tell(mob_rank_t rank, const void* what, size_t bytes);

  // Orders operations recorded before this call before those recorded after it.
  void fence();

  // Issues the recorded operations for one target, or for all. Any thread; never waits.
  void issue(mob_rank_t rank);
  void issue_all() {
    if (any_recorded()) issue_recorded();
  }
  // The same before a fence that need not wait for answers where puts_surely() holds: packs the
  // puts that are short enough for that to pay.
  void issue_for_fence(mob_rank_t rank);
  // Whether all pending operations of the calling thread's context at a rank are packed puts into
  // allocations. Then only the rank's death can keep them from being carried out.
  bool puts_surely(mob_rank_t rank) const;
  // Whether anything may be recorded.
  bool any_recorded() const { return recorded_.load(std::memory_order_relaxed); }

  // While the calling process has an access epoch to a target open, transfers use the epoch's hint,
  // if there is one, and puts may be delayed to the end of the epoch. With Epoch::kSeen (shared
  // access) they are not delayed, because others may look for them before. Any thread; calls nest.
  enum class Epoch { kWaits, kSeen };
  void open_epoch(mob_rank_t rank, std::optional<schedule::Policy> hint,
                  Epoch epoch = Epoch::kWaits);
  void close_epoch(mob_rank_t rank, Epoch epoch = Epoch::kWaits);

  // The epoch's hint, the context's, the allocation's, or the job's policy, in this order.
  schedule::Policy policy_for(mob_rank_t rank, uint64_t remote) const;

  // message_bytes(): the most that a packed message to a target may hold. note(): adds to the
  // statistics a plan that another component has carried out.
  mob_status_t message_bytes(mob_rank_t rank, size_t* bytes);
  void note(mob_rank_t rank, size_t operations, const schedule::Plan& plan);
  // Adds to the timeline, if there is one, that a packed message was answered; also for such a
  // plan.
  void trace_answer(mob_rank_t rank, size_t operations, uint64_t begin, mob_status_t status) const;

  void alone_ended(mob_rank_t rank) override;
  void moved(mob_rank_t rank, size_t out, size_t in, uint64_t ns) override;

  // Sets the user's policy for an allocation, whose regions on other hosts are `ranges` (without a
  // policy: removes it). look_at_contexts(): the user has set the policy of a context (Completion).
  // Any thread.
  void set_hint(const void* allocation, std::vector<HintedRange> ranges,
                std::optional<schedule::Policy> policy);
  void look_at_contexts();

  // Ends all issued and recorded operations for a dead rank with MOB_ERR_PEER. Any thread.
  void give_up(mob_rank_t rank);

  // Ends recording, and prints the savings if MOBIUS_STATS asks for it.
  void close();

 private:
  struct Queue;
  struct Group;
  struct Flight;

  // Whether policy_for() may differ from the job's policy.
  bool has_hints() const {
    return hinted_epochs_.load(std::memory_order_relaxed) != 0 ||
           looks_at_contexts_.load(std::memory_order_relaxed) || hints_.any();
  }
  Queue* queue_of(mob_rank_t rank);
  Queue* find(mob_rank_t rank) const;
  mob_status_t make_queue(mob_rank_t rank);
  // `lasting`: where the user keeps the bytes unchanged until completion, or null.
  mob_status_t check_operand(const Operation& operation) const;
  mob_status_t drop_unreadable(Queue& queue);
  mob_status_t add(Queue& queue, schedule::Operation& operation, schedule::Policy policy,
                   bool is_urgent, const char* lasting = nullptr);
  bool is_plain(mob_rank_t rank, const void* remote, const void* local) const;
  bool takes_one_more(const Queue& queue, schedule::Policy policy) const;
  bool extend(Queue& queue, schedule::Kind kind, uint64_t remote, const char* local, size_t bytes);
  bool append(Queue& queue, schedule::Kind kind, uint64_t remote, const char* local, size_t bytes);
  static void note(Queue& queue, schedule::Kind kind, uint64_t remote, const char* local,
                   size_t bytes, bool copies);
  void open_append_run(Queue& queue, uint64_t remote);
  void end_append_runs();
  std::vector<Queue*> all_queues();
  bool takes(const Operation& operation) const;
  mob_status_t record(const Operation& operation);
  bool fetch(const Operation& operation, mob_status_t* status);
  mob_status_t get(const Operation& operation, Queue& queue, schedule::Operation& made,
                   schedule::Policy policy);
  mob_status_t fetch_now(const char* call, Queue& queue, schedule::Operation made,
                         schedule::Policy policy);
  mob_status_t begin_group(Queue& queue, bool is_awaited = false);
  void list(Queue& queue);
  std::string report() const;
  bool is_full(const Queue& queue, const schedule::Operation& operation) const;
  mob_status_t wait_for_room(Queue& queue);
  // Whether puts of the calling thread may be delayed to the end of an epoch. Only in one that it
  // has opened itself: other threads may wait for the arrival of their puts.
  bool may_wait_for_epoch(const Queue& queue) const;
  // A transfer to be started by remote memory access when no lock is held.
  struct Move {
    mob_transfer_t transfer;
    Pending* pending;
    int turn = 1;  // order of start among moves issued together
  };
  // `moves` receives transfers that later requests may overtake; null if none may.
  bool issue(Queue& queue, std::vector<Move>* moves = nullptr);
  bool issue(Queue& queue, const schedule::Costs& costs, std::vector<Move>* moves);
  static schedule::Costs costs_of(Queue& queue);
  void issue_recorded();
  static constexpr size_t kNoPlan = SIZE_MAX;
  bool issue_plan(Queue& queue, Group& group, const schedule::Costs& costs,
                  std::vector<Move>* moves, size_t* gone);
  void end_waiting(const Queue& queue, size_t gone, mob_status_t status);
  static void spare(Queue& queue, std::unique_ptr<Flight> flight);
  static bool add_move(std::vector<Move>& moves, const Move& move);
  void issue_pack(Queue& queue, Group& group, const schedule::Issue& issue);
  void issue_alone(Queue& queue, Group& group, const schedule::Issue& issue,
                   std::vector<Move>* moves);
  void expect_answer(Queue& queue, Flight& flight, const schedule::Issue& issue);
  void end_part(Group& group, mob_status_t status);
  void trace_issue(const Queue& queue, const schedule::Costs& costs, uint64_t begin,
                   bool moves) const;

  void answered(const mob_message_t& message, mob_delivery_t* delivery);
  void take_answer(mob_rank_t rank, uint64_t id, const unsigned char* data, size_t bytes,
                   mob_status_t status);

  const SchedulerServices services_;
  schedule::Policy policy_{};  // adaptive
  PolicyHints hints_;
  std::atomic<uint32_t> hinted_epochs_ = 0;  // open epochs with a hint, of all targets
  std::atomic<bool> looks_at_contexts_ = false;
  bool is_open_ = false;
  std::atomic<bool> recorded_ = false;
  std::atomic<uint32_t> issuing_ = 0;  // threads in issue_recorded()
  SparseArray<std::atomic<Queue*>> by_rank_;
  // Guards the members below. May be taken with a queue's lock held, never the other way around.
  std::mutex mutex_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<Queue*> filled_;  // may have recorded operations; each queue once
};

}  // namespace mobius::engine
