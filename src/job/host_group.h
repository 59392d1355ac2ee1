// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The processes of one host that share a control block: what they need from each other before and
// beside shared memory.

#include <mobius/job.h>

#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "job/control.h"
#include "os/unix_socket.h"
#include "os/waiter.h"

namespace mobius::job {

// All members but the accessors are collective over the group and must be called in the same order
// by every process; not thread-safe.
class HostGroup {
 public:
  HostGroup() = default;
  HostGroup(const HostGroup&) = delete;
  HostGroup& operator=(const HostGroup&) = delete;
  ~HostGroup() { close(); }

  // Takes over `block`. `key` names the group's sockets; a group of one needs none.
  mob_status_t open(ControlBlock* block, mob_rank_t index, const std::string& key,
                    const os::WaitPolicy& policy);
  void close();

  mob_rank_t index() const { return index_; }
  mob_rank_t size() const { return block_->header.size; }

  // Returns when every process called it; what they wrote before is visible after (full fence).
  void barrier();

  // Gives every process the value of every process, by index. Ends like a barrier.
  template <typename T>
  std::vector<T> exchange(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kExchangeBytes);
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no elements to copy to");
    std::vector<T> all(static_cast<size_t>(size()));
    std::memcpy(block_->slot(index_).exchange, &mine, sizeof(T));
    barrier();
    for (mob_rank_t i = 0; i < size(); ++i) {
      std::memcpy(&all[static_cast<size_t>(i)], block_->slot(i).exchange, sizeof(T));
    }
    barrier();  // nobody may overwrite a slot that another still reads
    return all;
  }

  // Agrees on the outcome of a collective step: MOB_OK everywhere if all passed MOB_OK, otherwise
  // the own error where there is one and MOB_ERR_PEER elsewhere. `what` names the call.
  mob_status_t agree(mob_status_t mine, const char* what);

  // Process 0 passes `mine`; everyone else gets its own duplicate in `*received` (owned by it).
  mob_status_t share_descriptor(int mine, int* received);

 private:
  ControlBlock* block_ = nullptr;
  mob_rank_t index_ = 0;
  std::string key_;
  os::UnixSocket socket_;
  os::WaitPolicy policy_;
};

}  // namespace mobius::job
