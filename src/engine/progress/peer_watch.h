// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "base/status.h"
#include "engine/common/peers.h"
#include "os/sync/waiter.h"

namespace mobius::engine {

// Ends a wait for no particular process when any connected process has died: it may have been the
// awaited one.
class AnyPeerWatch final : public os::Watch {
 public:
  AnyPeerWatch(Peers& peers, const char* call) : peers_(peers), call_(call) {}

  mob_status_t look() override {
    peers_.watch_more();
    for (mob_rank_t rank = 0; rank < peers_.bound(); ++rank) {
      if (peers_.is_connected(rank) && peers_.is_dead(rank)) {
        return base::fail(MOB_ERR_PEER,
                          "%s: rank %d %s; if others are to change what is waited for, wait again",
                          call_, rank, peers_.fate(rank).c_str());
      }
    }
    return MOB_OK;
  }

 private:
  Peers& peers_;
  const char* call_;
};

// Ends a wait for one process when that one has died.
class PeerWatch final : public os::Watch {
 public:
  PeerWatch(Peers& peers, const char* call, mob_rank_t rank)
      : peers_(peers), call_(call), rank_(rank) {}

  mob_status_t look() override {
    peers_.watch(rank_);
    if (!peers_.is_dead(rank_)) return MOB_OK;
    return base::fail(MOB_ERR_PEER, "%s: rank %d %s", call_, rank_, peers_.fate(rank_).c_str());
  }

 private:
  Peers& peers_;
  const char* call_;
  const mob_rank_t rank_;
};

}  // namespace mobius::engine
