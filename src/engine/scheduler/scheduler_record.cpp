// SPDX-License-Identifier: BSD-3-Clause
// Recording.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/status.h"
#include "engine/common/instrumentation.h"
#include "engine/message/message.h"
#include "engine/network/network.h"
#include "engine/progress/progress.h"
#include "engine/progress/waiter.h"
#include "engine/request/am_rma.h"
#include "engine/rma/deferred_access.h"
#include "engine/rma/local_access.h"
#include "engine/scheduler/scheduler_queue.h"
#include "transport/shm/copy.h"
#include "transport/shm/element.h"

namespace mobius::engine {
namespace {

using base::fail;
using schedule::Kind;
using schedule::Policy;

// Limits of pending packed messages, and of pending transfers outside of them, beyond which a
// recording thread waits.
constexpr size_t kMostFlights = 64;
constexpr size_t kMostAlone = 256;

bool packs(Policy policy) { return policy == Policy::kAdaptive || policy == Policy::kAggregate; }

schedule::Operation describe(const Operation& operation) {
  const mob_transfer_t& transfer = *operation.transfer;
  schedule::Operation made;
  made.kind = schedule::kind_of(transfer.kind);
  made.bytes = operation.shape.total_bytes;
  made.remote = reinterpret_cast<uintptr_t>(operation.shape.remote);
  made.local = operation.shape.local;
  if (transfer.kind == MOB_ACCUMULATE || transfer.kind == MOB_FETCH_ACCUMULATE) {
    made.type = static_cast<uint8_t>(transfer.type);
    made.op = static_cast<uint8_t>(transfer.op);
    made.set_fetched(transfer.fetched);
    made.kept = true;
  } else {
    made.kept = transfer.kind == MOB_PUT && operation.mode != Mode::kImplicit;
  }
  return made;
}

}  // namespace

bool Scheduler::try_submit(const Operation& operation, mob_status_t* status) {
  if (!takes(operation)) return fetch(operation, status);
  *status = record(operation);
  return true;
}

bool Scheduler::takes(const Operation& operation) const {
  const mob_transfer_t& transfer = *operation.transfer;
  const transport::Shape& shape = operation.shape;
  if (!is_open_) return false;
  const Policy policy = policy_for(transfer.rank, reinterpret_cast<uintptr_t>(shape.remote));
  if (policy == Policy::kFifo || shape.kind != MOB_CONTIGUOUS || shape.total_bytes == 0 ||
      counts(transfer)) {
    return false;
  }
  // The request is small and is sent at once, and the move does not delay other messages.
  if (services_.requests.is_bulk(transfer, shape, operation.mode)) return false;
  const bool is_small = shape.total_bytes <= kMostKept;
  const bool is_started = operation.mode == Mode::kImplicit;
  switch (transfer.kind) {
    case MOB_PUT:
      return (is_started && (transfer.signal == nullptr || is_small)) ||
             (packs(policy) && is_small);
    case MOB_GET: {
      // A blocking get gains only if there are recorded operations that it can overtake.
      const Queue* queue = is_started || in_handler ? nullptr : find(transfer.rank);
      return transfer.signal == nullptr && (is_started || (queue != nullptr && queue->has_any));
    }
    case MOB_ACCUMULATE:
    case MOB_FETCH_ACCUMULATE:
      break;
  }
  return is_small && transfer.scale == nullptr && transfer.op != MOB_NO_OP &&
         transfer.signal == nullptr &&
         (is_started || (packs(policy) && transfer.kind == MOB_ACCUMULATE));
}

// Whether the calling thread, which copies or packs it, may read the local side of an operation.
mob_status_t Scheduler::check_operand(const Operation& operation) const {
  const mob_transfer_t& transfer = *operation.transfer;
  return transfer.kind == MOB_GET || LocalAccess::allows_reading(services_.segment, transfer.local,
                                                                 operation.shape.total_bytes)
             ? MOB_OK
             : LocalAccess(services_.segment, false).refuse(operation.call, transfer.local);
}

mob_status_t Scheduler::record(const Operation& operation) {
  const mob_transfer_t& transfer = *operation.transfer;
  if (const mob_status_t status = check_operand(operation)) return status;
  Queue* queue = queue_of(transfer.rank);
  if (queue == nullptr) return MOB_ERR_PEER;
  schedule::Operation made = describe(operation);
  const Policy policy = policy_for(transfer.rank, made.remote);
  const bool is_started = operation.mode == Mode::kImplicit;
  if (made.kind == Kind::kGet && !is_started) return get(operation, *queue, made, policy);
  const bool is_told = transfer.signal != nullptr;
  const bool is_lasting =
      is_started && !is_told && (made.kind == Kind::kPut || made.kind == Kind::kGet);
  const mob_status_t status =
      add(*queue, made, policy, !is_started && !is_told, is_lasting ? made.local : nullptr);
  if (status != MOB_OK || !is_told) return status;
  made = {};
  made.kind = Kind::kSignal;
  made.bytes = sizeof(uint64_t);
  made.remote = reinterpret_cast<uintptr_t>(transfer.signal);
  made.op = static_cast<uint8_t>(transfer.signal_op);
  made.set_value(transfer.signal_value);
  return add(*queue, made, policy, true);
}

// Records a get with a handle, or a blocking one, and waits for it.
mob_status_t Scheduler::get(const Operation& operation, Queue& queue, schedule::Operation& made,
                            Policy policy) {
  Completion& completion = services_.completion;
  const bool waits = operation.mode == Mode::kBlocking;
  Pending* const pending = waits ? completion.start_awaited(*operation.transfer)
                                 : completion.start(*operation.transfer, operation.handle);
  if (pending == nullptr) return MOB_ERR_MEMORY;
  made.set_waiter(pending);
  // From here on the handle reports any error.
  mob_status_t status = MOB_OK;
  try {
    status = add(queue, made, policy, true);
  } catch (const std::bad_alloc&) {
    status = fail(MOB_ERR_MEMORY, "%s: this process has no memory left", operation.call);
  }
  if (status != MOB_OK) completion.complete(*pending, status);
  return waits ? completion.await(operation.call, *pending) : MOB_OK;
}

bool Scheduler::fetch(const Operation& operation, mob_status_t* status) {
  const mob_transfer_t& transfer = *operation.transfer;
  const transport::Shape& shape = operation.shape;
  const bool fetches = transfer.kind == MOB_GET || transfer.kind == MOB_FETCH_ACCUMULATE;
  if (!is_open_ || !fetches || operation.mode != Mode::kBlocking || in_handler ||
      services_.requests.is_bulk(transfer, shape, operation.mode) || shape.kind != MOB_CONTIGUOUS ||
      shape.total_bytes - 1 >= kMostKept || counts(transfer) || transfer.signal != nullptr ||
      transfer.scale != nullptr ||
      (transfer.kind == MOB_FETCH_ACCUMULATE && transfer.op == MOB_NO_OP)) {
    return false;
  }
  const schedule::Operation made = describe(operation);
  const Policy policy = policy_for(transfer.rank, made.remote);
  Queue* const queue = packs(policy) ? queue_of(transfer.rank) : nullptr;
  if (queue == nullptr) return false;
  *status = check_operand(operation);
  if (*status == MOB_OK) *status = fetch_now(operation.call, *queue, made, policy);
  return true;
}

mob_status_t Scheduler::fetch_now(const char* call, Queue& queue, schedule::Operation made,
                                  Policy policy) {
  made.kept = true;  // never outside of a packed message: the group is awaited
  Pending* pending = nullptr;
  {
    const Queue::Lock lock(queue);
    issue(queue);
    if (const mob_status_t status = begin_group(queue, true)) return status;
    pending = queue.group->pending;
    queue.policy = policy;
    queue.is_fenced = false;
    queue.operations.add() = made;
    queue.note_call(nullptr, made.remote, made.bytes);
    issue(queue);
  }
  return services_.completion.await(call, *pending);
}

// Whether one contiguous range may be recorded without a description, as far as can be told here.
inline bool Scheduler::is_plain(mob_rank_t rank, const void* remote, const void* local) const {
  return is_open_ && services_.peers.is_rank(rank, mob_size_) && local != nullptr &&
         remote != nullptr && !services_.instrumentation.hooked() && !services_.deferred.is_used();
}

bool Scheduler::try_put(const char* call, mob_rank_t rank, void* remote, const void* local,
                        size_t bytes, Urgency urgency, mob_status_t* status) {
  if (!is_plain(rank, remote, local) || services_.peers.is_here(rank) || bytes - 1 >= kMostKept) {
    return false;
  }
  const Policy policy =
      has_hints() ? policy_for(rank, reinterpret_cast<uintptr_t>(remote)) : policy_;
  if (!packs(policy)) return false;
  Queue* queue = queue_of(rank);
  if (queue == nullptr) return false;
  if (!LocalAccess::allows_reading(services_.segment, local, bytes)) {
    *status = LocalAccess(services_.segment, false).refuse(call, local);
    return true;
  }
  schedule::Operation made;
  made.kept = true;
  made.bytes = bytes;
  made.remote = reinterpret_cast<uintptr_t>(remote);
  made.local = const_cast<char*>(static_cast<const char*>(local));
  const bool is_urgent = urgency == Urgency::kUrgent;
  *status = add(*queue, made, policy, is_urgent, is_urgent ? nullptr : made.local);
  return true;
}

bool Scheduler::try_get(const char* call, mob_rank_t rank, const void* remote, void* local,
                        size_t bytes, mob_status_t* status) {
  if (!is_plain(rank, remote, local) || services_.peers.is_here(rank) || bytes - 1 >= kMostKept ||
      in_handler || services_.network.rma().is_worth(bytes)) {
    return false;
  }
  const Policy policy =
      has_hints() ? policy_for(rank, reinterpret_cast<uintptr_t>(remote)) : policy_;
  if (!packs(policy)) return false;
  Queue* const queue = queue_of(rank);
  // It may overtake recorded operations.
  if (queue == nullptr || queue->has_any.load(std::memory_order_relaxed)) return false;
  schedule::Operation made;
  made.kind = Kind::kGet;
  made.bytes = bytes;
  made.remote = reinterpret_cast<uintptr_t>(remote);
  made.local = static_cast<char*>(local);
  *status = fetch_now(call, *queue, made, policy);
  return true;
}

// Whether add() would only store one more operation.
inline bool Scheduler::takes_one_more(const Queue& queue, Policy policy) const {
  return !queue.operations.empty() && queue.calls != Queue::kMostOperations &&
         queue.policy == policy && !queue.is_fenced &&
         queue.under_way.load(std::memory_order_relaxed) <= kMostFlights &&
         services_.completion.is_current(*queue.group->pending->context);
}

// Makes a put or get part of the last operation, if it continues that at both sides. Then no copy
// is needed: the bytes of an implicit operation are the user's.
bool Scheduler::extend(Queue& queue, Kind kind, uint64_t remote, const char* local, size_t bytes) {
  const Queue::Lock lock(queue);
  // Checked again with the lock, under which there is a last operation.
  if (!queue.is_next(remote, local, bytes) || queue.calls == Queue::kMostOperations ||
      queue.is_fenced || !services_.completion.is_current_default(*queue.group->pending->context)) {
    return false;
  }
  schedule::Operation& last = queue.operations.back();
  if (last.kind != kind || schedule::is_value(last.bytes)) return false;
  if (last.kept) {
    last.kept = false;
    last.local = const_cast<char*>(local) - last.bytes;
    queue.stored -= last.bytes;
  }
  last.bytes += bytes;
  ++last.calls;
  queue.note_call(local, remote, bytes);
  queue.who = AppendRun::whose(kind, queue.rank);
  open_append_run(queue, remote);
  return true;
}

// Needs the lock. Starts an append run: the next calls may follow without further checks.
void Scheduler::open_append_run(Queue& queue, uint64_t remote) {
  if (!queue.lock.is_biased() || !packs(queue.policy) ||
      services_.network.rma().is_worth(AppendRun::kMostBytes)) {
    return;
  }
  queue.left = static_cast<uint32_t>(Queue::kMostOperations - queue.calls);
  const PolicyHints::Around alike = hints_.around(queue.rank, remote);
  queue.alike_begin = alike.begin;
  queue.alike_bytes = alike.bytes;
  set_last_append_run(queue);
}

bool Scheduler::try_append(Kind kind, mob_rank_t rank, void* remote, const void* local,
                           size_t bytes) {
  if (!is_plain(rank, remote, local) || bytes == 0 ||
      services_.network.rma().is_worth_bare(bytes)) {
    return false;
  }
  Queue* const queue = find(rank);
  if (queue == nullptr) return false;
  const auto place = reinterpret_cast<uintptr_t>(remote);
  const auto* const from = static_cast<const char*>(local);
  return (queue->is_next(place, from, bytes) && extend(*queue, kind, place, from, bytes)) ||
         append(*queue, kind, place, from, bytes);
}

// Stores one more operation. Needs the lock, and room in the queue.
[[gnu::always_inline]] inline void Scheduler::note(Queue& queue, Kind kind, uint64_t remote,
                                                   const char* local, size_t bytes, bool copies) {
  char* const copy = queue.store.get() + queue.stored;
  schedule::Operation& made = queue.operations.add();
  made.kind = kind;
  made.kept = copies;
  made.bytes = bytes;
  made.remote = remote;
  made.local = copies ? copy : const_cast<char*>(local);
  if (copies) {
    transport::copy(copy, local, bytes);
    queue.stored += bytes;
  }
  queue.who = copies ? AppendRun::kNobody : AppendRun::whose(kind, queue.rank);
}

bool Scheduler::append(Queue& queue, Kind kind, uint64_t remote, const char* local, size_t bytes) {
  const Policy policy = has_hints() ? policy_for(queue.rank, remote) : policy_;
  const Queue::Lock lock(queue);
  if (!takes_one_more(queue, policy)) return false;
  const bool copies = kind == Kind::kPut && bytes <= kMostCopied && packs(policy);
  if (copies && queue.stored + bytes > Queue::kMostStored) return false;
  note(queue, kind, remote, local, bytes, copies);
  queue.note_call(packs(policy) ? local : nullptr, remote, bytes);
  if (services_.completion.is_current_default(*queue.group->pending->context)) {
    open_append_run(queue, remote);
  }
  return true;
}

// Records a put like the last one of the biased thread. It calls nothing but `otherwise`, so that
// hardly any register has to be saved: there may be thousands of such puts in a row.
mob_status_t Scheduler::append_put(mob_rank_t rank, void* remote, const void* local, size_t bytes,
                                   Put* otherwise) {
  AppendRun& run = last_append_run();
  if (bytes - 1 >= kMostCopied || local == nullptr || remote == nullptr || !run.lock.enter()) {
    return otherwise(rank, remote, local, bytes);
  }
  auto& queue = static_cast<Queue&>(run);  // the run of no queue has no bias
  const auto place = reinterpret_cast<uintptr_t>(remote);
  const bool takes = queue.rank == rank && place - queue.alike_begin < queue.alike_bytes &&
                     queue.bias.further < queue.left &&
                     queue.stored + bytes <= Queue::kMostStored &&
                     !queue.is_next(place, local, bytes);
  if (!takes) [[unlikely]] {
    queue.lock.leave();
    return otherwise(rank, remote, local, bytes);
  }
  queue.count_calls();
  note(queue, Kind::kPut, place, static_cast<const char*>(local), bytes, true);
  queue.note_call(static_cast<const char*>(local), place, bytes);
  --queue.left;
  queue.lock.leave();
  return MOB_OK;
}

// Needs the queue's lock. The caller has to list() the queue unless it issues the group itself.
mob_status_t Scheduler::begin_group(Queue& queue, bool is_awaited) {
  mob_transfer_t transfer{};
  transfer.rank = queue.rank;
  services_.progress.note_start();
  auto group = std::make_unique<Group>();
  Completion& completion = services_.completion;
  group->pending =
      is_awaited ? completion.start_awaited(transfer) : completion.start(transfer, nullptr);
  if (group->pending == nullptr) return MOB_ERR_MEMORY;
  queue.group = group.release();  // end_part() deletes it
  if (services_.instrumentation.timeline() != nullptr) queue.begin_ns = Timeline::now();
  return MOB_OK;
}

// Needs the queue's lock. Makes threads that wait issue the queue's operations from now on.
void Scheduler::list(Queue& queue) {
  if (queue.is_listed) return;
  const std::lock_guard lock(mutex_);
  filled_.push_back(&queue);
  queue.is_listed = true;
  recorded_.store(true, std::memory_order_relaxed);
  // A thread that sleeps in a flush of the same context waits for this operation, too: it issues
  // it.
  services_.waiter.ring(services_.peers.rank());
}

bool Scheduler::is_full(const Queue& queue, const schedule::Operation& operation) const {
  return queue.calls == Queue::kMostOperations ||
         (operation.kept && queue.stored + operation.bytes > Queue::kMostStored);
}

mob_status_t Scheduler::add(Queue& queue, schedule::Operation& operation, Policy policy,
                            bool is_urgent, const char* lasting) {
  bool waits = false;
  {
    const Queue::Lock lock(queue);
    if (!queue.operations.empty() &&
        (queue.policy != policy || is_full(queue, operation) ||
         !services_.completion.is_current(*queue.group->pending->context))) {
      issue(queue);
    }
    const bool is_now = is_urgent && !may_wait_for_epoch(queue);
    // An operation that is issued alone is not listed: under the lock no message becomes pending.
    const bool is_alone =
        is_now && queue.operations.empty() && queue.under_way.load(std::memory_order_relaxed) == 0;
    if (queue.operations.empty()) {
      if (!is_alone) list(queue);
      if (const mob_status_t status = begin_group(queue)) return status;
      queue.policy = policy;
    }
    if (operation.kept) {
      char* copy = queue.store.get() + queue.stored;
      std::memcpy(copy, operation.local, operation.bytes);
      operation.local = copy;
      queue.stored += operation.bytes;
    }
    operation.fenced = queue.is_fenced && !queue.operations.empty();
    queue.is_fenced = false;
    queue.operations.add() = operation;
    queue.has_any.store(true, std::memory_order_relaxed);
    queue.note_call(packs(policy) ? lasting : nullptr, operation.remote, operation.bytes);
    if (is_alone) {
      issue(queue);
    } else if (is_now) {
      queue.is_urgent.store(true, std::memory_order_seq_cst);
      if (queue.under_way.load(std::memory_order_seq_cst) == 0) issue(queue);
    }
    waits = queue.under_way.load(std::memory_order_relaxed) > kMostFlights ||
            queue.alone.load(std::memory_order_relaxed) > kMostAlone;
  }
  // The operation is recorded: if the wait fails, the next flush reports the error.
  if (waits && !in_handler) static_cast<void>(wait_for_room(queue));
  return MOB_OK;
}

mob_status_t Scheduler::wait_for_room(Queue& queue) {
  // A dead rank answers nothing; the next flush reports it.
  struct Finder final : os::Watch {
    Finder(Peers& all, mob_rank_t target) : peers(all), rank(target) {}
    mob_status_t look() override {
      if (!peers.is_lost(rank)) return MOB_OK;
      return fail(MOB_ERR_PEER, "rank %d %s", rank, peers.fate_of_lost(rank).c_str());
    }
    Peers& peers;
    const mob_rank_t rank;
  } finder(services_.peers, queue.rank);
  return services_.waiter.wait_until(
      [&] {
        return queue.under_way.load(std::memory_order_relaxed) <= kMostFlights / 2 &&
               queue.alone.load(std::memory_order_relaxed) <= kMostAlone / 2;
      },
      &finder);
}

bool Scheduler::tell(mob_rank_t rank, const void* what, size_t bytes) {
  Queue* queue = find(rank);
  if (queue == nullptr) return false;
  const Queue::Lock lock(*queue);
  if (queue->operations.empty()) return false;
  if (!packs(queue->policy)) {
    issue(*queue);
    return false;
  }
  schedule::Operation made;
  made.kind = Kind::kTell;
  made.kept = true;
  made.fenced = true;
  made.bytes = bytes;
  if (is_full(*queue, made)) {
    issue(*queue);
    return false;
  }
  made.local = queue->store.get() + queue->stored;
  std::memcpy(made.local, what, bytes);
  queue->operations.add() = made;
  ++queue->calls;
  return issue(*queue);
}

void Scheduler::fence() {
  // Acquire, twice, pairs with the releases in issue_recorded(): operations that another thread is
  // about to issue are fenced, too. Operations that it has issued are known to use a path on which
  // later ones could overtake them.
  if (!recorded_.load(std::memory_order_acquire) && issuing_.load(std::memory_order_acquire) == 0) {
    return;
  }
  std::vector<Queue*> filled;
  {
    const std::lock_guard lock(mutex_);
    // Under the lock: a thread that has taken the queues off the list since then is counted.
    if (issuing_.load(std::memory_order_acquire) != 0) {
      for (const auto& queue : queues_) filled.push_back(queue.get());
    } else {
      filled = filled_;
    }
  }
  for (Queue* queue : filled) {
    const Queue::Lock lock(*queue);
    queue->is_fenced = true;
  }
}

}  // namespace mobius::engine
