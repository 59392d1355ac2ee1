// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What a process has done by one of another host beside transfers and messages of the program: what
// it would do itself, to words that it could reach, if both were on one host.

#include <mobius/counter.h>
#include <mobius/message.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>

#include "engine/message/send_gate.h"
#include "engine/remote/remote_locks.h"
#include "engine/request/batch_server.h"

namespace mobius::engine {

// What the members of a team made together: each has a part of it, which members of other hosts
// have changed by the process of that member. Called by a thread that serves messages, with the
// object held live.
class RemoteObject {
 public:
  RemoteObject() = default;
  RemoteObject(const RemoteObject&) = delete;
  RemoteObject& operator=(const RemoteObject&) = delete;

  // A member says something; `rank` is its rank in the world, which it has claimed to be `member`.
  virtual void told(mob_rank_t rank, mob_rank_t member, uint64_t index, uint32_t value);

  // Tries to give a thread of another process what it claims, without waiting for anybody; whether
  // it has it now. With a probe also from dead owners. The text of an error is not recorded.
  virtual bool attempt(Claim& claim, os::OwnerProbe* probe);
  // Takes back what a claim has that is not to be satisfied any more.
  virtual void abandon(Claim& claim);
  // Takes back what a claim like this one was given.
  virtual void give_back(const Claim& claim);

 protected:
  ~RemoteObject() = default;
};

// Hears of notifications that processes of other hosts send to this one (RemoteObjects::notify()).
class NotificationSink {
 public:
  // Called by a thread that serves messages; it wakes whoever waits.
  virtual void notified(mob_rank_t from) = 0;

 protected:
  ~NotificationSink() = default;
};

class RemoteObjects final : public RemoteCounts, public TellSink {
 public:
  explicit RemoteObjects(const RemoteServices& services)
      : services_(services), locks_(services_, *this) {}

  // Readies this process to be asked. The sink outlives this.
  void open(NotificationSink& notifications);

  RemoteLocks& locks() { return locks_; }

  // All of these: any thread; they do not wait.

  // Counts a counter of `owner`.
  mob_status_t count(mob_rank_t owner, mob_counter_t counter) override;
  // A notification for `rank`.
  mob_status_t notify(mob_rank_t rank);
  // Has told(own rank, `member`, `index`, `value`) called at the object of that name in `rank`.
  mob_status_t tell(mob_rank_t rank, uint64_t object, mob_rank_t member, uint64_t index,
                    uint32_t value);

  // Whether a process is known to have come to the end of the job, where it does nothing but serve
  // others. A process of another host that is not known to have is asked; its answer comes behind
  // everything that it told before. So call this only for a process that is waited for. (Peers
  // learn of the end of other hosts without asking only once all processes of such a host have come
  // to it, which is enough for collective calls.)
  bool is_at_end(mob_rank_t rank);

  // Names for objects are never used again. add() before others can know the name; after remove()
  // the object is not used any more, and who asks for it is not heard.
  uint64_t new_name() {
    return static_cast<uint64_t>(rank() + 1) << 32 |
           (names_.fetch_add(1, std::memory_order_relaxed) + 1);
  }
  void add(uint64_t name, RemoteObject& object);
  void remove(uint64_t name);

  // Does what a process of another host asks for. By a thread that serves messages.
  void serve(const mob_message_t& message) override;

 private:
  friend class RemoteLocks;

  enum class What : uint32_t {
    kCount,       // index: the counter's address
    kNotify,      //
    kTell,        // object, member, index, number: the value
    kClaim,       // object, index, number: the lock id, mode; value: the ticket
    kTryClaim,    // the same
    kLookAgain,   //
    kAnswer,      // value: the ticket, number: a ClaimAnswer
    kGiveBack,    // as kClaim, without a ticket
    kAsksForEnd,  // whether the target has come to the end of the job
    kIsAtEnd,     // the source has; not said by one that has not
  };
  struct Request {
    What what;
    uint32_t number = 0;
    mob_rank_t member = -1;
    ClaimMode mode = ClaimMode::kExclusive;
    uint64_t object = 0;
    uint64_t index = 0;
    uint64_t value = 0;
  };

  mob_rank_t rank() const;
  mob_status_t ask(mob_rank_t rank, const Request& request);
  void serve_object(mob_rank_t source, const Request& request);
  RemoteObject* find(uint64_t name);  // needs mutex_

  const RemoteServices services_;
  RemoteLocks locks_;
  NotificationSink* notifications_ = nullptr;
  std::atomic<uint32_t> names_ = 0;
  std::mutex mutex_;  // guards objects_, and what RemoteLocks does for others
  std::map<uint64_t, RemoteObject*> objects_;
  std::mutex at_end_mutex_;
  std::set<mob_rank_t> at_end_;
};

}  // namespace mobius::engine
