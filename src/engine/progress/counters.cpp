// SPDX-License-Identifier: BSD-3-Clause
#include "engine/progress/counters.h"

#include "base/status.h"
#include "engine/progress/peer_watch.h"

namespace mobius::engine {

using base::fail;

// Counters come in pages; their memory is kept for later counters.
mob_status_t Counters::grow() {
  constexpr size_t kBytes = 4096;
  constexpr size_t kCount = kBytes / sizeof(mob_counter);
  free_.reserve(made_ + kCount);  // for all there are, so that giving one back asks for nothing
  uint64_t first = 0;
  if (const mob_status_t status = segment_.chunks().claim(1, &first)) return status;
  const uint64_t offset = first << kChunkShift;
  mob_status_t status = segment_.reserve_memory(offset, kBytes);
  if (status == MOB_OK) status = segment_.window().allow(offset, 1);
  if (status != MOB_OK) {
    segment_.chunks().release(first, 1);
    return status;
  }
  segment_.chunks().set_region(first, {offset, kBytes, segment_.peers().host().index()});
  auto* counters = static_cast<mob_counter*>(segment_.local_address(offset));
  for (size_t i = kCount; i-- > 0;) free_.push_back(&counters[i]);
  made_ += kCount;
  return MOB_OK;
}

mob_status_t Counters::create(mob_counter_t* counter) {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    if (const mob_status_t status = grow()) return status;
  }
  mob_counter* made = free_.back();
  free_.pop_back();
  made->value.store(0, std::memory_order_relaxed);
  const uint64_t uses = made->uses++ & kUses;
  // Release: a thread that finds it live finds it 0.
  made->live.store(kLive | uses, std::memory_order_release);
  *counter = reinterpret_cast<mob_counter_t>(reinterpret_cast<uintptr_t>(made) | uses);
  return MOB_OK;
}

mob_status_t Counters::free(const char* call, mob_counter_t counter) {
  mob_counter* found = find(call, segment_.peers().rank(), counter);
  if (found == nullptr) return MOB_ERR_HANDLE;
  uint64_t live = kLive | (reinterpret_cast<uintptr_t>(counter) & kUses);
  if (!found->live.compare_exchange_strong(live, 0, std::memory_order_relaxed)) {
    return fail(MOB_ERR_HANDLE, "%s: the counter at %p was freed before", call,
                static_cast<void*>(counter));
  }
  const std::lock_guard lock(mutex_);
  free_.push_back(found);
  return MOB_OK;
}

bool Counters::any() {
  const std::lock_guard lock(mutex_);
  return made_ != 0;
}

bool Counters::is_elsewhere(mob_rank_t owner, mob_counter_t counter) {
  const Peers& peers = segment_.peers();
  return owner != peers.rank() && peers.is_here(owner) && peers.is_foreign(owner) &&
         segment_.process(peers.host_index(owner)).inbox.has_handler(kServeHandler) &&
         segment_.reach(owner, &own(counter), sizeof(mob_counter)) == nullptr;
}

mob_counter* Counters::find(const char* call, mob_rank_t owner, mob_counter_t counter) {
  if (is_shared(owner)) return home_->find(call, home_->segment_.peers().rank(), counter);
  const auto handle = reinterpret_cast<uintptr_t>(counter);
  const uint64_t live = kLive | (handle & kUses);
  // Not by own(): any number may come in as a handle.
  const auto* there = reinterpret_cast<const void*>(handle & ~kUses);
  auto* found = static_cast<mob_counter*>(segment_.reach(owner, there, sizeof(mob_counter)));
  if (found != nullptr && found->live.load(std::memory_order_acquire) == live) return found;
  fail(MOB_ERR_HANDLE, "%s: %p is not a live counter of rank %d (freed before, or another's)", call,
       static_cast<void*>(counter), owner);
  return nullptr;
}

void Counters::count(mob_rank_t owner, mob_counter& counter, uint64_t amount) {
  if (is_shared(owner)) return home_->count(home_->segment_.peers().rank(), counter, amount);
  // Pairs with the acquire in wait() and mob_counter_get(). Sequentially consistent: also the fence
  // in front of the look at sleepers.
  counter.value.fetch_add(amount, std::memory_order_seq_cst);
  waiter_.ring_after_fence(owner);
}

void Counters::count_named(mob_counter_t counter) {
  const mob_rank_t own = segment_.peers().rank();
  mob_counter* found = find("a message", own, counter);
  if (found != nullptr) count(own, *found);
}

mob_status_t Counters::wait(mob_counter& counter, uint64_t value, uint64_t* left) {
  uint64_t held = 0;
  const auto take = [&] {
    held = counter.value.load(std::memory_order_acquire);
    while (held >= value) {
      if (counter.value.compare_exchange_weak(held, held - value, std::memory_order_acquire,
                                              std::memory_order_acquire)) {
        return true;
      }
    }
    return false;
  };
  if (!take()) {
    AnyPeerWatch watch(segment_.peers(), "mob_counter_wait");
    if (const mob_status_t status = waiter_.wait_until(take, &watch)) return status;
  }
  if (left != nullptr) *left = held - value;
  return MOB_OK;
}

}  // namespace mobius::engine
