// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a process has while it takes part in a job, and the translation of remote addresses.

#include <mobius/memory.h>
#include <mobius/rma.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>

#include "engine/sync/access.h"
#include "engine/segment/chunk_table.h"
#include "engine/progress/completion.h"
#include "engine/progress/counters.h"
#include "engine/sync/lazy_lock.h"
#include "engine/progress/request_activity.h"
#include "engine/rma/delegation.h"
#include "engine/sync/epochs.h"
#include "engine/rma/exposures.h"
#include "engine/allocation/symmetric_heap.h"
#include "engine/segment/segment_layout.h"
#include "engine/segment/local_heap.h"
#include "engine/allocation/allocations.h"
#include "engine/message/message.h"
#include "engine/rma/remap_views.h"
#include "engine/sync/mutexes.h"
#include "engine/network/network.h"
#include "engine/sync/notifications.h"
#include "engine/request/batch_server.h"
#include "engine/progress/progress.h"
#include "engine/common/registry.h"
#include "engine/rma/remaps.h"
#include "engine/remote/remote_objects.h"
#include "engine/scheduler/scheduler.h"
#include "engine/request/am_rma.h"
#include "engine/segment/accumulate_locks.h"
#include "engine/segment/translation_cache.h"
#include "engine/team/team.h"
#include "engine/team/team_messages.h"
#include "engine/team/teams.h"
#include "engine/transfer/router.h"
#include "engine/segment/window.h"
#include "engine/progress/adaptive_yield.h"
#include "job/job.h"
#include "job/liveness.h"
#include "os/hybrid_lock.h"
#include "os/ticks.h"
#include "os/waiter.h"

namespace mobius::engine {

// What the ranks of a process have mapped of the host's segment, once for all of them: what they
// synchronise by has one address then, also for tools that look at one process.
struct Mappings {
  std::shared_ptr<Window> window;
  SegmentLayout host_memory;
  std::shared_ptr<NotificationMemory> notifications;
};

// For a rank that is a thread: what it shares with the others of its process.
struct ThreadSeat {
  int segment;
  job::ControlBlock* control;
  mob_rank_t rank;
  mob_rank_t size;
  Mappings* mappings;  // the first rank makes them
};

class Engine {
 public:
  Engine()
      : team_messages_(*this),
        teams_(*this),
        allocations_(*this),
        local_heap_(*this),
        counters_(*this),
        completion_(*this),
        router_(*this),
        exposures_(*this),
        delegation_(*this),
        remaps_(*this),
        remap_views_(*this),
        accumulate_locks_(*this),
        am_rma_(*this),
        messages_(*this),
        progress_(*this),
        network_(*this),
        remote_objects_(*this),
        scheduler_(*this),
        lazy_lock_(*this),
        batch_server_(*this) {}

  // Collective over the job. After an error the object is as before. `seat` is null in a rank that
  // is a process; that may join with the processes of a communicator of MPI.
  mob_status_t start(const char* const* environment, const ThreadSeat* seat,
                     const job::mpi::Communicator* communicator);
  // From now on others know that this process makes no collective calls any more.
  void end_calls();
  // `all_met`: every process of the job has come to its end, as far as is known here.
  void stop(bool all_met);

  mob_rank_t rank() const { return job_.rank(); }
  mob_rank_t size() const { return job_.size(); }
  job::HostGroup& host() { return job_.host(); }
  const job::HostGroup& host() const { return job_.host(); }
  job::Liveness& liveness() { return job_.host().liveness(); }
  const base::Settings& settings() const { return settings_; }
  Window& window() { return *window_; }
  ChunkTable& chunks() { return chunks_; }
  const ChunkTable& chunks() const { return chunks_; }
  Allocations& allocations() { return allocations_; }
  Registry<SymmetricHeap>& heaps() { return heaps_; }
  LocalHeap& local_heap() { return local_heap_; }
  Counters& counters() { return counters_; }
  Completion& completion() { return completion_; }
  Router& router() { return router_; }
  Exposures& exposures() { return exposures_; }
  Delegation& delegation() { return delegation_; }
  Remaps& remaps() { return remaps_; }
  RemapViews& remap_views() { return remap_views_; }
  AccumulateLocks& accumulate_locks() { return accumulate_locks_; }
  AmRma& am_rma() { return am_rma_; }
  Messages& messages() { return messages_; }
  Progress& progress() { return progress_; }
  RequestActivity& request_activity() { return request_activity_; }
  Network& network() { return network_; }
  RemoteObjects& remote_objects() { return remote_objects_; }
  TeamMessages& team_messages() { return team_messages_; }
  Scheduler& scheduler() { return scheduler_; }
  LazyLock& lazy_lock() { return lazy_lock_; }
  BatchServer& batch_server() { return batch_server_; }
  Teams& teams() { return teams_; }
  Registry<Access>& accesses() { return accesses_; }
  Registry<Mutexes>& mutexes() { return mutexes_; }
  Notifications& notifications() { return notifications_; }
  Registry<Epochs>& epochs() { return epochs_; }
  Team& world() { return teams_.world(); }
  ProcessBlock& process(mob_rank_t host_index) { return segment_layout_.process(host_index); }

  // A rank's number among the processes of this host; -1 if it is on another one.
  mob_rank_t host_index(mob_rank_t rank) const { return job_.index_here(rank); }
  bool is_here(mob_rank_t rank) const { return host_index(rank) >= 0; }
  const job::Job& job() const { return job_; }

  // What is known of a process, on whatever host: it ended without leaving; it has called
  // mob_finalize(); it has come to the end of that, where all wait for each other, or is through;
  // it is through with it; it died or is through.
  bool is_dead(mob_rank_t rank);
  bool is_ending(mob_rank_t rank);
  bool is_leaving(mob_rank_t rank);
  bool has_left(mob_rank_t rank);
  bool has_gone(mob_rank_t rank) { return is_dead(rank) || has_left(rank); }

  // The address of an offset of the window in a process of this host.
  uintptr_t address_in(mob_rank_t host_index, uint64_t offset) const {
    return window_->base_of(host_index) + offset;
  }
  void* local_address(uint64_t offset) const {
    return reinterpret_cast<void*>(window_->base() + offset);
  }
  // The offset in the window of an address in this process.
  uint64_t offset_of(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - window_->base();
  }

  // A pointer here to `bytes` bytes at `remote` in `rank` (0 <= rank < size()); null if that is on
  // another host, or if they do not lie in one part of it, or in one piece of memory that it moved
  // there. Also readies the inlined path for that part. Any thread.
  void* reach(mob_rank_t rank, const void* remote, size_t bytes) {
    Region part{};
    void* here = find_here(rank, reinterpret_cast<uintptr_t>(remote), bytes, &part);
    if (here == nullptr) [[unlikely]] {
      return remaps_.find(rank, reinterpret_cast<uintptr_t>(remote), bytes);
    }
    // A hook must see every operation, so that none may be inlined.
    if (window_->same_address() && !router_.hooked()) {
      target_remember(rank, TargetUse::kBytes, window_->base() + part.offset,
                      target_limits(part.bytes));
    }
    return here;
  }

  // As reach(), for who updates words by atomic instructions.
  void* reach_word(mob_rank_t rank, const void* remote, size_t bytes) {
    Region part{};
    void* here = find_here(rank, reinterpret_cast<uintptr_t>(remote), bytes, &part);
    if (here == nullptr) [[unlikely]] {
      return remaps_.find_word(rank, reinterpret_cast<uintptr_t>(remote), bytes);
    }
    const bool is_new = accumulate_locks_.admit_word(part.owner, reinterpret_cast<uintptr_t>(remote));
    if (window_->same_address() && !router_.hooked() &&
        (is_new || target_is_due(rank, TargetUse::kWords))) {
      const uint64_t offset = reinterpret_cast<uintptr_t>(here) - window_->base();
      const AccumulateLocks::Zone stretch = accumulate_locks_.admitted_around(part, offset);
      target_remember(rank, TargetUse::kWords, window_->base() + stretch.start,
                      target_limits(stretch.bytes));
    }
    return here;
  }

  // As reach(), for what lies in a part of the window and programs do not reach by inlined
  // operations.
  void* find_here(mob_rank_t rank, uintptr_t remote, size_t bytes) {
    Region part{};
    return find_here(rank, remote, bytes, &part);
  }

  // As reach(), for a pointer that the program keeps: what mob_lock() is given has to lie in the
  // window, and a view of moved memory ends when its owner withdraws it.
  void* pointer_to(mob_rank_t rank, const void* remote) {
    const auto address = reinterpret_cast<uintptr_t>(remote);
    void* here = find_here(rank, address, 0);
    return here != nullptr ? here : remaps_.find_in_window(rank, address, 0);
  }

  pid_t pid_of(mob_rank_t rank) const {
    return host().slot(host_index(rank)).pid.load(std::memory_order_relaxed);
  }
  // Whether that is its number here, too.
  bool knows_pid_of(mob_rank_t rank) const {
    return host().slot(host_index(rank)).start_time.load(std::memory_order_relaxed) != 0;
  }
  // Whether a rank is a thread of this process, or this process.
  bool is_same_process(mob_rank_t rank) const {
    return rank == this->rank() || (is_here(rank) && pid_of(rank) == pid_of(this->rank()) &&
                                    knows_pid_of(rank) && knows_pid_of(this->rank()));
  }

  // The error for what reach() refused. `call` names the public function in the text.
  [[gnu::cold]] mob_status_t explain_unreachable(const char* call, mob_rank_t rank,
                                                 const void* remote, size_t bytes) const;

  // Reserves, or gives back, pages of the window.
  mob_status_t reserve_memory(uint64_t offset, size_t bytes);
  void release_memory(uint64_t offset, size_t bytes);

  // What a team of `size` members shares, for teams.h: reserved by one, adopted by each.
  mob_status_t make_team_area(mob_rank_t size, uint64_t* offset);
  mob_status_t adopt_team(TeamMap map, mob_rank_t team_rank, uint64_t area_offset, uint64_t id,
                          std::unique_ptr<Team>* team, Series series = Series::kCalls);
  void release_team_area(uint64_t offset, mob_rank_t size);

  // Closes chunks of the window to this process. What the inlined path remembers of them, of any
  // rank that ever had them, goes too: it would hit closed memory when they are used again.
  void close_chunks(uint64_t offset, uint64_t chunks);

  // Waits until `done()`; another process that makes it so rings this one. Makes progress. What
  // `watch` (may be null) finds ends the wait. MOB_ERR_STATE in a handler, which may not wait.
  template <typename Done>
  mob_status_t wait_until(Done done, os::Watch* watch, os::Wakeup wakeup = os::Wakeup::kRung) {
    if (done()) return MOB_OK;
    if (in_handler) [[unlikely]] {
      return refuse_to_wait();
    }
    issue_recorded();
    if (comes_soon(done)) return MOB_OK;
    return wait_long(done, watch, wakeup);
  }

  // Wakes threads of a process that wait for what was changed; the second form after a full fence
  // or a sequentially consistent read-modify-write by this thread, or for os::Wakeup::kUnfenced.
  // The look is sequentially consistent, too, which costs nothing on x86: elsewhere another one
  // could be made before such an update is seen.
  void ring(mob_rank_t rank) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    ring_after_fence(rank);
  }
  void ring_after_fence(mob_rank_t rank) {
    if (!is_here(rank)) return;
    ring_after_fence(doorbell(rank));
  }
  static void ring_after_fence(ProcessBlock::Doorbell& target) {
    if (target.sleepers.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
      os::ring_sleepers(target.bell);
    }
  }
  // Of a process of this host.
  ProcessBlock::Doorbell& doorbell(mob_rank_t rank) { return process(host_index(rank)).doorbell; }

  // Operations that were only started, and wait for others to go with, go. Any thread; never waits.
  void issue_recorded() {
    scheduler_.issue_all();
    router_.issue_exposed();
  }

  // Completes the transfers of the calling thread's context at their targets, as a flush does, but
  // without a fence when none is under way.
  mob_status_t complete_transfers(const char* call) {
    if (Completion::none_under_way()) [[likely]] {
      return MOB_OK;
    }
    return completion_.flush(call, Completion::kAll, true);
  }

  // What the calling thread has started comes, at every target of another host, before what it says
  // next to that. Waits for nothing that goes the same way.
  mob_status_t order_transfers() {
    if (Completion::none_under_way()) [[likely]] {
      return MOB_OK;
    }
    return router_.fence();
  }

  // Does what others asked this process to do; whether there was anything. Any thread.
  bool poll() { return poll(true); }
  // The same but for what has arrived through the network, which the thread there sees without us,
  // and which costs a system call to look at.
  bool poll_at_leaving() { return poll(false); }

  // What a program that polls does mostly: the same with Progress::note_poll(), where nothing waits
  // to be issued or sent and nothing but messages of host-mates can have come. False if that is
  // not known, and nothing was done.
  bool poll_messages() {
    if (!gets_messages_only_ || router_.any_exposed() || messages_.has_queued()) [[unlikely]] {
      return false;
    }
    const uint32_t rings = messages_.rings();
    if (rings == 0) return true;
    progress_.note_poll();
    if (messages_.may_find_in(rings)) serve_messages();
    return true;
  }

  // Whether what other hosts ask for is served by nobody but threads that wait or poll.
  bool must_poll_for_others() const {
    return network_.is_open() && settings_.progress_mode() == base::ProgressMode::kPoll;
  }

  // Identifies the calling thread in locks of this process; not 0.
  static uint32_t thread_id() { return thread_number != 0 ? thread_number : number_thread(); }
  // The same, 0 if it never was asked for.
  static uint32_t known_thread_id() { return thread_number; }
  // Identifies the calling thread in locks that lie in shared memory.
  uint32_t lock_id() const {
    const uint32_t number = thread_id();
    const auto rank = static_cast<uint32_t>(job_.rank());
    return (rank + 1) << kThreadBits | ((number - 1) & ((1u << kThreadBits) - 1));
  }
  // The rank of the process of a lock_id().
  static mob_rank_t lock_owner(uint32_t id) {
    return static_cast<mob_rank_t>(id >> kThreadBits) - 1;
  }

 private:
  static constexpr unsigned kThreadBits = 18;

  // The number of the calling thread, plus 1; 0: none yet. Every lock looks at it.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local uint32_t thread_number;
  [[gnu::cold]] static uint32_t number_thread();

  // Also what is done for others only while a thread waits.
  os::Work poll_waiting() {
    const os::Work found = poll() ? os::Work::kSome : os::Work::kNone;
    const os::Work served = serve_desk();
    return served != os::Work::kNone ? served : found;
  }

  os::Work serve_desk() {
    if (!delegation_.is_there()) return os::Work::kNone;
    const os::Work served = delegation_.serve();
    if (served != os::Work::kNone) request_activity_.note();
    return served;
  }

  // Nothing in it is begun that cannot be tried again where memory is refused, and then the next
  // poll does: who waits, the library's threads, and destructors call this.
  bool poll(bool network) {
    try {
      return look_for_work(network);
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  bool look_for_work(bool network) {
    bool found = router_.poll();
    if (messages_.serve(network)) {
      found = true;
      note_handlers();
    }
    // After the messages, which may have brought what claims wait for.
    if (own_->doorbell.claims.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      if (remote_objects_.locks().look()) found = true;
    }
    return found;
  }

  // Handlers may have run.
  void note_handlers() {
    if (delegation_.is_there()) delegation_.forget_memory();
  }

  // As poll() with what can have come.
  void serve_messages() {
    try {
      if (messages_.serve_by_turns(false)) note_handlers();
    } catch (const std::bad_alloc&) {
      return;
    }
  }

  // Whether anybody may ask for something that a thread which waits has to look for.
  bool is_asked() const { return messages_.in_use() || delegation_.is_there(); }

  // Whether a wait looks for that from its start: a host-mate asked lately, or nobody else would
  // look, or send what is to be sent.
  bool looks_at_once() {
    if (progress_.rests() || messages_.has_queued() || network_.has_unsettled()) return true;
    if (delegation_.take_missed()) request_activity_.note();
    return request_activity_.is_recent();
  }

  // A look for what others ask, and what it takes to begin and end looking, cost a good part of a
  // cache line's way between two processors: where there is nothing to look for, or nobody has
  // asked for anything lately, what is awaited is looked at alone for as long as a few of those.
  template <typename Done>
  bool comes_soon(Done& done) {
    if ((is_asked() && looks_at_once()) || router_.hooked() ||
        router_.timeline() != nullptr || job_.host().policy().spin_ns == 0) {
      return false;
    }
    // What may come from another host is looked for among what has come, under locks: so many of
    // those looks would take as long as a message does.
    const bool is_timed = network_.is_open();
    const uint64_t start = is_timed ? os::ticks() : 0;
    for (uint32_t look = 0; look < kFirstLooks; ++look) {
      if (done()) return true;
      if (is_timed && look % 8 == 7 && os::ticks() - start > kFirstTicks) break;
    }
    return false;
  }
  static constexpr uint32_t kFirstLooks = 256;
  static constexpr uint64_t kFirstTicks = 1000;  // some 0.3 µs

  // The part of wait_until() that polls and sleeps; apart, so that callers stay small.
  template <typename Done>
  [[gnu::noinline]] mob_status_t wait_long(Done& done, os::Watch* watch, os::Wakeup wakeup) {
    const PollingScope scope(*this);
    const TraceScope trace(router_.timeline(), "waiting");
    ProcessBlock::Doorbell& own = own_->doorbell;
    uint32_t looks = 0;
    return os::wait_until(
        done, own.bell, own.sleepers, job_.host().policy(), watch,
        [this, &own, &looks] {
          if (network_.is_open() && ++looks >= adaptive_yield_.looks()) {
            looks = 0;
            adaptive_yield_.offer();
          }
          // Before it sleeps, a thread that has polled the network wakes the one that did not.
          if (network_.is_open() && own.sleepers.load(std::memory_order_relaxed) != 0) {
            network_.unpark();
          }
          // What another thread has recorded since may be part of what this one waits for.
          issue_recorded();
          return poll_waiting();
        },
        wakeup);
  }

  // While a thread waits, it is the one that polls (progress.h).
  class PollingScope {
   public:
    explicit PollingScope(Engine& engine)
        : engine_(engine), counted_(engine.is_asked()), stay_(engine.delegation_) {
      if (!counted_) return;
      engine_.progress_.join();
    }
    ~PollingScope() {
      if (counted_) {
        engine_.progress_.leave();
        engine_.request_activity_.note_wait();
      }
      engine_.serve_desk();  // who saw us wait has not lost the time
      // What may remain after one more poll is not for this thread to do.
      if (engine_.poll_at_leaving()) Progress::wake(engine_.own_->doorbell);
      if (engine_.network_.is_open()) engine_.network_.leave();
    }
    PollingScope(const PollingScope&) = delete;
    PollingScope& operator=(const PollingScope&) = delete;

   private:
    Engine& engine_;
    const bool counted_;
    const Delegation::Stay stay_;
  };

  void* find_here(mob_rank_t rank, uintptr_t remote, size_t bytes, Region* part) {
    const mob_rank_t index = host_index(rank);
    if (index < 0) return nullptr;
    const uint64_t offset = remote - window_->base_of(index);
    if (!chunks_.find(offset, part) || part->owner != index) return nullptr;
    const uint64_t within = offset - part->offset;
    if (within > part->bytes || bytes > part->bytes - within) return nullptr;
    if (!window_->is_open(*part) && window_->open_region(*part) != MOB_OK) [[unlikely]] {
      return nullptr;
    }
    return reinterpret_cast<void*>(window_->base() + offset);
  }

  [[gnu::cold]] static mob_status_t refuse_to_wait();

  void apply_copy_settings() const;
  mob_status_t open(const ThreadSeat* seat);
  mob_status_t open_memory(const ThreadSeat* seat, Mappings& mappings);
  void open_parts(const Mappings& mappings);
  mob_status_t open_network();
  void await_others();
  void close();

  base::Settings settings_;
  job::Job job_;
  std::shared_ptr<Window> window_;
  SegmentLayout segment_layout_;
  ProcessBlock* own_ = nullptr;
  bool gets_messages_only_ = false;  // no other host, no hook: see poll_messages()
  ChunkTable chunks_;
  TeamMessages team_messages_;  // outlives the teams: those that are not freed tell it of their end, too
  Teams teams_;
  Allocations allocations_;
  Registry<SymmetricHeap> heaps_;
  LocalHeap local_heap_;
  Counters counters_;
  Completion completion_;
  Router router_;
  Exposures exposures_;
  Delegation delegation_;
  Remaps remaps_;
  RemapViews remap_views_;
  AccumulateLocks accumulate_locks_;
  AmRma am_rma_;
  Messages messages_;
  Progress progress_;
  RequestActivity request_activity_;
  Network network_;
  AdaptiveYield adaptive_yield_;
  RemoteObjects remote_objects_;
  Scheduler scheduler_;
  LazyLock lazy_lock_;
  BatchServer batch_server_;
  Registry<Access> accesses_;
  Registry<Mutexes> mutexes_;
  Notifications notifications_;
  Registry<Epochs> epochs_;
};

enum class State : int { kBefore, kLive, kAfter, kForked };

// The state of this rank, and its engine while kLive. A rank is a process, or a thread that took a
// seat and what it started by way of enter().
State state();

// The rank that this process is. Never destroyed: a process that ends without mob_finalize() has
// threads that use it.
union ProcessEngine {
  constexpr ProcessEngine() noexcept : kept() {}
  ~ProcessEngine() {}  // NOLINT(modernize-use-equals-default): the default one is deleted
  ProcessEngine(const ProcessEngine&) = delete;
  ProcessEngine& operator=(const ProcessEngine&) = delete;

  std::unique_ptr<Engine> kept;
};
extern constinit ProcessEngine process_engine;
// The rank that the calling thread is, or acts for; null if that is the process.
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

// Makes the calling thread a rank of its own; before engine_start().
void take_seat(const ThreadSeat* seat);
// Lets the calling thread, which some rank's engine started, act for that rank.
void enter(Engine* engine);
// Lets the calling thread, which is no rank, act for one that is a thread; < 0: for none.
mob_status_t act_for(mob_rank_t rank);

}  // namespace mobius::engine
