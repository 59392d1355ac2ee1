// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Transfers that are not complete when the call that started them returns: their handles, and the
// contexts that collect them. Between processes that share memory most transfers complete at once
// and nothing here is touched.

#include <mobius/rma.h>
#include <mobius/transfer.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/common/first_error.h"
#include "engine/common/registry.h"
#include "engine/common/sparse_array.h"

namespace mobius::engine {

class Counters;
class Peers;
class Waiter;

// The first error of asynchronous operations, kept until a caller asks. Any thread.
class KeptError {
 public:
  // As FirstError.
  bool keep(mob_status_t status);
  // Makes the error the calling thread's own, as if the operation had failed there, and forgets it.
  mob_status_t take() {
    // Acquire pairs with the release in keep().
    return has_any_.load(std::memory_order_acquire) ? take_it() : MOB_OK;
  }

 private:
  [[gnu::cold]] mob_status_t take_it();

  std::atomic<bool> has_any_ = false;
  std::mutex mutex_;  // guards what follows
  FirstError first_;
};

// A context: the transfers that a flush waits for.
struct Context {
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Transfers that are not locally complete, and those that are not complete at the target.
  template <typename Count>
  struct Counts {
    std::atomic<Count> local = 0;
    std::atomic<Count> remote = 0;
  };

  // The counts of one target.
  struct CountsOfTarget : Counts<uint32_t> {
    std::atomic<uint32_t> ordered = 0;  // not complete there, and before what follows in the stream
  };
  // The counts of a target. The first call makes room for the counts of `ranks` targets; null if
  // there is no memory.
  CountsOfTarget* counts_of(mob_rank_t rank, mob_rank_t ranks);
  const CountsOfTarget* find_counts(mob_rank_t rank) const {
    const CountsOfTarget* counts = by_target.load(std::memory_order_acquire);
    return counts != nullptr ? counts + rank : nullptr;
  }

  Counts<uint64_t> pending;  // of all targets
  std::mutex making_counts;  // guards counts_memory
  SparseArray<CountsOfTarget> counts_memory;
  std::atomic<CountsOfTarget*> by_target = nullptr;  // by rank, from the first that is started
  std::atomic<uint64_t> unordered = 0;  // that later ones on another way could overtake
  std::atomic<int> schedule = -1;       // a policy of what is started in it, or none
  KeptError error;                      // of transfers without a handle
};

// While it lives, transfers that the calling thread starts belong to this context, whichever
// context the thread uses.
class ActingFor {
 public:
  explicit ActingFor(std::shared_ptr<Context> context);
  ~ActingFor();
  ActingFor(const ActingFor&) = delete;
  ActingFor& operator=(const ActingFor&) = delete;

 private:
  const std::shared_ptr<Context> context_;
  const std::shared_ptr<Context>* const before_;
};

// The context that the calling thread uses (0: the default), and the context it acts for, if any.
extern constinit thread_local uint64_t context_in_use [[gnu::tls_model("initial-exec")]];
extern constinit thread_local const std::shared_ptr<Context>* acting_for
    [[gnu::tls_model("initial-exec")]];

// One transfer that is under way. Lives until both its carrier and its handle are done with it.
struct Pending {
  mob_rank_t target = 0;
  std::shared_ptr<Context> context;
  Context::CountsOfTarget* counts = nullptr;  // of the target, in the context
  mob_counter_t origin_counter = nullptr;
  mob_counter_t completion_counter = nullptr;
  uint64_t* origin_word = nullptr;
  uint64_t* completion_word = nullptr;
  bool has_handle = false;  // or somebody who awaits it: its error is theirs
  bool is_ordered = false;  // by the stream to another host, which later ones follow, too
  KeptError error;          // if it has a handle
  uint64_t next_look_ns =
      0;          // when who tests it looks whether the target is alive; 0: at first use
  int looks = 0;  // that found it dead
  std::atomic<bool> locally_complete = false;
  std::atomic<int> users = 1;
};

// Further steps when transfers complete or cannot; components that use this folder implement them.
class TransferDependents {
 public:
  TransferDependents() = default;
  virtual ~TransferDependents() = default;
  TransferDependents(const TransferDependents&) = delete;
  TransferDependents& operator=(const TransferDependents&) = delete;

  // A flush of the calling thread is about to wait for transfers to one target, or to all
  // (Completion::kAll): transfers and locks that were held back for them go now.
  virtual mob_status_t before_flush(const char* call, mob_rank_t target) = 0;
  // The calling thread uses another context from now on.
  virtual void context_changed() = 0;
  // Completes what is under way to a rank that died, with an error.
  virtual void give_up(mob_rank_t rank) = 0;
};

class Completion {
 public:
  Completion(Peers& peers, Waiter& waiter, Counters& counters, TransferDependents& dependents)
      : peers_(peers), waiter_(waiter), counters_(counters), dependents_(dependents) {}

  mob_status_t create_context(uint64_t* handle);
  mob_status_t free_context(uint64_t handle);
  mob_status_t use_context(uint64_t handle);  // 0: the default
  static uint64_t current_context();
  // Whether transfers that the calling thread starts belong to this context.
  bool is_current(const Context& context) const {
    if (acting_for != nullptr) return acting_for->get() == &context;
    if (context_in_use == 0) [[likely]] {
      return default_context_.get() == &context;
    }
    return context_of(context_in_use).get() == &context;
  }
  // The same, and it is the default context.
  bool is_current_default(const Context& context) const {
    return acting_for == nullptr && context_in_use == 0 && default_context_.get() == &context;
  }

  // The context of transfers that the calling thread starts.
  std::shared_ptr<Context> current() const {
    return acting_for != nullptr ? *acting_for : context_of(context_in_use);
  }
  // Has the next flush in a context return an error, whose text is mob_last_error().
  static void keep_for_flush(Context& context, mob_status_t status);

  // A hint for the scheduler (schedule.h of the public interface): a policy, or -1. For a live
  // context, or MOB_ERR_HANDLE; 0: the default one.
  mob_status_t set_schedule(const char* call, uint64_t handle, int policy);
  // The schedule of transfers that the calling thread starts.
  int schedule() const;

  // Whether no transfer of this process is under way, no error is kept for a flush, and nothing
  // else needs a flush or fence. Acquire, as in every wait: data of transfers that another thread
  // saw complete is visible to this one.
  static bool none_under_way() {
    return __atomic_load_n(&mob_settled_size_, __ATOMIC_ACQUIRE) != 0;
  }
  // Something else needs flushes and fences (a hook), or does not any more.
  static void stay_out_of_line(bool stay);
  // Flushes of the program wait for its messages, too, or do not any more.
  static void flush_messages_too(bool too);
  // Sets mob_settled_size_ and mob_idle_size_; after mob_size_ changed.
  static void publish_idle();

  // A transfer that the calling thread starts and somebody else will complete. With `handle` not
  // null, the caller gets one. The carrier reports each of the two completions once, local first;
  // the object may be gone after the second. `status` is MOB_OK or an error whose text is
  // mob_last_error() of the reporting thread; after an error both are still reported. One that is
  // found after local completion is the flush's. One to another host is ordered by the stream of
  // requests unless it `is_overtaken`.
  Pending* start(const mob_transfer_t& transfer, uint64_t* handle, bool is_overtaken = false);
  // The same for a caller that waits for it with await(), once, and needs no handle.
  Pending* start_awaited(const mob_transfer_t& transfer, bool is_overtaken = false);
  mob_status_t await(const char* call, Pending& pending);
  // From now on other transfers may overtake this one.
  static void let_overtake(Pending& pending);
  void complete_locally(Pending& pending, mob_status_t status);
  void complete_remotely(Pending& pending, mob_status_t status);
  // Reports both completions at once: `status` is that of the local one.
  void complete(Pending& pending, mob_status_t status);

  // For a live handle or not: MOB_ERR_HANDLE. `*done` handles are freed.
  mob_status_t test(const char* call, uint64_t handle, bool* done);
  mob_status_t wait(const char* call, uint64_t handle, bool* done);

  // Whether a transfer of the calling thread's context to a target is not remotely complete.
  bool is_awaited(mob_rank_t target) const;

  // Whether a transfer that may not be overtaken is under way to a target of another host, in any
  // context.
  bool has_ordered_at(mob_rank_t target);

  // How many transfers of the calling thread's context are not remotely complete, if all of them go
  // to one target; else 0.
  uint64_t all_at(mob_rank_t target) const;

  // Waits for what is pending in the calling thread's context at one target, or at all (kAll), up
  // to local or remote completion, and returns what went wrong in the context.
  mob_status_t flush(const char* call, mob_rank_t target, bool remote);
  static constexpr mob_rank_t kAll = -1;

  // Completes the transfers of the calling thread's context at their targets, as a flush does, but
  // without a fence when none is under way.
  mob_status_t complete_all(const char* call) {
    if (none_under_way()) [[likely]] {
      return MOB_OK;
    }
    return flush(call, kAll, true);
  }

  // Waits for the transfers that a fence has to wait for. The next flush returns their errors.
  mob_status_t order(const char* call);
  // Waits for transfers to these targets in contexts other than the calling thread's. The next
  // flush in each context returns its errors.
  mob_status_t complete_others(const char* call, std::span<const mob_rank_t> targets);
  // Waits until no transfer that later ones could overtake is under way, or none to this target.
  // The next flush returns their errors.
  void await_unordered(const char* call, mob_rank_t target);

 private:
  using Handle = Pending*;

  std::shared_ptr<Context> context_of(uint64_t handle) const;
  std::vector<std::shared_ptr<Context>> other_contexts();
  void forget(const Context& context);
  std::unique_ptr<Pending> make(const mob_transfer_t& transfer, bool is_overtaken);
  static Pending* begin(std::unique_ptr<Pending> pending);
  void count(mob_counter_t counter, uint64_t* word);
  void note_local_end(Pending& pending, mob_status_t status);
  void note_remote_end(Pending& pending, mob_status_t status);
  static void release(Pending& pending);
  mob_status_t flush_context(const char* call, Context& context, mob_rank_t target, bool remote);
  template <typename Count>
  mob_status_t await(const char* call, mob_rank_t target, const std::atomic<Count>& pending);
  template <typename Count>
  mob_status_t wait_for(const char* call, Context& context, mob_rank_t target,
                        const std::atomic<Count>& pending);
  mob_status_t collect(uint64_t handle, Pending& pending);
  mob_status_t look_for_death(const char* call, Pending& pending);

  Peers& peers_;
  Waiter& waiter_;
  Counters& counters_;
  TransferDependents& dependents_;
  Context the_default_;
  // Owns nothing: transfers end before this object does, and counting references would take longer
  // than everything else that is noted of a transfer.
  const std::shared_ptr<Context> default_context_{std::shared_ptr<Context>(), &the_default_};
  Registry<std::shared_ptr<Context>> contexts_;
  std::mutex mutex_;  // guards made_
  std::vector<std::shared_ptr<Context>> made_;
  Registry<Handle> handles_;
};

}  // namespace mobius::engine
