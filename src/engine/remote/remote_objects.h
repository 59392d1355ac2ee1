// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Work that a process has another host's process do, besides transfers and messages of the program.
// On one host the process would do it itself, to words in shared memory.

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

// An object that the members of a team made together. Each member has a part of it; the member's
// process changes that part for members of other hosts. A thread that serves messages calls these
// functions, while the object is kept live.
class RemoteObject {
 public:
  RemoteObject() = default;
  RemoteObject(const RemoteObject&) = delete;
  RemoteObject& operator=(const RemoteObject&) = delete;

  // A member sends a value; `rank` is its rank in the world, and it claims to be `member`.
  virtual void told(mob_rank_t rank, mob_rank_t member, uint64_t index, uint32_t value);

  // Tries, without waiting, to satisfy a claim of a thread of another process; returns whether it
  // is satisfied. With a probe it also takes locks from dead owners. The text of an error is not
  // recorded.
  virtual bool attempt(Claim& claim, os::OwnerProbe* probe);
  // Takes back the part that a claim has, if it will not be satisfied any more.
  virtual void abandon(Claim& claim);
  // Takes back all that a claim like this one was given.
  virtual void give_back(const Claim& claim);

 protected:
  ~RemoteObject() = default;
};

// Receives the notifications of processes of other hosts (RemoteObjects::notify()).
class NotificationSink {
 public:
  // Called by a thread that serves messages; wakes waiting threads.
  virtual void notified(mob_rank_t from) = 0;

 protected:
  ~NotificationSink() = default;
};

class RemoteObjects final : public RemoteCounts, public TellSink {
 public:
  explicit RemoteObjects(const RemoteServices& services)
      : services_(services), locks_(services_, *this) {}

  // Lets peers send requests to this process. The sink outlives this.
  void open(NotificationSink& notifications);

  RemoteLocks& locks() { return locks_; }

  // All of these: any thread; they do not wait.

  // Counts a counter of `owner`.
  mob_status_t count(mob_rank_t owner, mob_counter_t counter) override;
  // Sends a notification to `rank`.
  mob_status_t notify(mob_rank_t rank);
  // Has `rank` call told(own rank, `member`, `index`, `value`) of its object of that name.
  mob_status_t tell(mob_rank_t rank, uint64_t object, mob_rank_t member, uint64_t index,
                    uint32_t value);

  // Whether a process is known to have come to the end of the job, where it only serves others. If
  // it is on another host and not known to have, this asks it; its answer comes after everything
  // that it told before. So call this only for a process that a thread waits for. (Without asking,
  // peers learn of the end of another host only once all its processes have come to it. That is
  // enough for collective calls.)
  bool is_at_end(mob_rank_t rank);

  // Names of objects are not reused. Call add() before others can know the name. After remove() the
  // object is not used any more, and requests for it are dropped.
  uint64_t new_name() {
    return static_cast<uint64_t>(rank() + 1) << 32 |
           (names_.fetch_add(1, std::memory_order_relaxed) + 1);
  }
  void add(uint64_t name, RemoteObject& object);
  void remove(uint64_t name);

  // Carries out a request of a process of another host. Called by a thread that serves messages.
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
    kIsAtEnd,     // the source has; a process that has not does not answer
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
  std::mutex mutex_;  // guards objects_ and the work of RemoteLocks for others
  std::map<uint64_t, RemoteObject*> objects_;
  std::mutex at_end_mutex_;
  std::set<mob_rank_t> at_end_;
};

}  // namespace mobius::engine
