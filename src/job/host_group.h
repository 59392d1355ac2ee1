// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The processes of one host that share a segment: what they need from each other before they have
// teams.

#include <mobius/job.h>

#include <concepts>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "job/control.h"
#include "job/liveness.h"
#include "os/crowding.h"
#include "os/waiter.h"

namespace mobius::job {

// All members but the accessors are collective over the group and must be called in the same order
// by every process; not thread-safe. They return MOB_ERR_PEER when a process of the group died; the
// group is of no use then.
class HostGroup {
 public:
  HostGroup() = default;
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;
  ~HostGroup() { close(); }

  // Maps the control block of `segment`, whose descriptor it takes over also on failure.
  // `pid_is_shared`: the others know this process by the id that it knows itself by. `block`: the
  // segment's control block, which the caller has mapped and unmaps after close(); null: not yet.
  // The second form asks find(block, &index) which slot is this process'.
  mob_status_t open(int segment, mob_rank_t index, bool pid_is_shared = true,
                    ControlBlock* block = nullptr);
  template <typename Find>
    requires std::invocable<Find, const ControlBlock&, mob_rank_t*>
  mob_status_t open(int segment, Find find, bool pid_is_shared, ControlBlock* block) {
    mob_status_t status = map(segment, block);
    mob_rank_t index = 0;
    if (status == MOB_OK) status = find(std::as_const(*block_), &index);
    if (status == MOB_OK) {
      enter(index, pid_is_shared);
    } else {
      close();
    }
    return status;
  }
  void close();

  mob_rank_t index() const { return index_; }
  mob_rank_t size() const { return block_->header.size; }
  int segment() const { return segment_; }
  const os::WaitPolicy& policy() const { return policy_; }
  void set_policy(const os::WaitPolicy& policy) { policy_ = policy; }
  // Has threads that wait leave a processor that they share with a host-mate that waits, too.
  void spread() { policy_.crowding = &crowding_; }
  ProcessSlot& slot(mob_rank_t index) const { return block_->slot(index); }
  // How processes of the group, which have all joined, fit on the processors that they could run on
  // then: the same wherever it is asked.
  os::Room room_for(std::span<const mob_rank_t> indices) const;
  Liveness& liveness() { return liveness_; }

  // Returns when every process called it; what they wrote before is visible after (full fence).
  mob_status_t barrier();

  // Gives every process the value of every process, by index. Ends like a barrier.
  template <typename T>
  mob_status_t exchange(const T& mine, std::vector<T>* all) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kExchangeBytes);
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to copy to");
    std::memcpy(block_->slot(index_).exchange, &mine, sizeof(T));
    if (const mob_status_t status = barrier()) return status;
    all->resize(static_cast<size_t>(size()));
    for (mob_rank_t i = 0; i < size(); ++i) {
      std::memcpy(&(*all)[static_cast<size_t>(i)], block_->slot(i).exchange, sizeof(T));
    }
    return barrier();  // nobody may overwrite a slot that another still reads
  }

  // Agrees on the outcome of a collective step: MOB_OK everywhere if all passed MOB_OK, otherwise
  // the own error where there is one and MOB_ERR_PEER elsewhere. `what` names the call.
  mob_status_t agree(mob_status_t mine, const char* what);

 private:
  mob_status_t map(int segment, ControlBlock* block);
  void enter(mob_rank_t index, bool pid_is_shared);

  ControlBlock* block_ = nullptr;
  bool mapped_block_ = false;  // here, and not by the caller
  mob_rank_t index_ = 0;
  int segment_ = -1;
  os::WaitPolicy policy_;
  os::Crowding crowding_;
  Liveness liveness_;
};

}  // namespace mobius::job
