// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// All components of one rank while it takes part in a job, and the translation of remote addresses.

#include <mobius/memory.h>
#include <mobius/rma.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "engine/allocation/allocations.h"
#include "engine/allocation/symmetric_heap.h"
#include "engine/collective/inter_host.h"
#include "engine/common/instrumentation.h"
#include "engine/common/peers.h"
#include "engine/common/registry.h"
#include "engine/dynamic/bridges.h"
#include "engine/message/message.h"
#include "engine/network/network.h"
#include "engine/progress/completion.h"
#include "engine/progress/counters.h"
#include "engine/progress/progress.h"
#include "engine/progress/request_activity.h"
#include "engine/remote/remote_objects.h"
#include "engine/request/am_rma.h"
#include "engine/request/batch_server.h"
#include "engine/request/rkeys.h"
#include "engine/rma/delegation.h"
#include "engine/rma/exposed/exposed_batch.h"
#include "engine/rma/exposed/exposed_path.h"
#include "engine/rma/exposed/exposures.h"
#include "engine/rma/exposed/remap_views.h"
#include "engine/rma/exposed/remaps.h"
#include "engine/rma/local_execute.h"
#include "engine/scheduler/scheduler.h"
#include "engine/segment/kernel_copy.h"
#include "engine/segment/locks/accumulate_locks.h"
#include "engine/segment/segment.h"
#include "engine/segment/segment_layout.h"
#include "engine/segment/window/chunk_table.h"
#include "engine/segment/window/local_heap.h"
#include "engine/segment/window/translation_cache.h"
#include "engine/segment/window/window.h"
#include "engine/sync/access.h"
#include "engine/sync/epochs.h"
#include "engine/sync/lazy_lock.h"
#include "engine/sync/mutexes.h"
#include "engine/sync/notifications.h"
#include "engine/team/team.h"
#include "engine/team/team_messages.h"
#include "engine/team/teams.h"
#include "engine/transfer/router.h"
#include "engine/wait_loop.h"
#include "job/job.h"
#include "job/liveness.h"
#include "os/cpu/ticks.h"
#include "os/sync/hybrid_lock.h"
#include "os/sync/waiter.h"

namespace mobius::engine {

// The mappings of the host's segment in this process, shared by all its ranks. Each shared word
// then has one address in the process, which tools that check a single process need.
struct Mappings {
  std::shared_ptr<Window> window;
  SegmentLayout layout;
  std::shared_ptr<NotificationMemory> notifications;
};

// Resources that a rank which is a thread shares with the other ranks of its process.
struct ThreadSeat {
  int segment;
  job::ControlBlock* control;
  mob_rank_t rank;
  mob_rank_t size;
  Mappings* mappings;  // the first rank makes them
};

// The addresses of a process' window.
struct WindowPlace {
  uint64_t base;
  uint64_t bytes;
};

class Engine {
 public:
  Engine()
      : team_backends_(team_services_),
        teams_(team_services_, team_backends_),
        bridges_(team_services_, teams_),
        allocations_({peers_, segment_, completion_, messages_, rkeys_, scheduler_, teams_}),
        local_heap_(segment_),
        counters_(segment_, waiter_),
        completion_(peers_, waiter_, counters_, dependents_),
        completion_signals_(segment_, waiter_, counters_, exposures_),
        local_executor_(segment_, completion_signals_),
        exposures_(segment_, local_heap_, delegation_, remaps_, am_rma_, network_, progress_),
        delegation_(segment_, local_heap_, local_executor_),
        remaps_(segment_, local_heap_, remap_views_, instrumentation_),
        remap_views_(segment_, kernel_copy_),
        exposed_path_(segment_, kernel_copy_, exposures_, delegation_, completion_signals_,
                      am_rma_),
        exposed_batch_(completion_, exposed_path_),
        router_({segment_, kernel_copy_, completion_, progress_, completion_signals_, exposures_,
                 delegation_, local_executor_, exposed_path_, exposed_batch_, lazy_lock_, am_rma_,
                 scheduler_},
                instrumentation_),
        am_rma_(request_services_),
        messages_({peers_, segment_, waiter_, completion_, counters_, progress_, network_,
                   kernel_copy_, instrumentation_, request_activity_, messages_}),
        progress_(waiter_, network_, threads_),
        network_(settings_, peers_, waiter_, progress_, threads_),
        rkeys_(peers_, waiter_, messages_, network_.endpoint()),
        remote_objects_(
            {peers_, segment_, waiter_, counters_, messages_, scheduler_, batch_server_}),
        scheduler_({settings_, peers_, segment_, waiter_, completion_, progress_, network_,
                    messages_, instrumentation_, am_rma_, lazy_lock_, allocations_}),
        lazy_lock_(sync_services_),
        batch_server_(request_services_, am_rma_, remote_objects_),
        notifications_(sync_services_) {}

  // Collective over the job. After an error the object is as before. `seat` is null in a rank that
  // is a process. Such a rank may join with the processes of an MPI communicator.
  mob_status_t start(const char* const* environment, const ThreadSeat* seat,
                     const job::mpi::Communicator* communicator);
  // In place of end_calls(), start_leaving() and stop(): the job ends, too, where others may wait
  // for this process.
  void abandon();
  // What an engine needs that joins another job, as a guest (guests.h).
  struct GuestSeat {
    const std::vector<mob_rank_t>* public_numbers;
    std::function<mob_status_t(const Bridge&)> made;  // completes the numbers
    Engine* home;                                     // of the process' own job
    // Of the job that has admitted the process …
    int segment = -1;
    mob_rank_t number = 0;
    bool pid_is_shared = false;
    // … or of a meeting, in which the team that accepts has the first ranks.
    job::MeetingSeat* meeting = nullptr;
    mob_rank_t parents = 0;
  };
  // As start(); collective over the processes that join together.
  mob_status_t start_as_guest(const GuestSeat& seat);
  // Where a process of this engine's job has its window. In a meeting also of other hosts.
  mob_status_t find_window(mob_rank_t rank, WindowPlace* place);
  // From now on the other processes know that this one makes no more collective calls.
  void end_calls();
  // From now on the other processes know that this one uses no memory of theirs any more.
  void start_leaving();
  // Waits until they do so, too, and leaves the job. `all_met` says whether every process of the
  // job is known here to have come to its end.
  void stop(bool all_met);

  const base::Settings& settings() const { return settings_; }
  Peers& peers() { return peers_; }
  Segment& segment() { return segment_; }
  WaitLoop& waiter() { return waiter_; }
  Allocations& allocations() { return allocations_; }
  Registry<SymmetricHeap>& heaps() { return heaps_; }
  LocalHeap& local_heap() { return local_heap_; }
  Counters& counters() { return counters_; }
  // In the engine of a guest: has processes of the other job count the program's counters, which
  // they cannot reach, by requests. The program has one.
  mob_status_t serve_counters() { return am_rma_.require(); }
  Completion& completion() { return completion_; }
  const Instrumentation& instrumentation() const { return instrumentation_; }
  Router& router() { return router_; }
  Exposures& exposures() { return exposures_; }
  Delegation& delegation() { return delegation_; }
  Remaps& remaps() { return remaps_; }
  Messages& messages() { return messages_; }
  Progress& progress() { return progress_; }
  Network& network() { return network_; }
  Scheduler& scheduler() { return scheduler_; }
  // For objects of sync/ that the program creates.
  const SyncServices& sync_services() const { return sync_services_; }
  Teams& teams() { return teams_; }
  Bridges& bridges() { return bridges_; }
  Registry<Access>& accesses() { return accesses_; }
  Registry<Mutexes>& mutexes() { return mutexes_; }
  Notifications& notifications() { return notifications_; }
  Registry<Epochs>& epochs() { return epochs_; }

 private:
  // Issues what the program started before a message, so that it goes first.
  class OperationsFirst final : public SendGate {
   public:
    explicit OperationsFirst(Engine& engine) : engine_(engine) {}
    const std::atomic<bool>& puts_wait() const override {
      return engine_.exposed_batch_.any_flag();
    }
    void issue_puts() override { engine_.exposed_batch_.issue(); }
    void issue_to(const char* call, mob_rank_t rank) override;

   private:
    Engine& engine_;
  };

  // Tells Peers what components below it know.
  class Reports final : public PeerReports {
   public:
    explicit Reports(Engine& engine) : engine_(engine) {}
    bool has_lost(mob_rank_t rank) override { return engine_.network_.is_dead(rank); }
    void watch(mob_rank_t rank) override { engine_.network_.watch(rank); }
    void watch_more() override { engine_.network_.watch_more(); }
    std::string fate(mob_rank_t rank) override { return engine_.network_.fate(rank); }
    bool is_ending(mob_rank_t rank) override;
    bool is_at_end(mob_rank_t rank) override {
      return engine_.peers_.is_here(rank) ? is_ending(rank)
                                          : engine_.remote_objects_.is_at_end(rank);
    }

   private:
    Engine& engine_;
  };

  // Completion asks here for work that its transfers depend on, and reports here a rank that is
  // given up.
  class Dependents final : public TransferDependents {
   public:
    explicit Dependents(Engine& engine) : engine_(engine) {}
    mob_status_t before_flush(const char* call, mob_rank_t target) override {
      return engine_.lazy_lock_.complete(call, target);
    }
    void context_changed() override;
    void give_up(mob_rank_t rank) override;

   private:
    Engine& engine_;
  };

  // Lets threads of the library act for this rank.
  class Threads final : public ThreadEntry {
   public:
    explicit Threads(Engine& engine) : engine_(engine) {}
    void enter() override;

   private:
    Engine& engine_;
  };

  void apply_copy_settings() const;
  mob_status_t open(const ThreadSeat* seat, const GuestSeat* guest = nullptr);
  mob_status_t share_with(Engine& home);
  mob_status_t open_memory(const ThreadSeat* seat, Mappings& mappings);
  void open_parts(const Mappings& mappings);
  mob_status_t open_network();
  mob_status_t publish_window();
  void await_others();
  void await_connected();
  void give_memory_back();
  void close();

  base::Settings settings_;
  Reports reports_{*this};
  Dependents dependents_{*this};
  Threads threads_{*this};
  Instrumentation instrumentation_;
  Peers peers_{reports_};
  KernelCopy kernel_copy_{peers_};
  Segment segment_{peers_, remaps_};
  WaitLoop waiter_{peers_,
                   segment_,
                   {instrumentation_, exposed_batch_, router_, messages_, delegation_,
                    remote_objects_, scheduler_, network_, progress_, request_activity_}};
  // Declared before the teams, so that it outlives them: a team that was not freed uses it in its
  // destructor.
  TeamMessages team_messages_{messages_};
  TeamServices team_services_{settings_,    instrumentation_, peers_,          segment_,
                              kernel_copy_, waiter_,          completion_,     network_,
                              scheduler_,   router_,          remote_objects_, team_messages_};
  InterHostBackends team_backends_;
  Teams teams_;
  Bridges bridges_;
  Allocations allocations_;
  Registry<SymmetricHeap> heaps_;
  LocalHeap local_heap_;
  Counters counters_;
  Completion completion_;
  CompletionSignals completion_signals_;
  LocalExecutor local_executor_;
  Exposures exposures_;
  Delegation delegation_;
  Remaps remaps_;
  RemapViews remap_views_;
  ExposedPath exposed_path_;
  ExposedBatch exposed_batch_;
  Router router_;
  const RequestServices request_services_{
      peers_,    segment_,         local_heap_, waiter_,         completion_, progress_, network_,
      messages_, instrumentation_, exposures_,  local_executor_, rkeys_,      scheduler_};
  AmRma am_rma_;
  Messages messages_;
  Progress progress_;
  RequestActivity request_activity_;
  Network network_;
  Rkeys rkeys_;
  RemoteObjects remote_objects_;
  Scheduler scheduler_;
  SyncServices sync_services_{settings_,   instrumentation_, peers_,      segment_, waiter_,
                              completion_, network_,         delegation_, am_rma_,  scheduler_,
                              router_,     remote_objects_,  lazy_lock_};
  LazyLock lazy_lock_;
  BatchServer batch_server_;
  OperationsFirst send_gate_{*this};
  Registry<Access> accesses_;
  Registry<Mutexes> mutexes_;
  Notifications notifications_;
  Registry<Epochs> epochs_;
};

enum class State : int { kBefore, kLive, kAfter, kForked };

// The state of the calling thread's rank; its engine exists while that is kLive. A rank is a
// process, or a thread that took a seat, with the threads that it brought in by enter().
State state();

// The rank of this process. Never destroyed: if the process ends without mob_finalize(), its
// threads still use it.
union ProcessEngine {
  constexpr ProcessEngine() noexcept : kept() {}
  ~ProcessEngine() {}  // NOLINT(modernize-use-equals-default): the default one is deleted
  ProcessEngine(const ProcessEngine&) = delete;
  ProcessEngine& operator=(const ProcessEngine&) = delete;

  std::unique_ptr<Engine> kept;
};
extern constinit ProcessEngine process_engine;
// The rank that the calling thread is or acts for; null if that is the process.
extern constinit thread_local Engine* thread_engine [[gnu::tls_model("initial-exec")]];

inline Engine& engine() {
  Engine* const own = thread_engine;
  if (own != nullptr) [[unlikely]] {
    return *own;
  }
  return *process_engine.kept;
}

mob_status_t engine_start(const job::mpi::Communicator* communicator = nullptr);
mob_status_t engine_stop();

// Completes every message of every process of the engine's world. Collective over them, once, at
// its end. False if the death of a process ended it early.
bool quiesce(Engine& stopping);

// Numbers of processes that were spawned since are valid in this process from now on. Any thread.
void learn_numbers();

// Makes the calling thread a rank of its own. Call it before engine_start().
void take_seat(const ThreadSeat* seat);
// Lets the calling thread, which an engine started, act for that engine's rank.
void enter(Engine* engine);
// Lets the calling thread, which is no rank, act for a rank that is a thread; < 0: for none.
mob_status_t act_for(mob_rank_t rank);

}  // namespace mobius::engine
