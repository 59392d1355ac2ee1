// SPDX-License-Identifier: BSD-3-Clause
// The rank that a thread acts for: the process, a rank that is a thread, or the rank that it named.

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/engine.h"
#include "engine/guests.h"

int32_t mob_size_ = 0;
int32_t mob_settled_size_ = 0;
int32_t mob_idle_size_ = 0;

namespace mobius::engine {

constinit thread_local Engine* thread_engine = nullptr;
constinit ProcessEngine process_engine;

namespace {

std::atomic<State> process_state = State::kBefore;

struct ThreadRank {
  ThreadRank() = default;
  ~ThreadRank();
  ThreadRank(const ThreadRank&) = delete;
  ThreadRank& operator=(const ThreadRank&) = delete;

  const ThreadSeat* seat = nullptr;
  std::unique_ptr<Engine> engine;
  State state = State::kBefore;
  // Guarded by live_mutex.
  ThreadRank* next = nullptr;  // in the list of live ranks
  int helpers = 0;             // number of threads that act for it
};
thread_local ThreadRank thread_rank;

// The live ranks of this process, and the lock that guards them and changes of mob_size_.
std::mutex live_mutex;
int live_ranks = 0;
ThreadRank* live_threads = nullptr;

// The caller holds live_mutex.
void take_off(const ThreadRank& rank) {
  for (ThreadRank** link = &live_threads; *link != nullptr; link = &(*link)->next) {
    if (*link != &rank) continue;
    *link = rank.next;
    return;
  }
}

// For a rank that ends without mob_finalize(). In a child of fork() the engine is null, because the
// lock may be held for ever there.
ThreadRank::~ThreadRank() {
  if (engine == nullptr) return;
  const std::lock_guard lock(live_mutex);
  take_off(*this);
}

// The rank for which a thread acts that is no rank itself, until the thread ends.
class Helper {
 public:
  ~Helper() { leave(); }
  Helper() = default;
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  bool helps() const { return helped_ != nullptr; }
  bool join(mob_rank_t rank) {
    const std::lock_guard lock(live_mutex);
    for (ThreadRank* found = live_threads; found != nullptr; found = found->next) {
      if (found->engine->peers().rank() != rank) continue;
      ++found->helpers;
      helped_ = found;
      thread_engine = found->engine.get();
      return true;
    }
    return false;
  }
  void leave() {
    if (helped_ == nullptr) return;
    thread_engine = nullptr;
    context_in_use = 0;  // it was a context of that rank
    const std::lock_guard lock(live_mutex);
    --helped_->helpers;
    helped_ = nullptr;
  }
  void forget() { helped_ = nullptr; }

 private:
  ThreadRank* helped_ = nullptr;
};
thread_local Helper helper;

// Removes the calling rank from the list. Fails while other threads act for it.
mob_status_t withdraw_rank() {
  const std::lock_guard lock(live_mutex);
  if (thread_rank.helpers > 0) {
    return base::fail(MOB_ERR_STATE,
                      "mob_finalize: %d other threads act for rank %d; each must have ended, or "
                      "called mob_threads_act_for(-1), before",
                      thread_rank.helpers, thread_engine->peers().rank());
  }
  take_off(thread_rank);
  return MOB_OK;
}

void set_size(mob_rank_t size) {
  __atomic_store_n(&mob_size_, size, __ATOMIC_RELAXED);
  Completion::publish_idle();
}

// Called in a child of fork(). The child has the parent's sockets and its place in shared memory,
// but none of its threads, and other processes would take its actions for the parent's. Takes no
// lock and frees nothing, because other threads may have been in the middle of an operation.
void leave_as_child() {
  const mob_rank_t size = mob_size_;
  if (size == 0) return;
  mob_size_ = 0;
  mob_settled_size_ = 0;
  mob_idle_size_ = 0;
  target_forget_in_child(size);
  forget_guests();
  thread_engine = nullptr;
  if (thread_rank.seat != nullptr) {
    static_cast<void>(thread_rank.engine.release());
    thread_rank.state = State::kForked;
  }
  helper.forget();
  live_threads = nullptr;
  process_state.store(State::kForked, std::memory_order_relaxed);
}

}  // namespace

// Completes every message of every process, including those that handlers send. Collective over the
// job, once, at its end. False if the death of a process ended it early.
//
// Handlers also send messages, so this takes rounds. In each round every process completes its
// messages, and then all exchange the numbers of messages sent so far. If no process sent any since
// the previous round, no message is under way: a handler that still ran would have been started by
// a message that its sender counted after it had begun to complete its messages.
bool quiesce(Engine& stopping) {
  std::unique_ptr<Team> all;
  if (stopping.teams().open_end(&all) != MOB_OK) return false;
  std::vector<uint64_t> before(static_cast<size_t>(stopping.peers().size()));
  std::vector<uint64_t> now;
  while (true) {
    static_cast<void>(stopping.messages().flush_all(Whose::kEveryones));
    if (all->barrier() != MOB_OK || all->exchange(stopping.messages().sent(), &now) != MOB_OK) {
      return false;
    }
    if (now == before) return true;
    before.swap(now);
  }
}

State state() {
  if (thread_engine != nullptr) return State::kLive;
  return thread_rank.seat != nullptr ? thread_rank.state
                                     : process_state.load(std::memory_order_relaxed);
}

void take_seat(const ThreadSeat* seat) {
  thread_rank.seat = seat;
  thread_rank.state = State::kBefore;
}

void enter(Engine* engine) { thread_engine = engine; }

mob_status_t act_for(mob_rank_t rank) {
  constexpr const char* kCall = "mob_threads_act_for";
  if (thread_engine != nullptr && !helper.helps()) {
    return base::fail(MOB_ERR_STATE, "%s: called by a thread that is a rank, or the library's",
                      kCall);
  }
  helper.leave();
  if (rank < 0 || helper.join(rank)) return MOB_OK;
  return base::fail(MOB_ERR_RANK,
                    "%s: rank %d is no thread of this process between mob_init() and "
                    "mob_finalize()",
                    kCall, rank);
}

namespace {

// The process has joined its job, but not the one that spawned it. The error stays.
void give_up_start() {
  process_state.store(State::kBefore, std::memory_order_relaxed);
  {
    const std::lock_guard lock(live_mutex);
    if (--live_ranks == 0) set_size(0);
  }
  process_engine.kept->abandon();
  process_engine.kept.reset();
}

}  // namespace

mob_status_t engine_start(const job::mpi::Communicator* communicator) {
  static const int watched = pthread_atfork(nullptr, nullptr, leave_as_child);
  if (watched != 0) {
    return base::fail_errno(MOB_ERR_MEMORY, watched, "children of fork() cannot be watched");
  }
  std::unique_ptr<Engine>& place =
      thread_rank.seat != nullptr ? thread_rank.engine : process_engine.kept;
  place = std::make_unique<Engine>();
  if (const mob_status_t status = place->start(environ, thread_rank.seat, communicator)) {
    place.reset();
    return status;
  }
  {
    const std::lock_guard lock(live_mutex);
    // Only once: afterwards other ranks of this process read it without the lock.
    if (live_ranks++ == 0) set_size(place->peers().bound());
    if (thread_rank.seat != nullptr) {
      thread_rank.next = live_threads;
      live_threads = &thread_rank;
    }
  }
  if (thread_rank.seat != nullptr) {
    thread_engine = place.get();
    thread_rank.state = State::kLive;
    return MOB_OK;
  }
  process_state.store(State::kLive, std::memory_order_relaxed);
  const mob_status_t status = without_exceptions("mob_init", [] { return connect_to_parent(); });
  if (status != MOB_OK) give_up_start();
  return status;
}

void learn_numbers() {
  const std::lock_guard lock(live_mutex);
  if (mob_size_ != 0) set_size(engine().peers().bound());
}

mob_status_t engine_stop() {
  if (helper.helps()) {
    return base::fail(MOB_ERR_STATE,
                      "mob_finalize: called by a thread that acts for rank %d, not by that rank",
                      thread_engine->peers().rank());
  }
  if (thread_rank.seat != nullptr) {
    if (const mob_status_t status = withdraw_rank()) return status;
  }
  Engine& stopping = engine();
  static_cast<void>(stopping.router().fence());  // carries out operations that are held back
  stopping.waiter().issue_recorded();
  // Two jobs may each be guests of the other. So this process says in every job that it has come
  // so far before it waits for others in one.
  std::vector<Engine*> engines = guest_engines();
  engines.push_back(&stopping);
  for (Engine* each : engines) {
    if (!each->bridges().any()) continue;
    static_cast<void>(each->completion().complete_all("mob_finalize"));
    static_cast<void>(each->messages().flush_all(Whose::kEveryones));
    each->bridges().announce_end();
  }
  // A member that waits for this process in a collective call learns it now: it may be one that is
  // awaited below.
  for (Engine* each : engines) each->end_calls();
  for (Engine* each : engines) each->bridges().await_ends();
  // Handlers may call any function, so this comes before the library stops being live.
  std::vector<bool> all_met;
  for (Engine* each : engines) {
    all_met.push_back(quiesce(*each));
    each->start_leaving();
  }
  for (size_t i = 0; i + 1 < engines.size(); ++i) remove_guest(*engines[i], all_met[i]);
  {
    const std::lock_guard lock(live_mutex);
    if (--live_ranks == 0) set_size(0);
  }
  stopping.stop(all_met.back());
  thread_engine = nullptr;
  if (thread_rank.seat != nullptr) {
    thread_rank.engine.reset();
    thread_rank.state = State::kAfter;
  } else {
    process_engine.kept.reset();
    process_state.store(State::kAfter, std::memory_order_relaxed);
  }
  return MOB_OK;
}

}  // namespace mobius::engine
