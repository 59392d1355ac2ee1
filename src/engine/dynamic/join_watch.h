// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <poll.h>

#include <span>

#include "base/settings.h"
#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/dynamic/bridges.h"
#include "os/file/unix_socket.h"
#include "os/sync/futex.h"
#include "os/sync/waiter.h"

namespace mobius::engine {

// Ends the wait for new processes when one of them cannot join any more, or the time is over.
class Bridges::JoinWatch final : public os::Watch {
 public:
  JoinWatch(const Bridges& bridges, const char* call, mob_rank_t first, mob_rank_t count,
            std::span<const os::UnixSocket> callers)
      : bridges_(bridges),
        call_(call),
        first_(first),
        count_(count),
        callers_(callers),
        limit_s_(bridges.services_.settings.number(base::SettingId::kJoinSeconds)),
        end_ns_(os::now_ns() + limit_s_ * 1'000'000'000) {}

  mob_status_t look() override {
    const job::WorldState state = bridges_.world(first_).state.load(std::memory_order_acquire);
    if (state == job::WorldState::kFailed || state == job::WorldState::kEnded) {
      return base::fail(MOB_ERR_PEER, "%s: %s", call_, bridges_.reason_of(first_).c_str());
    }
    for (mob_rank_t rank = first_; rank < first_ + count_; ++rank) {
      if (!bridges_.services_.peers.is_dead(rank)) continue;
      return base::fail(MOB_ERR_PEER, "%s: process %d of %d, rank %d, died before all had joined",
                        call_, rank - first_, count_, rank);
    }
    for (const os::UnixSocket& caller : callers_) {
      pollfd end{caller.descriptor(), POLLIN, 0};
      if (poll(&end, 1, 0) <= 0) continue;
      return base::fail(MOB_ERR_PEER, "%s: a process that connected has given up, or died", call_);
    }
    if (os::now_ns() < end_ns_) return MOB_OK;
    return base::fail(MOB_ERR_PEER,
                      "%s: the processes have not called mob_init() within %zu seconds "
                      "(MOBIUS_JOIN_SECONDS)",
                      call_, static_cast<size_t>(limit_s_));
  }

 private:
  const Bridges& bridges_;
  const char* call_;
  const mob_rank_t first_;
  const mob_rank_t count_;
  const std::span<const os::UnixSocket> callers_;
  const uint64_t limit_s_;
  const uint64_t end_ns_;
};

}  // namespace mobius::engine
