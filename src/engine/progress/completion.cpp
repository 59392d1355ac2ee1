// SPDX-License-Identifier: BSD-3-Clause
#include "engine/progress/completion.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/progress/counters.h"
#include "engine/progress/peer_watch.h"
#include "engine/progress/waiter.h"
#include "os/sync/futex.h"

namespace mobius::engine {
namespace {

using base::fail;
using base::in_handler;

// Reasons why a flush or fence of this process must be more than a processor fence: transfers under
// way, errors that no flush has returned yet, and hooks. For flushes of the program, but not for
// those that the library makes: messages that the program has sent.
std::mutex unfinished_mutex;
uint32_t unfinished = 0;
uint32_t message_senders = 0;

void add_unfinished(int change, int senders = 0) {
  const std::lock_guard lock(unfinished_mutex);
  unfinished += static_cast<uint32_t>(change);
  message_senders += static_cast<uint32_t>(senders);
  // Release pairs with the fence of a flush that finds nothing under way any more.
  const int32_t settled_size = unfinished == 0 ? mob_size_ : 0;
  __atomic_store_n(&mob_settled_size_, settled_size, __ATOMIC_RELEASE);
  __atomic_store_n(&mob_idle_size_, message_senders == 0 ? settled_size : 0, __ATOMIC_RELEASE);
}

// Retries of cancelling a dead peer's operations before the wait fails, and the time between two
// liveness checks of a caller that only tests.
constexpr int kMostLooks = 10;
constexpr uint64_t kTestLookNs = 100'000'000;

// Completes, with an error, the transfers to awaited ranks that have died, so that the wait for
// them ends by itself. The wait for living ranks goes on; it fails too if a dead rank's transfers
// cannot be completed.
class PendingWatch final : public os::Watch {
 public:
  PendingWatch(Peers& peers, TransferDependents& dependents, const char* call, mob_rank_t target)
      : peers_(peers), dependents_(dependents), call_(call), target_(target) {}

  mob_status_t look() override {
    const bool is_one = target_ != Completion::kAll;
    bool any = false;
    for (mob_rank_t rank = is_one ? target_ : 0; rank < (is_one ? target_ + 1 : peers_.bound());
         ++rank) {
      if (!peers_.is_dead(rank)) continue;
      dependents_.give_up(rank);
      any = true;
    }
    if (!any || ++looks_ <= kMostLooks) return MOB_OK;
    return is_one ? PeerWatch(peers_, call_, target_).look() : AnyPeerWatch(peers_, call_).look();
  }

 private:
  Peers& peers_;
  TransferDependents& dependents_;
  const char* call_;
  const mob_rank_t target_;
  int looks_ = 0;
};

}  // namespace

constinit thread_local uint64_t context_in_use = 0;
constinit thread_local const std::shared_ptr<Context>* acting_for = nullptr;

ActingFor::ActingFor(std::shared_ptr<Context> context)
    : context_(std::move(context)), before_(acting_for) {
  acting_for = &context_;
}

ActingFor::~ActingFor() { acting_for = before_; }

Context::CountsOfTarget* Context::counts_of(mob_rank_t rank, mob_rank_t ranks) {
  CountsOfTarget* counts = by_target.load(std::memory_order_acquire);
  if (counts == nullptr) {
    const std::lock_guard lock(making_counts);
    counts = by_target.load(std::memory_order_relaxed);
    if (counts == nullptr) {
      try {
        counts_memory = SparseArray<CountsOfTarget>(static_cast<size_t>(ranks));
      } catch (const std::bad_alloc&) {
        return nullptr;
      }
      counts = &counts_memory[0];
      // Release: a thread that finds the counts finds zeros.
      by_target.store(counts, std::memory_order_release);
    }
  }
  return counts + rank;
}

void Completion::stay_out_of_line(bool stay) { add_unfinished(stay ? 1 : -1); }

void Completion::flush_messages_too(bool too) { add_unfinished(0, too ? 1 : -1); }

void Completion::publish_idle() { add_unfinished(0); }

bool KeptError::keep(mob_status_t status) {
  if (status == MOB_OK) [[likely]] {
    return false;
  }
  const std::lock_guard lock(mutex_);
  if (!first_.keep(status)) return false;
  has_any_.store(true, std::memory_order_release);
  return true;
}

mob_status_t KeptError::take_it() {
  const std::lock_guard lock(mutex_);
  const mob_status_t status = first_.tell();
  first_ = {};
  has_any_.store(false, std::memory_order_relaxed);
  return status;
}

uint64_t Completion::current_context() { return context_in_use; }

// A context that another thread freed is the default.
std::shared_ptr<Context> Completion::context_of(uint64_t handle) const {
  if (handle == 0) return default_context_;
  const std::shared_ptr<Context>* found = contexts_.find(handle);
  return found != nullptr ? *found : default_context_;
}

mob_status_t Completion::create_context(uint64_t* handle) {
  const auto context = std::make_shared<Context>();
  auto shared = std::make_unique<std::shared_ptr<Context>>(context);
  {
    const std::lock_guard lock(mutex_);
    made_.push_back(context);
  }
  *handle = contexts_.add(std::move(shared));
  if (*handle != 0) return MOB_OK;
  forget(*context);
  return fail(MOB_ERR_MEMORY, "mob_context_create: there are too many contexts");
}

void Completion::forget(const Context& context) {
  const std::lock_guard lock(mutex_);
  std::erase_if(made_, [&](const auto& each) { return each.get() == &context; });
}

mob_status_t Completion::free_context(uint64_t handle) {
  const std::unique_ptr<std::shared_ptr<Context>> context = contexts_.remove(handle);
  if (context == nullptr) {
    return fail(MOB_ERR_HANDLE,
                "mob_context_free: not a live context (freed before, or never "
                "made)");
  }
  if (context_in_use == handle) context_in_use = 0;
  const mob_status_t status = flush_context("mob_context_free", **context, kAll, true);
  forget(**context);
  return status;
}

mob_status_t Completion::use_context(uint64_t handle) {
  if (handle != 0 && contexts_.find(handle) == nullptr) {
    return fail(MOB_ERR_HANDLE,
                "mob_context_use: not a live context (freed before, or never "
                "made)");
  }
  context_in_use = handle;
  dependents_.context_changed();
  return MOB_OK;
}

mob_status_t Completion::set_schedule(const char* call, uint64_t handle, int policy) {
  if (handle != 0 && contexts_.find(handle) == nullptr) {
    return fail(MOB_ERR_HANDLE, "%s: not a live context (freed before, or never made)", call);
  }
  context_of(handle)->schedule.store(policy, std::memory_order_relaxed);
  return MOB_OK;
}

int Completion::schedule() const {
  const Context& context = acting_for != nullptr ? **acting_for : *context_of(context_in_use);
  return context.schedule.load(std::memory_order_relaxed);
}

bool Completion::is_awaited(mob_rank_t target) const {
  if (none_under_way()) [[likely]] {
    return false;  // nothing is, anywhere
  }
  const std::shared_ptr<Context> context = current();
  const Context::CountsOfTarget* of_target = context->find_counts(target);
  return of_target != nullptr && of_target->remote.load(std::memory_order_acquire) != 0;
}

bool Completion::has_ordered_at(mob_rank_t target) {
  // Acquire pairs with the release in note_remote_end(): completed operations come before those
  // that follow.
  const auto has_some = [target](const Context& context) {
    const Context::CountsOfTarget* of_target = context.find_counts(target);
    return of_target != nullptr && of_target->ordered.load(std::memory_order_acquire) != 0;
  };
  if (has_some(the_default_)) return true;
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(made_, [&](const auto& each) { return has_some(*each); });
}

uint64_t Completion::all_at(mob_rank_t target) const {
  if (none_under_way()) [[likely]] {
    return 0;
  }
  const std::shared_ptr<Context> context = context_of(context_in_use);
  // In this order: of all is counted before, and ends to be counted after, that of a target, so
  // that what goes elsewhere makes a difference.
  const uint64_t all = context->pending.remote.load(std::memory_order_acquire);
  const Context::CountsOfTarget* of_target = context->find_counts(target);
  const bool is_alone =
      of_target != nullptr && of_target->remote.load(std::memory_order_acquire) == all;
  return is_alone ? all : 0;
}

std::unique_ptr<Pending> Completion::make(const mob_transfer_t& transfer, bool is_overtaken) {
  auto pending = std::make_unique<Pending>();
  pending->target = transfer.rank;
  pending->context = current();
  pending->counts = pending->context->counts_of(transfer.rank, peers_.most());
  if (pending->counts == nullptr) {
    fail(MOB_ERR_MEMORY, "no memory to count what is under way to %d ranks", peers_.most());
    return nullptr;
  }
  pending->origin_counter = transfer.origin_counter;
  pending->completion_counter = transfer.completion_counter;
  pending->origin_word = transfer.origin_word;
  pending->completion_word = transfer.completion_word;
  pending->is_ordered = !peers_.is_here(transfer.rank) && !is_overtaken;
  return pending;
}

Pending* Completion::begin(std::unique_ptr<Pending> pending) {
  if (pending->has_handle) pending->users.store(2, std::memory_order_relaxed);
  pending->context->pending.local.fetch_add(1, std::memory_order_relaxed);
  pending->context->pending.remote.fetch_add(1, std::memory_order_relaxed);
  pending->counts->local.fetch_add(1, std::memory_order_relaxed);
  pending->counts->remote.fetch_add(1, std::memory_order_relaxed);
  if (pending->is_ordered) {
    pending->counts->ordered.fetch_add(1, std::memory_order_relaxed);
  } else {
    pending->context->unordered.fetch_add(1, std::memory_order_relaxed);
  }
  add_unfinished(1);
  return pending.release();
}

Pending* Completion::start(const mob_transfer_t& transfer, uint64_t* handle, bool is_overtaken) {
  std::unique_ptr<Pending> pending = make(transfer, is_overtaken);
  if (pending == nullptr) return nullptr;
  if (handle != nullptr) {
    pending->has_handle = true;
    *handle = handles_.add(std::make_unique<Handle>(pending.get()));
    if (*handle == 0) {
      fail(MOB_ERR_MEMORY, "too many transfers were started and not waited for");
      return nullptr;
    }
  }
  return begin(std::move(pending));
}

Pending* Completion::start_awaited(const mob_transfer_t& transfer, bool is_overtaken) {
  std::unique_ptr<Pending> pending = make(transfer, is_overtaken);
  if (pending == nullptr) return nullptr;
  pending->has_handle = true;
  return begin(std::move(pending));
}

void Completion::let_overtake(Pending& pending) {
  if (!std::exchange(pending.is_ordered, false)) return;
  pending.context->unordered.fetch_add(1, std::memory_order_relaxed);
  pending.counts->ordered.fetch_sub(1, std::memory_order_relaxed);
}

void Completion::keep_for_flush(Context& context, mob_status_t status) {
  if (context.error.keep(status)) add_unfinished(1);  // until a flush has come to take it
}

void Completion::count(mob_counter_t counter, uint64_t* word) {
  if (counter != nullptr) counters_.count(peers_.rank(), Counters::own(counter));
  Counters::count_word(word);
}

// The last count to change, here and below, is also the fence in front of a look for sleepers.
void Completion::note_local_end(Pending& pending, mob_status_t status) {
  if (pending.has_handle) {
    pending.error.keep(status);
  } else {
    keep_for_flush(*pending.context, status);
  }
  if (status == MOB_OK) count(pending.origin_counter, pending.origin_word);
  // Release, here and below, pairs with the acquire of the waiter: data, error and counters are
  // written before, because the counters may be gone once the wait has ended.
  pending.locally_complete.store(true, std::memory_order_release);
  pending.counts->local.fetch_sub(1, std::memory_order_release);
  pending.context->pending.local.fetch_sub(1, std::memory_order_seq_cst);
}

void Completion::note_remote_end(Pending& pending, mob_status_t status) {
  keep_for_flush(*pending.context, status);
  if (status == MOB_OK) count(pending.completion_counter, pending.completion_word);
  if (pending.is_ordered) {
    pending.counts->ordered.fetch_sub(1, std::memory_order_release);
  } else {
    pending.context->unordered.fetch_sub(1, std::memory_order_release);
  }
  pending.counts->remote.fetch_sub(1, std::memory_order_release);
  pending.context->pending.remote.fetch_sub(1, std::memory_order_seq_cst);
  add_unfinished(-1);
  release(pending);
}

void Completion::complete_locally(Pending& pending, mob_status_t status) {
  note_local_end(pending, status);
  waiter_.ring_after_fence(peers_.rank());
}

void Completion::complete_remotely(Pending& pending, mob_status_t status) {
  note_remote_end(pending, status);
  waiter_.ring_after_fence(peers_.rank());
}

void Completion::complete(Pending& pending, mob_status_t status) {
  note_local_end(pending, status);
  note_remote_end(pending, MOB_OK);
  waiter_.ring_after_fence(peers_.rank());
}

void Completion::release(Pending& pending) {
  if (pending.users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &pending;
}

mob_status_t Completion::collect(uint64_t handle, Pending& pending) {
  handles_.remove(handle);
  const mob_status_t status = pending.error.take();
  release(pending);
  return status;
}

mob_status_t Completion::test(const char* call, uint64_t handle, bool* done) {
  const Handle* found = handles_.find(handle);
  if (found == nullptr) {
    return fail(MOB_ERR_HANDLE, "%s: not a transfer that was started, or it was completed before",
                call);
  }
  Pending& pending = **found;
  *done = pending.locally_complete.load(std::memory_order_acquire);
  if (!*done && !in_handler) {
    if (const mob_status_t status = look_for_death(call, pending)) {
      *done = true;
      return status;
    }
    *done = pending.locally_complete.load(std::memory_order_acquire);
  }
  return *done ? base::told_by(call, collect(handle, pending)) : MOB_OK;
}

// A caller that tests again and again must learn of a death as a waiter does.
mob_status_t Completion::look_for_death(const char* call, Pending& pending) {
  const uint64_t now = os::now_ns();
  if (now < pending.next_look_ns) return MOB_OK;
  const bool is_first = pending.next_look_ns == 0;
  pending.next_look_ns = now + kTestLookNs;
  if (is_first || !peers_.is_dead(pending.target)) return MOB_OK;
  dependents_.give_up(pending.target);
  if (++pending.looks <= kMostLooks) return MOB_OK;
  return PeerWatch(peers_, call, pending.target).look();
}

mob_status_t Completion::wait(const char* call, uint64_t handle, bool* done) {
  const Handle* found = handles_.find(handle);
  *done = false;
  if (found == nullptr) {
    return fail(MOB_ERR_HANDLE, "%s: not a transfer that was started, or it was completed before",
                call);
  }
  Pending& pending = **found;
  PendingWatch watch(peers_, dependents_, call, pending.target);
  const mob_status_t status = waiter_.wait_until(
      [&] { return pending.locally_complete.load(std::memory_order_acquire); }, &watch);
  // In a handler, which may not wait, nothing has changed and the handle stays valid.
  *done = status != MOB_ERR_STATE;
  return status != MOB_OK ? status : base::told_by(call, collect(handle, pending));
}

mob_status_t Completion::await(const char* call, Pending& pending) {
  PendingWatch watch(peers_, dependents_, call, pending.target);
  mob_status_t status = waiter_.wait_until(
      [&] { return pending.locally_complete.load(std::memory_order_acquire); }, &watch);
  if (status == MOB_OK) status = base::told_by(call, pending.error.take());
  release(pending);
  return status;
}

mob_status_t Completion::flush(const char* call, mob_rank_t target, bool remote) {
  if (const mob_status_t status = dependents_.before_flush(call, target)) return status;
  const std::shared_ptr<Context> context = context_of(context_in_use);
  return flush_context(call, *context, target, remote);
}

mob_status_t Completion::order(const char* call) {
  const std::shared_ptr<Context> context = context_of(context_in_use);
  return await(call, kAll, context->unordered);
}

// Of the default context, too, if it is not the calling thread's.
std::vector<std::shared_ptr<Context>> Completion::other_contexts() {
  const std::shared_ptr<Context> own = context_of(context_in_use);
  std::vector<std::shared_ptr<Context>> others;
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Context>& each : made_) {
    if (each != own) others.push_back(each);
  }
  if (own != default_context_) others.push_back(default_context_);
  return others;
}

mob_status_t Completion::complete_others(const char* call, std::span<const mob_rank_t> targets) {
  if (none_under_way()) [[likely]] {
    return MOB_OK;
  }
  mob_status_t status = MOB_OK;
  for (const std::shared_ptr<Context>& context : other_contexts()) {
    for (const mob_rank_t target : targets) {
      const Context::CountsOfTarget* of_target =
          target != kAll ? context->find_counts(target) : nullptr;
      const mob_status_t ended = of_target != nullptr
                                     ? await(call, target, of_target->remote)
                                     : await(call, target, context->pending.remote);
      if (status == MOB_OK) status = ended;
    }
  }
  return status;
}

void Completion::await_unordered(const char* call, mob_rank_t target) {
  const std::shared_ptr<Context> context = context_of(context_in_use);
  const Context::CountsOfTarget* of_target = context->find_counts(target);
  if (of_target == nullptr) return;
  PendingWatch watch(peers_, dependents_, call, target);
  // Acquire, twice, pairs with the release in complete_remotely().
  static_cast<void>(waiter_.wait_until(
      [&] {
        return context->unordered.load(std::memory_order_acquire) == 0 ||
               of_target->remote.load(std::memory_order_acquire) == 0;
      },
      &watch));
}

mob_status_t Completion::flush_context(const char* call, Context& context, mob_rank_t target,
                                       bool remote) {
  const Context::CountsOfTarget* of_target = target != kAll ? context.find_counts(target) : nullptr;
  if (of_target != nullptr) {
    return wait_for(call, context, target, remote ? of_target->remote : of_target->local);
  }
  // Nothing was ever started to the target, so the context's counts say the same.
  return wait_for(call, context, target, remote ? context.pending.remote : context.pending.local);
}

template <typename Count>
mob_status_t Completion::await(const char* call, mob_rank_t target,
                               const std::atomic<Count>& pending) {
  PendingWatch watch(peers_, dependents_, call, target);
  return waiter_.wait_until([&] { return pending.load(std::memory_order_acquire) == 0; }, &watch);
}

template <typename Count>
mob_status_t Completion::wait_for(const char* call, Context& context, mob_rank_t target,
                                  const std::atomic<Count>& pending) {
  const mob_status_t status = await(call, target, pending);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // as every flush
  if (status != MOB_OK) return status;
  const mob_status_t failed = base::told_by(call, context.error.take());
  if (failed != MOB_OK) add_unfinished(-1);
  return failed;
}

}  // namespace mobius::engine
