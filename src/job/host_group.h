// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The processes of one host that share a segment: barrier, exchange and liveness, which they need
// before they have teams.

#include <mobius/job.h>

#include <atomic>
#include <concepts>
#include <cstring>
#include <deque>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "job/control.h"
#include "job/liveness.h"
#include "os/file/held_descriptor.h"
#include "os/sync/crowding.h"
#include "os/sync/waiter.h"

namespace mobius::job {

// All members but the accessors are collective over the group: every process calls them in the same
// order. Not thread-safe. They return MOB_ERR_PEER when a process of the group has died; the group
// is unusable then.
class HostGroup {
 public:
  HostGroup() = default;
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;
  ~HostGroup() { close(); }

  // Maps the control block of `segment` and owns the descriptor from now on, also on failure.
  // `pid_is_shared`: the other processes see this one under the process id that it has for itself.
  // `block`: the segment's control block where the caller has mapped it (the caller unmaps it after
  // close()), or null. The second form asks find(block, &index) for the slot of this process.
  mob_status_t open(int segment, mob_rank_t index, bool pid_is_shared = true,
                    ControlBlock* block = nullptr);
  template <typename Find>
    requires std::invocable<Find, ControlBlock&, mob_rank_t*>
  mob_status_t open(int segment, Find find, bool pid_is_shared, ControlBlock* block) {
    mob_status_t status = map(segment, block);
    mob_rank_t index = 0;
    if (status == MOB_OK) status = find(*block_, &index);
    if (status == MOB_OK) {
      enter(index, pid_is_shared);
    } else {
      close();
    }
    return status;
  }
  void close();

  mob_rank_t index() const { return index_; }
  // The processes of the group: those of this host that were started together. Their indices are
  // consecutive.
  mob_rank_t first() const { return first_; }
  mob_rank_t size() const { return size_; }
  bool is_own(mob_rank_t index) const { return index >= first_ && index < first_ + size_; }
  // All processes that ever shared the segment have lower indices. Processes of other spawns may
  // not have joined, or not joined yet.
  mob_rank_t bound() const { return block_->header.numbers.load(std::memory_order_relaxed); }
  // Whether the process has joined and waits for this one at the end, or may do so: it is of the
  // group, or of one that a bridge connects with it, directly or not.
  bool is_connected(mob_rank_t index) const;
  // Whether the process has come through a port, from another job.
  bool is_foreign(mob_rank_t index) const;
  ControlBlock& control() const { return *block_; }
  // The descriptor of the segment; -1 if the program has closed it. A system call.
  int segment() const { return segment_.get(); }
  // Any thread; the result stays valid.
  const os::WaitPolicy& policy() const { return *policy_.load(std::memory_order_acquire); }
  // For waits that begin later. With `spreads`, a waiting thread that shares its processor with a
  // waiting local peer moves to another one. Any thread.
  void set_policy(const os::WaitPolicy& policy, bool spreads = false);
  os::Crowding& crowding() { return crowding_; }
  ProcessSlot& slot(mob_rank_t index) const { return block_->slot(index); }
  // How the given processes, which have all joined, fit on the processors that they were allowed
  // when they joined. Every process gets the same answer.
  os::Room room_for(std::span<const mob_rank_t> indices) const;
  Liveness& liveness() { return liveness_; }

  // Returns when every process has called it. Everything written before is visible after (full
  // fence).
  mob_status_t barrier();

  // Gives every process the values of all processes, by their order in the group. Orders memory as
  // barrier() does.
  template <typename T>
  mob_status_t exchange(const T& mine, std::vector<T>* all) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kExchangeBytes);
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to copy to");
    std::memcpy(block_->slot(index_).exchange, &mine, sizeof(T));
    if (const mob_status_t status = barrier()) return status;
    all->resize(static_cast<size_t>(size()));
    for (mob_rank_t i = 0; i < size(); ++i) {
      std::memcpy(&(*all)[static_cast<size_t>(i)], block_->slot(first_ + i).exchange, sizeof(T));
    }
    return barrier();  // no process may overwrite its slot while another reads it
  }

  // Agrees on the outcome of a collective step: MOB_OK if every process passed MOB_OK. Otherwise a
  // process that passed an error gets it back, and the others get MOB_ERR_PEER. `what` names the
  // call in error texts.
  mob_status_t agree(mob_status_t mine, const char* what);

 private:
  mob_status_t map(int segment, ControlBlock* block);
  void enter(mob_rank_t index, bool pid_is_shared);

  ControlBlock* block_ = nullptr;
  bool mapped_block_ = false;  // by map(), not by the caller
  mob_rank_t index_ = 0;
  mob_rank_t first_ = 0;
  mob_rank_t size_ = 0;
  BarrierBlock* barrier_ = nullptr;
  os::HeldDescriptor segment_;
  os::Crowding crowding_;
  std::mutex policies_mutex_;
  std::deque<os::WaitPolicy> policies_{os::WaitPolicy{}};  // the last one is in use
  std::atomic<const os::WaitPolicy*> policy_{&policies_.front()};
  Liveness liveness_;
};

}  // namespace mobius::job
