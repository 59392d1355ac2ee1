// SPDX-License-Identifier: BSD-3-Clause
#include "engine/scheduler/scheduler.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/status.h"
#include "engine/message/message.h"
#include "engine/network/network.h"
#include "engine/progress/peer_watch.h"
#include "engine/scheduler/scheduler_queue.h"
#include "engine/segment/segment_layout.h"
#include "schedule/wire.h"

namespace mobius::engine {

static_assert(schedule::kMemoryUnit == kChunkBytes, "where parts begin");

using base::fail;
using schedule::Policy;

namespace {

// Flights that are kept for reuse: about as many as are pending at a time.
constexpr size_t kMostSpare = 128;

}  // namespace

Scheduler::Scheduler(const SchedulerServices& services) : services_(services) {}
Scheduler::~Scheduler() = default;

mob_status_t Scheduler::open() {
  const base::Settings& settings = services_.settings;
  policy_ = static_cast<Policy>(settings.number(base::SettingId::kSchedule));
  by_rank_ = SparseArray<std::atomic<Queue*>>(static_cast<size_t>(services_.peers.most()));
  services_.messages.register_internal(
      InternalHandler::kPacked,
      [](const mob_message_t* message, void* self, mob_delivery_t* delivery) {
        static_cast<Scheduler*>(self)->answered(*message, delivery);
      },
      this);
  is_open_ = true;
  return MOB_OK;
}

mob_status_t Scheduler::make_queue(mob_rank_t rank) {
  Link* link = nullptr;
  if (const mob_status_t status = services_.network.link(rank, &link)) return status;
  const std::lock_guard lock(mutex_);
  if (find(rank) != nullptr) return MOB_OK;
  auto queue = std::make_unique<Queue>(rank);
  queue->spare.reserve(kMostSpare);
  queue->costs.message_ns =
      static_cast<double>(services_.settings.number(base::SettingId::kMessageNs));
  // A packed message, with everything in front of its pieces, fits into one record.
  constexpr size_t kBefore = 256;
  queue->costs.message_bytes = std::min(queue->costs.message_bytes, link->record_bytes() - kBefore);
  queue->wire =
      std::make_unique_for_overwrite<unsigned char[]>(schedule::most_wire_bytes(queue->costs));
  by_rank_[static_cast<size_t>(rank)].store(queue.get(), std::memory_order_release);
  queues_.push_back(std::move(queue));
  return MOB_OK;
}

Scheduler::Queue* Scheduler::queue_of(mob_rank_t rank) {
  Queue* queue = find(rank);
  if (queue != nullptr) [[likely]] {
    return queue;
  }
  return make_queue(rank) == MOB_OK ? find(rank) : nullptr;
}

mob_status_t Scheduler::message_bytes(mob_rank_t rank, size_t* bytes) {
  if (const mob_status_t status = make_queue(rank)) return status;
  *bytes = find(rank)->costs.message_bytes;
  return MOB_OK;
}

Policy Scheduler::policy_for(mob_rank_t rank, uint64_t remote) const {
  if (hinted_epochs_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    const Queue* queue = find(rank);
    const int hint = queue == nullptr ? -1 : queue->epochs_hint.load(std::memory_order_relaxed);
    if (hint >= 0) return static_cast<Policy>(hint);
  }
  if (looks_at_contexts_.load(std::memory_order_relaxed)) [[unlikely]] {
    if (const int hint = services_.completion.schedule(); hint >= 0) {
      return static_cast<Policy>(hint);
    }
  }
  if (hints_.any()) [[unlikely]] {
    return hints_.find(rank, remote).value_or(policy_);
  }
  return policy_;
}

void Scheduler::set_hint(const void* allocation, std::vector<HintedRange> ranges,
                         std::optional<Policy> policy) {
  if (hints_.set(allocation, std::move(ranges), policy)) end_append_runs();
}

void Scheduler::look_at_contexts() {
  looks_at_contexts_.store(true, std::memory_order_relaxed);
  end_append_runs();
}

void Scheduler::end_append_runs() {
  for (Queue* queue : all_queues()) {
    const Queue::Lock held(*queue);
    queue->end_append_run();
  }
}

// A copy of the list: a thread that holds the lock of a queue may wait for the lock of the list.
std::vector<Scheduler::Queue*> Scheduler::all_queues() {
  const std::lock_guard lock(mutex_);
  std::vector<Queue*> all;
  for (const auto& queue : queues_) all.push_back(queue.get());
  return all;
}

void Scheduler::open_epoch(mob_rank_t rank, std::optional<Policy> hint, Epoch epoch) {
  if (!is_open_ || services_.peers.is_here(rank)) return;
  Queue* queue = queue_of(rank);
  if (queue == nullptr) return;
  if (epoch == Epoch::kWaits) {
    queue->waiting_epochs.fetch_add(1, std::memory_order_relaxed);
    queue->epoch_thread.store(services_.peers.lock_id(), std::memory_order_relaxed);
  }
  queue->epochs.fetch_add(1, std::memory_order_relaxed);
  if (!hint) return;
  if (queue->epochs_hint.exchange(static_cast<int>(*hint), std::memory_order_relaxed) < 0) {
    hinted_epochs_.fetch_add(1, std::memory_order_relaxed);
  }
  const Queue::Lock lock(*queue);
  queue->end_append_run();
}

void Scheduler::close_epoch(mob_rank_t rank, Epoch epoch) {
  Queue* queue = find(rank);
  if (queue == nullptr) return;
  if (epoch == Epoch::kWaits) queue->waiting_epochs.fetch_sub(1, std::memory_order_relaxed);
  if (queue->epochs.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  if (queue->epochs_hint.exchange(-1, std::memory_order_relaxed) >= 0) {
    hinted_epochs_.fetch_sub(1, std::memory_order_relaxed);
    const Queue::Lock held(*queue);
    queue->end_append_run();
  }
}

void Scheduler::alone_ended(mob_rank_t rank) {
  find(rank)->alone.fetch_sub(1, std::memory_order_relaxed);
}

bool Scheduler::may_wait_for_epoch(const Queue& queue) const {
  return queue.waiting_epochs.load(std::memory_order_relaxed) != 0 &&
         queue.epoch_thread.load(std::memory_order_relaxed) == services_.peers.lock_id();
}

void Scheduler::give_up(mob_rank_t rank) {
  Queue* queue = find(rank);
  if (queue == nullptr) return;
  const Queue::Lock lock(*queue);
  const std::lock_guard nothing_comes(queue->answers);
  const auto lost = [&] {
    return fail(MOB_ERR_PEER, "rank %d %s; it has not answered", rank,
                services_.network.fate(rank).c_str());
  };
  while (!queue->flights.empty()) {
    const std::unique_ptr<Flight> flight = std::move(queue->flights.front());
    queue->flights.pop_front();
    end_part(*flight->group, lost());
  }
  queue->count_flights();
  if (queue->group == nullptr) return;
  Group& group = *std::exchange(queue->group, nullptr);
  for (const schedule::Operation& operation : queue->operations) {
    if (operation.waiter() == nullptr) continue;
    auto& pending = *static_cast<Pending*>(operation.waiter());
    services_.completion.complete(pending, lost());
  }
  queue->empty();
  end_part(group, lost());
}

void Scheduler::close() {
  is_open_ = false;
  leave_append_run();
  if (services_.settings.number(base::SettingId::kStats) == 0) return;
  const std::string text = report();
  // An error is ignored: there is nowhere to report it.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

std::string Scheduler::report() const {
  std::string text;
  for (mob_rank_t rank = 0; !by_rank_.empty() && rank < services_.peers.bound(); ++rank) {
    Queue* queue = find(rank);
    if (queue == nullptr) continue;
    const Queue::Lock lock(*queue);
    const std::lock_guard nothing_comes(queue->answers);
    if (queue->recorded == 0) continue;
    const schedule::Savings& saved = queue->savings;
    char line[256];
    std::snprintf(line, sizeof line,
                  "mobius: rank %d: schedule to %d: %zu recorded, %zu merged, %zu packed, %zu "
                  "re-ordered, %zu messages, %zu saved\n",
                  services_.peers.rank(), queue->rank, static_cast<size_t>(queue->recorded),
                  static_cast<size_t>(saved.merged), static_cast<size_t>(saved.packed),
                  static_cast<size_t>(saved.reordered), static_cast<size_t>(saved.messages),
                  static_cast<size_t>(queue->recorded - saved.messages));
    text += line;
    const schedule::Costs& costs = queue->costs;
    std::snprintf(line, sizeof line,
                  "mobius: rank %d: link to %d: latency %.1f us, out %.0f MB/s, in %.0f MB/s, one "
                  "more message %.1f us\n",
                  services_.peers.rank(), queue->rank, costs.latency_ns / 1000,
                  costs.out_bytes_per_ns * 1000, costs.in_bytes_per_ns * 1000,
                  costs.message_ns / 1000);
    text += line;
  }
  return text;
}

}  // namespace mobius::engine
