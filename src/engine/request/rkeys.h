// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Keys of allocations of processes of other hosts: who holds one writes there by remote memory
// access without asking the owner, which takes two more ways of a message.
//
// A target gives the key of the allocation with the answer to a large put that it was asked for, or
// to a put or get that was a message and would be none with a key (served.h). It withdraws it when
// the allocation is freed, and waits until every holder has let go of it: one that still writes
// does so first. So no write meets a key that is gone, which would cost the connection, nor memory
// that is somebody else's by then.
//
// Reads are not given away: what an origin reads may
// still come after it has given its target up, into memory that is used for something else by then.
// A target that is asked writes into memory that is taken out of its reach.

#include <mobius/job.h>
#include <mobius/status.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "base/settings.h"
#include "transport/ofi/endpoint.h"

namespace mobius::engine {

class Messages;
class Peers;
class Waiter;

class Rkeys {
 public:
  // As it travels.
  struct Key {
    uint64_t id;  // of the owner; never used again
    uint64_t start;
    uint64_t bytes;
    uint64_t base;
    uint64_t key;
  };

  Rkeys(Peers& peers, Waiter& waiter, Messages& messages, transport::ofi::Endpoint& endpoint)
      : peers_(peers), waiter_(waiter), messages_(messages), endpoint_(endpoint) {}

  // Before any other call; without it, or with MOBIUS_RMA_KEYS=off, they all do nothing.
  void open(const base::Settings& settings);

  // At the target, any thread. Keys of this memory may be given; again when there is more of it.
  void allow(uint64_t start, size_t bytes);
  // Withdraws those that were, and waits for it: not in handlers. Who is lost is not waited for.
  // `call` names the public function.
  void forbid(const char* call, uint64_t start);
  // Lets `origin` write to what holds these bytes; whether it may. Never waits.
  bool give(mob_rank_t origin, uint64_t address, size_t bytes, Key* key);

  // At the origin, any thread. What its target gave.
  void keep(mob_rank_t target, const Key& key);
  // The key of memory from `lowest` up to `highest`, which stays good until let_go(id); whether
  // there is one.
  bool borrow(mob_rank_t target, uint64_t lowest, uint64_t highest, Key* key);
  void let_go(mob_rank_t target, uint64_t id);
  // Whether there is one now.
  bool has(mob_rank_t target, uint64_t lowest, uint64_t highest);

  // Forgets what a lost process was given. What it gave goes with the transfers that use it.
  void give_up(mob_rank_t rank);

 private:
  enum class What : uint32_t { kWithdrawn, kLetGo };
  struct Notice {
    uint64_t id;
    What what;
  };

  // At the target.
  struct Given {
    transport::ofi::Registration registration;
    std::set<mob_rank_t> holders;
  };
  struct Own {
    size_t bytes = 0;
    std::map<uint64_t, Given> given;  // by id: of more bytes each
    bool is_refused = false;          // the provider has no room for it
  };

  // At the origin.
  struct Held {
    Key key{};  // of no bytes: it has not come yet
    size_t uses = 0;
    bool is_withdrawn = false;
  };

  static bool holds(const Key& key, uint64_t lowest, uint64_t highest) {
    return key.start <= lowest && lowest <= highest && highest - key.start <= key.bytes;
  }
  Held* find(mob_rank_t target, uint64_t lowest, uint64_t highest);
  bool share(mob_rank_t origin, uint64_t address, size_t bytes, Key* key, Key* wanted);
  void withdraw(const char* call, std::map<uint64_t, Given>::node_type given);
  mob_rank_t holder_after(uint64_t id, mob_rank_t rank);
  void drop_holder(uint64_t id, mob_rank_t rank);
  void serve(mob_rank_t from, const Notice& notice);
  bool tell(mob_rank_t rank, const Notice& notice);

  Peers& peers_;
  Waiter& waiter_;
  Messages& messages_;
  transport::ofi::Endpoint& endpoint_;
  std::atomic<bool> is_open_ = false;

  // Never held while something is registered: who polls waits for it, and is waited for then.
  std::mutex mutex_;  // guards what follows
  uint64_t last_id_ = 0;
  std::map<uint64_t, Own> own_;                          // by where it starts
  std::map<uint64_t, Given> withdrawn_;                  // by id; until nobody holds it
  std::map<mob_rank_t, std::map<uint64_t, Held>> held_;  // by target and id
};

}  // namespace mobius::engine
