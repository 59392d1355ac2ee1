// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Remote keys: with the key of another host's allocation an origin writes there by remote memory
// access without asking the owner, which would take two more message latencies.
//
// A target sends the key in its answer to a large put, or to a put or get that went as a message
// and could use a key the next time (am_rma.h). When the allocation is freed, the target withdraws
// the key and waits until every holder has released it; a holder releases it after its pending
// writes. So no write uses a withdrawn key, which would break the connection, and none reaches
// memory that is reused.
//
// Keys are not for reading: if an origin gave its target up, the data of a read could still arrive,
// in memory that is reused by then. A target that is asked instead writes into a registration that
// the origin can withdraw.

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
    uint64_t id;  // number given by the owner; never reused
    uint64_t start;
    uint64_t bytes;
    uint64_t base;
    uint64_t key;
  };

  Rkeys(Peers& peers, Waiter& waiter, Messages& messages, transport::ofi::Endpoint& endpoint)
      : peers_(peers), waiter_(waiter), messages_(messages), endpoint_(endpoint) {}

  // Called before any other function. Without it, with MOBIUS_RMA_KEYS=off or MOBIUS_SECURITY=full,
  // the others do nothing.
  void open(const base::Settings& settings);

  // Target, any thread. Permits keys of this memory; to be called again when it grows.
  void allow(uint64_t start, size_t bytes);
  // Withdraws the keys of this memory, and waits until no holder is left; not in handlers. It does
  // not wait for lost processes. `call` names the public function.
  void forbid(const char* call, uint64_t start);
  // Gives `origin` a key to the allocation that holds these bytes; false if there is none. Never
  // waits.
  bool give(mob_rank_t origin, uint64_t address, size_t bytes, Key* key);

  // Origin, any thread. Stores a key that the target gave.
  void keep(mob_rank_t target, const Key& key);
  // Finds a key for memory from `lowest` up to `highest`, which is valid until let_go(id); false if
  // there is none.
  bool borrow(mob_rank_t target, uint64_t lowest, uint64_t highest, Key* key);
  void let_go(mob_rank_t target, uint64_t id);
  // Whether there is such a key now.
  bool has(mob_rank_t target, uint64_t lowest, uint64_t highest);

  // Drops the keys that a lost process held. The keys that it gave go with the transfers that use
  // them.
  void give_up(mob_rank_t rank);

 private:
  enum class What : uint32_t { kWithdrawn, kLetGo };
  struct Notice {
    uint64_t id;
    What what;
  };

  // Target.
  struct Given {
    transport::ofi::Registration registration;
    std::set<mob_rank_t> holders;
  };
  struct Own {
    size_t bytes = 0;
    std::map<uint64_t, Given> given;  // by id; each of more bytes than the one before
    bool is_refused = false;          // the provider cannot register it
  };

  // Origin.
  struct Held {
    Key key{};  // without bytes: the key has not arrived yet
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

  // Never held while memory is registered: registering waits for the polling thread, and that
  // thread may wait for this mutex.
  std::mutex mutex_;  // guards the members below
  uint64_t last_id_ = 0;
  std::map<uint64_t, Own> own_;                          // by start address
  std::map<uint64_t, Given> withdrawn_;                  // by id; until no holder is left
  std::map<mob_rank_t, std::map<uint64_t, Held>> held_;  // by target and id
};

}  // namespace mobius::engine
