// SPDX-License-Identifier: BSD-3-Clause
#include "job/host_group.h"

#include <unistd.h>

#include <atomic>
#include <cstring>

#include "base/status.h"
#include "os/process/process.h"

namespace mobius::job {
namespace {

using base::fail;

// Ends a wait for the group when one of its processes has died.
class GroupWatch final : public os::Watch {
 public:
  GroupWatch(ControlBlock& block, Liveness& liveness, mob_rank_t first, mob_rank_t size)
      : block_(block), liveness_(liveness), first_(first), size_(size) {}

  mob_status_t look() override {
    for (mob_rank_t i = first_; i < first_ + size_; ++i) {
      if (liveness_.is_dead(i)) {
        return fail(MOB_ERR_PEER, "mob_init: rank %d died before all had joined", i);
      }
    }
    // A process may have died before it had a place here.
    if (first_ != 0 &&
        block_.world(first_).state.load(std::memory_order_acquire) >= WorldState::kFailed) {
      return fail(MOB_ERR_PEER, "the other processes gave up before all had joined");
    }
    return MOB_OK;
  }

 private:
  ControlBlock& block_;
  Liveness& liveness_;
  const mob_rank_t first_;
  const mob_rank_t size_;
};

}  // namespace

mob_status_t HostGroup::open(int segment, mob_rank_t index, bool pid_is_shared,
                             ControlBlock* block) {
  const auto known = [index](ControlBlock&, mob_rank_t* result) {
    *result = index;
    return MOB_OK;
  };
  return open(segment, known, pid_is_shared, block);
}

mob_status_t HostGroup::map(int segment, ControlBlock* block) {
  segment_.hold(segment);
  block_ = block;
  mapped_block_ = block == nullptr;
  return mapped_block_ ? control_map(segment, &block_) : MOB_OK;
}

void HostGroup::enter(mob_rank_t index, bool pid_is_shared) {
  index_ = index;
  ProcessSlot& mine = block_->slot(index_);
  first_ = mine.world;
  size_ = first_ == 0 ? block_->header.size : block_->world(first_).size;
  barrier_ = first_ == 0 ? &block_->barrier : &block_->world(first_).barrier;
  mine.pid.store(getpid(), std::memory_order_relaxed);
  mine.start_time.store(pid_is_shared ? os::process_start_time(getpid()) : 0,
                        std::memory_order_relaxed);
  mine.processors = os::ProcessorSet::allowed();
  liveness_.open(*block_, first_ + size_, index_);
  // Release pairs with the acquire in Liveness: the fields above are visible with the state.
  mine.state.store(ProcessState::kLive, std::memory_order_release);
  crowding_.open(&block_->slot(0).processor, sizeof(ProcessSlot),
                 static_cast<uint32_t>(first_ + size_), static_cast<uint32_t>(index_));
}

void HostGroup::set_policy(const os::WaitPolicy& policy, bool spreads) {
  if (block_ != nullptr) crowding_.set_count(static_cast<uint32_t>(bound()));
  const std::lock_guard lock(policies_mutex_);
  os::WaitPolicy& added = policies_.emplace_back(policy);
  added.crowding = spreads ? &crowding_ : nullptr;
  policy_.store(&added, std::memory_order_release);  // pairs with the acquire in policy()
}

void HostGroup::close() {
  set_policy(policy());  // the places are about to go
  liveness_.close();
  if (block_ != nullptr && mapped_block_) control_unmap(block_);
  block_ = nullptr;
  segment_.close();
}

os::Room HostGroup::room_for(std::span<const mob_rank_t> indices) const {
  std::vector<os::ProcessorSet> sets;
  for (const mob_rank_t index : indices) sets.push_back(block_->slot(index).processors);
  return os::room_for(sets);
}

namespace {

// The first number of the oldest world that a world is connected with.
mob_rank_t oldest_of(ControlBlock& block, mob_rank_t world) {
  while (world != 0 && block.world(world).is_connected.load(std::memory_order_acquire) != 0) {
    world = block.world(world).parent;
  }
  return world;
}

}  // namespace

bool HostGroup::is_connected(mob_rank_t index) const {
  if (is_own(index)) return true;
  const mob_rank_t world = block_->slot(index).world;
  // Acquire: the size is final.
  if (world != 0 &&
      block_->world(world).state.load(std::memory_order_acquire) != WorldState::kJoined) {
    return false;
  }
  // A number without a process: it is being given out, and still has world 0, or the process could
  // not be started.
  const mob_rank_t size = world == 0 ? block_->header.size : block_->world(world).size;
  if (index >= world + size) return false;
  return oldest_of(*block_, world) == oldest_of(*block_, first_);
}

bool HostGroup::is_foreign(mob_rank_t index) const {
  const mob_rank_t world = block_->slot(index).world;
  return world != 0 && block_->world(world).is_foreign.load(std::memory_order_relaxed) != 0;
}

mob_status_t HostGroup::barrier() {
  if (size() == 1) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return MOB_OK;
  }
  BarrierBlock& shared = *barrier_;
  const uint32_t generation = shared.generation.load(std::memory_order_relaxed);
  const uint32_t before = shared.arrived.fetch_add(1, std::memory_order_seq_cst);
  if (before + 1 == static_cast<uint32_t>(size())) {
    shared.arrived.store(0, std::memory_order_relaxed);
    // Release pairs with the acquire in wait_while_equal(): the reset above and everything that any
    // process wrote before it arrived are visible to all that leave.
    shared.generation.store(generation + 1, std::memory_order_release);
    os::wake_all(shared.generation, shared.sleepers);
    return MOB_OK;
  }
  GroupWatch watch(*block_, liveness_, first_, size_);
  return os::wait_while_equal(shared.generation, generation, shared.sleepers, policy(), &watch);
}

mob_status_t HostGroup::agree(mob_status_t mine, const char* what) {
  // Like exchange() but without allocating, because lack of memory may be the error.
  std::memcpy(block_->slot(index_).exchange, &mine, sizeof mine);
  mob_status_t status = barrier();
  mob_status_t worst = MOB_OK;
  mob_rank_t failed = 0;
  for (mob_rank_t i = first_; status == MOB_OK && worst == MOB_OK && i < first_ + size_; ++i) {
    std::memcpy(&worst, block_->slot(i).exchange, sizeof worst);
    failed = i;
  }
  if (status == MOB_OK) status = barrier();
  if (mine != MOB_OK) return mine;
  if (status != MOB_OK || worst == MOB_OK) return status;
  return fail(MOB_ERR_PEER, "%s failed because it failed at local peer %d with %s", what, failed,
              mob_status_name(worst));
}

}  // namespace mobius::job
