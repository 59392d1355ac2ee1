// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Records what may be delayed of the operations on other hosts' memory, and issues it by a plan
// (schedule/plan.h): in another order, merged, many in one message that has one answer.
//
// Recorded is what is small, or only started. It is issued
//
// - when any thread of the process waits in the library or calls mob_poll(): a flush, a lock, a
//   blocking get, the end of an epoch;
// - when its target's queue is full;
// - before anything that goes to the same target without being recorded, so that the order in which
//   a target is asked stays that of the calls;
// - if the call that recorded it has no "nb" in its name, as soon as no other message of this queue
//   is under way to the target: at once on a quiet link, else with the next answer.
//
// Issuing never waits. Each queue is used under its lock, which covers issuing, too: what is issued
// later comes later to the target. Who records waits, for flow control, with no lock held.

#include <mobius/job.h>
#include <mobius/message.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

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

  // Nothing to do on one host. Before anything is recorded or can arrive.
  mob_status_t open();

  // Whether a checked operation on another host's memory is one to be recorded; then record() it,
  // which waits for a blocking get.
  bool takes(const Operation& operation) const;
  mob_status_t record(const Operation& operation);

  // Does one that fetches a short stretch and is waited for, without recording it: it goes at once,
  // behind what is recorded. False if that is not how it goes.
  bool fetch(const Operation& operation, mob_status_t* status);

  // Records a put of at most kMostKept bytes to another host, without a description; it is locally
  // complete with that, and an urgent one goes without a flush. False if that is not how it goes;
  // Router::run() knows why.
  bool put(mob_rank_t rank, void* remote, const void* local, size_t bytes, bool is_urgent,
           mob_status_t* status);
  static constexpr size_t kMostKept = 1024;
  // The same for a get that is waited for.
  bool get(const char* call, mob_rank_t rank, const void* remote, void* local, size_t bytes,
           mob_status_t* status);

  // Records a put or get that is only started behind others of its target, and has looked at all
  // there is to look at. False if there are none, or it is not recorded so; put() and record() know
  // why.
  bool one_more(schedule::Kind kind, mob_rank_t rank, void* remote, const void* local,
                size_t bytes);
  // The same of a put that follows another one of the thread to the target, which is all there is
  // to look at; `otherwise` is called for any other. Tried before one_more().
  using Put = mob_status_t(mob_rank_t rank, void* remote, const void* local, size_t bytes);
  static mob_status_t put_another(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                                  Put* otherwise);
  // Puts up to so long that are only started are copied: that is cheaper than to remember where
  // they are.
  static constexpr size_t kMostCopied = 64;

  // Has the engine of a target hear `bytes` bytes (Remote) behind what is recorded for it, in the
  // same message, which goes now. False if nothing is, or what is goes alone.
  bool tell(mob_rank_t rank, const void* what, size_t bytes);

  // What was recorded before comes before what is recorded from now on.
  void fence();

  // Issues what is recorded: for one target, or all. Any thread; never waits.
  void issue(mob_rank_t rank);
  void issue_all() {
    if (any_recorded()) issue_recorded();
  }
  // The same before a fence that waits for no answers where puts_surely(): what is short enough to
  // gain by that is packed.
  void issue_for_fence(mob_rank_t rank);
  // Whether all that the calling thread's context has under way to a rank is packed messages that
  // only put into allocations, so that nothing but the end of that rank keeps them from being done.
  bool puts_surely(mob_rank_t rank) const;
  // Whether anything may be.
  bool any_recorded() const { return recorded_.load(std::memory_order_relaxed); }

  // While the calling process has an access epoch to a target open, what is transferred goes as the
  // hint says, if there is one; and what is put there need not be there before the epoch's end,
  // unless others may look for it before (Epoch::kSeen: shared access). Any thread; calls nest.
  enum class Epoch { kWaits, kSeen };
  void open_epoch(mob_rank_t rank, std::optional<schedule::Policy> hint,
                  Epoch epoch = Epoch::kWaits);
  void close_epoch(mob_rank_t rank, Epoch epoch = Epoch::kWaits);

  // The epoch's hint, the context's, the allocation's, or the job's policy.
  schedule::Policy policy_for(mob_rank_t rank, uint64_t remote) const;

  // Most that a packed message to a target may hold; and the statistics of one that others sent.
  mob_status_t message_bytes(mob_rank_t rank, size_t* bytes);
  void note(mob_rank_t rank, size_t operations, const schedule::Plan& plan);
  // In the timeline, if there is one: a packed message was answered, also such a one.
  void trace_answer(mob_rank_t rank, size_t operations, uint64_t begin, mob_status_t status) const;

  void alone_ended(mob_rank_t rank) override;
  void moved(mob_rank_t rank, size_t out, size_t in, uint64_t ns) override;

  // What the user says of an allocation, whose parts on other hosts are `ranges` (without a policy:
  // nothing any more); and that the user says something of a context (Completion). Any thread.
  void set_hint(const void* allocation, std::vector<HintedRange> ranges,
                std::optional<schedule::Policy> policy);
  void look_at_contexts();

  // Ends what was issued or recorded for a rank that died, with MOB_ERR_PEER. Any thread.
  void give_up(mob_rank_t rank);

  // Nothing is recorded any more: says what was saved, where MOBIUS_STATS asks for it.
  void close();

 private:
  struct Queue;
  struct Group;
  struct Flight;

  // Whether policy_for() may be another than the job's.
  bool has_hints() const {
    return hinted_epochs_.load(std::memory_order_relaxed) != 0 ||
           looks_at_contexts_.load(std::memory_order_relaxed) || hints_.any();
  }
  Queue* queue_of(mob_rank_t rank);
  Queue* find(mob_rank_t rank) const;
  mob_status_t make_queue(mob_rank_t rank);
  // `lasting`: where the user keeps its bytes as they are until it is complete, or null.
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
  mob_status_t get(const Operation& operation, Queue& queue, schedule::Operation& made,
                   schedule::Policy policy);
  mob_status_t fetch_now(const char* call, Queue& queue, schedule::Operation made,
                         schedule::Policy policy);
  mob_status_t begin_group(Queue& queue, bool is_awaited = false);
  void list(Queue& queue);
  std::string report() const;
  bool is_full(const Queue& queue, const schedule::Operation& operation) const;
  mob_status_t wait_for_room(Queue& queue);
  // Whether what the calling thread puts there may wait for the end of an epoch: one that it has
  // opened, as others may wait for what is put meanwhile.
  bool may_wait_for_epoch(const Queue& queue) const;
  // What is to be moved by remote memory access, once no lock is held.
  struct Move {
    mob_transfer_t transfer;
    Pending* pending;
    int turn = 1;  // in which those that are issued together start
  };
  // `moves`: of what later requests may overtake; null where the next one has to come after all.
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
  std::atomic<uint32_t> hinted_epochs_ = 0;  // open, of all targets
  std::atomic<bool> looks_at_contexts_ = false;
  bool is_open_ = false;
  std::atomic<bool> recorded_ = false;
  std::atomic<uint32_t> issuing_ = 0;  // threads in issue_recorded()
  std::unique_ptr<std::atomic<Queue*>[]> by_rank_;
  // Guards what follows. May be taken with a queue's lock held, never the other way around.
  std::mutex mutex_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<Queue*> filled_;  // may have something recorded; each once
};

}  // namespace mobius::engine
