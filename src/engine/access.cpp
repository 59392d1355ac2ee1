// SPDX-License-Identifier: BSD-3-Clause
#include "engine/access.h"

#include "base/status.h"
#include "engine/engine.h"
#include "engine/locks.h"

namespace mobius::engine {
namespace {

using base::fail;

// Readers' rows start on cache lines of their own.
size_t row_bytes(mob_rank_t members) {
  return (static_cast<size_t>(members) * sizeof(std::atomic<uint32_t>) + 63) / 64 * 64;
}

}  // namespace

// Takes the shared access of dead processes back while its target is waited for.
class Access::ReadersWatch final : public os::Watch {
 public:
  ReadersWatch(Access& access, mob_rank_t target) : access_(access), target_(target) {}
  mob_status_t look() override {
    access_.forget_dead_readers(target_);
    return MOB_OK;
  }

 private:
  Access& access_;
  mob_rank_t target_;
};

mob_status_t Access::make(Team& team, mob_status_t mine, std::unique_ptr<Access>* access) {
  auto made = std::make_unique<Access>();
  const auto members = static_cast<size_t>(team.size());
  const size_t bytes = members * (sizeof(os::PaddedHybridLockWord) + row_bytes(team.size()));
  const mob_status_t status = made->area_.make(team, bytes, mine, "mob_access_create");
  if (status == MOB_OK) *access = std::move(made);
  return status;
}

mob_status_t Access::release() {
  constexpr const char* kCall = "mob_access_free";
  // Everybody has given back theirs before anybody looks.
  mob_status_t status = team().barrier();
  const mob_rank_t self = team().rank();
  const mob_rank_t own_rank = team().map().world_rank(self);
  if (status == MOB_OK && is_held(team().engine(), gate(self))) {
    status = fail(MOB_ERR_STATE, "%s: a process has exclusive access to rank %d", kCall, own_rank);
  }
  for (mob_rank_t target = 0; target < team().size() && status == MOB_OK; ++target) {
    if (shared(self, target).load(std::memory_order_relaxed) == 0) continue;
    status = fail(MOB_ERR_STATE, "%s: rank %d has shared access to rank %d; unlock it first", kCall,
                  own_rank, team().map().world_rank(target));
  }
  if ((status = team().agree(status, kCall))) return status;
  return area_.release();
}

std::atomic<uint32_t>& Access::shared(mob_rank_t reader, mob_rank_t target) const {
  auto* rows = reinterpret_cast<unsigned char*>(&gate(team().size()));
  return reinterpret_cast<std::atomic<uint32_t>*>(rows + static_cast<size_t>(reader) *
                                                             row_bytes(team().size()))[target];
}

bool Access::has_exclusive(mob_rank_t target) const {
  return os::lock_owner(gate(target)) == team().engine().lock_id();
}

// Whether anybody has shared access to the target; nobody before `*next` does.
bool Access::is_read(mob_rank_t target, mob_rank_t* next) const {
  for (; *next < team().size(); ++*next) {
    // Acquire pairs with the release in leave_shared(): readers are done with what they read.
    if (shared(*next, target).load(std::memory_order_acquire) != 0) return true;
  }
  return false;
}

void Access::forget_dead_readers(mob_rank_t target) {
  LivenessProbe probe(team().engine());
  for (mob_rank_t reader = 0; reader < team().size(); ++reader) {
    std::atomic<uint32_t>& word = shared(reader, target);
    if (word.load(std::memory_order_relaxed) != 0 &&
        probe.has_gone(Engine::host_index(team().map().world_rank(reader)))) {
      word.store(0, std::memory_order_release);
    }
  }
}

// Counts the caller as a reader unless somebody is at the gate.
bool Access::enter_shared(mob_rank_t target) {
  // Sequentially consistent: counted before the look at the gate, as the gate is locked before the
  // look at the counts (the fence in lock_exclusive()). The look also pairs, as an acquire, with
  // the release of the gate by who had exclusive access.
  shared(team().rank(), target).fetch_add(1, std::memory_order_seq_cst);
  if (gate(target).state.load(std::memory_order_seq_cst) == 0) return true;
  leave_shared(target);
  return false;
}

// False if the calling process has no shared access.
bool Access::leave_shared(mob_rank_t target) {
  std::atomic<uint32_t>& word = shared(team().rank(), target);
  uint32_t count = word.load(std::memory_order_relaxed);
  do {
    if (count == 0) return false;
    // Sequentially consistent, as the look at the gate: either that finds who waits for the count,
    // or who waits finds the new count. Release pairs with the acquire in is_read().
  } while (!word.compare_exchange_weak(count, count - 1, std::memory_order_seq_cst,
                                       std::memory_order_relaxed));
  if (gate(target).state.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
    const uint32_t waiting = os::lock_owner(gate(target));
    if (waiting != 0) team().engine().ring(Engine::lock_owner(waiting));
  }
  return true;
}

mob_status_t Access::lock_exclusive(const char* call, mob_rank_t target, int* recovered) {
  Engine& engine = team().engine();
  if (const mob_status_t status = acquire_lock(engine, call, gate(target), recovered)) {
    return status;
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with enter_shared()
  mob_rank_t next = 0;
  if (!is_read(target, &next)) return MOB_OK;
  ReadersWatch watch(*this, target);
  const mob_status_t status = engine.wait_until([&] { return !is_read(target, &next); }, &watch);
  if (status != MOB_OK) static_cast<void>(os::unlock(gate(target), engine.lock_id()));
  return status;
}

mob_status_t Access::lock_shared(const char* call, mob_rank_t target, int* recovered) {
  if (enter_shared(target)) [[likely]] {
    if (recovered != nullptr) *recovered = 0;
    return MOB_OK;
  }
  os::HybridLockWord& word = gate(target);
  if (const mob_status_t status = acquire_lock(team().engine(), call, word, recovered)) {
    return status;
  }
  shared(team().rank(), target).fetch_add(1, std::memory_order_relaxed);
  return release_lock(team().engine(), call, word);
}

mob_status_t Access::try_exclusive(const char* call, mob_rank_t target, int* acquired,
                                   int* recovered) {
  Engine& engine = team().engine();
  int at_gate = 0;
  if (const mob_status_t status =
          try_acquire_lock(engine, call, gate(target), &at_gate, recovered)) {
    return status;
  }
  *acquired = 0;
  if (at_gate == 0) return MOB_OK;
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with enter_shared()
  mob_rank_t next = 0;
  if (is_read(target, &next)) forget_dead_readers(target);
  if (is_read(target, &next)) return release_lock(engine, call, gate(target));
  *acquired = 1;
  return MOB_OK;
}

mob_status_t Access::try_shared(const char* call, mob_rank_t target, int* acquired,
                                int* recovered) {
  if (enter_shared(target)) {
    *acquired = 1;
    if (recovered != nullptr) *recovered = 0;
    return MOB_OK;
  }
  // It may be a dead process that is at the gate, or another reader on its way.
  int at_gate = 0;
  os::HybridLockWord& word = gate(target);
  if (const mob_status_t status =
          try_acquire_lock(team().engine(), call, word, &at_gate, recovered)) {
    return status;
  }
  *acquired = at_gate;
  if (at_gate == 0) return MOB_OK;
  shared(team().rank(), target).fetch_add(1, std::memory_order_relaxed);
  return release_lock(team().engine(), call, word);
}

mob_status_t Access::unlock(const char* call, mob_rank_t target) {
  if (has_exclusive(target)) return release_lock(team().engine(), call, gate(target));
  if (shared(team().rank(), target).load(std::memory_order_relaxed) != 0) {
    const mob_status_t status = team().engine().complete_transfers(call);
    if (leave_shared(target)) return status;
  }
  return fail(MOB_ERR_STATE, "%s: no access to rank %d to give back; mob_access_lock() gains it",
              call, team().map().world_rank(target));
}

mob_status_t Access::lock_all(const char* call, int* recovered) {
  for (mob_rank_t target = 0; target < team().size(); ++target) {
    if (!has_exclusive(target)) continue;
    return fail(MOB_ERR_STATE, "%s: the calling thread has exclusive access to rank %d", call,
                team().map().world_rank(target));
  }
  int any = 0;
  for (mob_rank_t target = 0; target < team().size(); ++target) {
    int one = 0;
    if (const mob_status_t status = lock_shared(call, target, &one)) return status;
    any |= one;
  }
  if (recovered != nullptr) *recovered = any;
  return MOB_OK;
}

mob_status_t Access::unlock_all(const char* call) {
  for (mob_rank_t target = 0; target < team().size(); ++target) {
    if (shared(team().rank(), target).load(std::memory_order_relaxed) != 0) continue;
    return fail(MOB_ERR_STATE, "%s: no shared access to rank %d to give back", call,
                team().map().world_rank(target));
  }
  const mob_status_t status = team().engine().complete_transfers(call);
  for (mob_rank_t target = 0; target < team().size(); ++target) leave_shared(target);
  return status;
}

}  // namespace mobius::engine
