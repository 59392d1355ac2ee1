// SPDX-License-Identifier: BSD-3-Clause
#include "engine/remote/remote_locks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/message/message.h"
#include "engine/progress/peer_watch.h"
#include "engine/progress/progress.h"
#include "engine/remote/remote_objects.h"
#include "engine/segment/locks/shared_lock.h"
#include "engine/segment/segment.h"

namespace mobius::engine {

using base::fail;

mob_status_t held_already(const char* call) {
  return fail(MOB_ERR_STATE,
              "%s: the calling thread holds it already, and would wait for itself for ever", call);
}

// Ends a wait if the hosting process cannot answer any more, and makes it check for dead owners.
class RemoteLocks::HostingWatch final : public os::Watch {
 public:
  HostingWatch(Peers& peers, RemoteObjects& objects, const char* call, mob_rank_t rank)
      : peers_(peers), objects_(objects), call_(call), rank_(rank) {}

  mob_status_t look() override {
    if (peers_.is_lost(rank_)) {
      const bool left = peers_.has_left(rank_);
      return fail(MOB_ERR_PEER, "%s: rank %d, on another host, %s", call_, rank_,
                  left ? "has left the job" : peers_.fate(rank_).c_str());
    }
    const mob_status_t asked = without_exceptions(
        call_, [&] { return objects_.ask(rank_, {.what = RemoteObjects::What::kLookAgain}); });
    // Without memory to ask with, the next check asks. The wait must not end here, because the
    // thread would still be given the lock.
    return asked == MOB_ERR_MEMORY ? MOB_OK : asked;
  }

 private:
  Peers& peers_;
  RemoteObjects& objects_;
  const char* call_;
  const mob_rank_t rank_;
};

RemoteLocks::Held RemoteLocks::held_by_self(const RemoteLock& lock) const {
  return {lock.object, lock.rank, lock.index, services_.peers.lock_id()};
}

bool RemoteLocks::holds(const RemoteLock& lock) {
  const std::lock_guard guard(mutex_);
  return held_.contains(held_by_self(lock));
}

// Registers a ticket, so that answers find it, until the end of the scope.
class RemoteLocks::TicketScope {
 public:
  TicketScope(RemoteLocks& locks, Ticket& ticket) : number(locks.add(ticket)), locks_(locks) {}
  ~TicketScope() {
    const std::lock_guard guard(locks_.mutex_);
    locks_.tickets_.erase(number);
  }
  TicketScope(const TicketScope&) = delete;
  TicketScope& operator=(const TicketScope&) = delete;

  const uint64_t number;

 private:
  RemoteLocks& locks_;
};

uint64_t RemoteLocks::add(Ticket& ticket) {
  const std::lock_guard guard(mutex_);
  tickets_.emplace(++next_ticket_, &ticket);
  return next_ticket_;
}

mob_status_t RemoteLocks::claim(const char* call, const RemoteLock& lock, ClaimMode mode,
                                bool waits, RemoteLockBatch* batch, Answer* answer) {
  if (in_handler) {
    return fail(MOB_ERR_STATE,
                "%s: rank %d is on another host, and a handler must not wait for its answer", call,
                lock.rank);
  }
  if (holds(lock)) return held_already(call);
  // The entry for held_, made now so that the answer needs no memory.
  std::set<Held> entry{held_by_self(lock)};
  Ticket ticket;
  ticket.batch = batch;
  const TicketScope registered(*this, ticket);
  const uint64_t number = registered.number;
  mob_status_t status =
      batch != nullptr ? send(lock, mode, *batch, number)
                       : objects_.ask(lock.rank, {.what = waits ? RemoteObjects::What::kClaim
                                                                : RemoteObjects::What::kTryClaim,
                                                  .number = services_.peers.lock_id(),
                                                  .mode = mode,
                                                  .object = lock.object,
                                                  .index = lock.index,
                                                  .value = number});
  if (status == MOB_OK) {
    HostingWatch watch(services_.peers, objects_, call, lock.rank);
    // Acquire pairs with the release in answered().
    status = services_.waiter.wait_until(
        [&] { return ticket.answer.load(std::memory_order_acquire) != Answer::kNone; }, &watch);
  }
  const std::lock_guard guard(mutex_);
  if (status != MOB_OK) return status;
  *answer = ticket.answer.load(std::memory_order_acquire);
  if (*answer == Answer::kUnknown) {
    return fail(MOB_ERR_HANDLE, "%s: rank %d has freed it", call, lock.rank);
  }
  const bool keeps = *answer != Answer::kHeld && (batch == nullptr || !batch->ends);
  if (keeps && mode == ClaimMode::kExclusive) held_.insert(entry.extract(entry.begin()));
  return MOB_OK;
}

mob_status_t RemoteLocks::acquire(const char* call, const RemoteLock& lock, ClaimMode mode,
                                  int* recovered) {
  Answer answer{};
  if (const mob_status_t status = claim(call, lock, mode, true, nullptr, &answer)) return status;
  if (recovered != nullptr) *recovered = answer == Answer::kRecovered ? 1 : 0;
  return MOB_OK;
}

mob_status_t RemoteLocks::acquire_for(const char* call, const RemoteLock& lock, ClaimMode mode,
                                      RemoteLockBatch* batch) {
  Answer answer{};
  return claim(call, lock, mode, true, batch, &answer);
}

mob_status_t RemoteLocks::try_acquire(const char* call, const RemoteLock& lock, ClaimMode mode,
                                      int* acquired, int* recovered) {
  Answer answer{};
  if (const mob_status_t status = claim(call, lock, mode, false, nullptr, &answer)) return status;
  *acquired = answer == Answer::kHeld ? 0 : 1;
  if (recovered != nullptr) *recovered = answer == Answer::kRecovered ? 1 : 0;
  return MOB_OK;
}

mob_status_t RemoteLocks::give_back(const RemoteLock& lock, ClaimMode mode) {
  {
    const std::lock_guard guard(mutex_);
    unsettled_.insert(lock.rank);
    is_unsettled_.store(true, std::memory_order_relaxed);
  }
  const mob_status_t status = objects_.ask(lock.rank, {.what = RemoteObjects::What::kGiveBack,
                                                       .number = services_.peers.lock_id(),
                                                       .mode = mode,
                                                       .object = lock.object,
                                                       .index = lock.index});
  // If there was no memory to ask with, the hosting process still counts the thread as holder.
  const std::lock_guard guard(mutex_);
  if (mode == ClaimMode::kExclusive) held_.erase(held_by_self(lock));
  return status;
}

// A process that died takes no claims any more, so errors do not matter.
void RemoteLocks::settle_now() {
  std::set<mob_rank_t> ranks;
  {
    const std::lock_guard guard(mutex_);
    ranks.swap(unsettled_);
    is_unsettled_.store(false, std::memory_order_relaxed);
  }
  for (const mob_rank_t rank : ranks) {
    static_cast<void>(services_.messages.flush(rank, Whose::kEveryones));
  }
}

// The serving thread wakes the waiting one.
void RemoteLocks::answered(uint64_t ticket, Answer answer) {
  const std::lock_guard guard(mutex_);
  const auto found = tickets_.find(ticket);
  if (found != tickets_.end()) found->second->answer.store(answer, std::memory_order_release);
}

void RemoteLocks::answer(const Claim& claim, Answer answer) {
  // If the origin is gone, nobody waits for the answer.
  if (claim.work != nullptr) return reply(claim, answer, {});
  static_cast<void>(objects_.ask(claim.rank, {.what = RemoteObjects::What::kAnswer,
                                              .number = static_cast<uint32_t>(answer),
                                              .value = claim.ticket}));
}

void RemoteLocks::serve(Claim claim) {
  RemoteObject* object = objects_.find(claim.object);
  if (object == nullptr || Peers::lock_owner(claim.id) != claim.rank) {
    return answer(claim, Answer::kUnknown);
  }
  if (claim.waits) {
    waiting_.push_back(claim);
    // Sequentially consistent, and before the attempt: pairs with the fence in released().
    services_.segment.own_process().doorbell.claims.fetch_add(1, std::memory_order_seq_cst);
    look_at_all(nullptr);
    return;
  }
  const bool others = std::ranges::any_of(waiting_, [&](const Claim& waiting) {
    return waiting.object == claim.object && waiting.index == claim.index;
  });
  LivenessProbe probe(services_.peers);
  if (!others && object->attempt(claim, &probe)) {
    return answer(claim, claim.recovered ? Answer::kRecovered : Answer::kAcquired);
  }
  object->abandon(claim);
  answer(claim, Answer::kHeld);
}

bool RemoteLocks::look() {
  const base::ErrorsOfOthers errors;
  const std::lock_guard guard(objects_.mutex_);
  return look_at_all(nullptr);
}

bool RemoteLocks::look_at_all(os::OwnerProbe* probe) {
  // A waiting claim holds up the later claims of the same lock.
  std::vector<std::pair<uint64_t, uint64_t>> held_up;
  bool satisfied = false;
  for (auto claim = waiting_.begin(); claim != waiting_.end();) {
    const std::pair place(claim->object, claim->index);
    RemoteObject* object = objects_.find(claim->object);
    const bool gone = probe != nullptr && probe->is_dead(claim->id);
    if (object != nullptr && !gone) {
      const bool is_next = std::ranges::find(held_up, place) == held_up.end();
      if (!is_next || !object->attempt(*claim, probe)) {
        claim->queued = true;
        if (is_next) held_up.push_back(place);
        ++claim;
        continue;
      }
      satisfy(*claim, *object);
      satisfied = true;
    } else if (object != nullptr) {
      object->abandon(*claim);
    } else {
      answer(*claim, Answer::kUnknown);
    }
    claim = waiting_.erase(claim);
    services_.segment.own_process().doorbell.claims.fetch_sub(1, std::memory_order_relaxed);
  }
  return satisfied;
}

void RemoteLocks::released(Segment& segment, mob_rank_t host) {
  ProcessBlock::Doorbell& hosting = segment.doorbell(host);
  // The release comes before the check: pairs with the count in serve().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (hosting.claims.load(std::memory_order_relaxed) != 0) Progress::wake_after_fence(hosting);
}

}  // namespace mobius::engine
