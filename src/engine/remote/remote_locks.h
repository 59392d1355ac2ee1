// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Locks of processes of other hosts. A thread claims one of the process that hosts it, which tries
// on the thread's behalf, under the thread's name (Peers::lock_id()), and keeps what cannot be
// given yet in a queue. A claim at the head of the queue becomes the lock's heir (os::inherit()),
// so that it is handed over by whoever releases it, also by a local peer in shared memory; who does
// so wakes the hosting process, whose progress sends the answer. Nobody polls, and claims of one
// lock are served in the order in which they came.
//
// Owners that died are looked for when somebody waits for long: the waiting process asks the
// hosting one to look again, about every 100 ms, and finds out itself if that one is gone.

#include <mobius/job.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>

#include "engine/remote/remote_lock_batch.h"
#include "engine/remote/remote_services.h"
#include "engine/request/batch_server.h"
#include "os/hybrid_lock.h"

namespace mobius::engine {

class RemoteObject;
class RemoteObjects;

// A lock of a member on another host: the one at `index` of what the object of that name has in
// `rank`, which says what the number means.
struct RemoteLock {
  mob_rank_t rank;
  uint64_t object;
  uint64_t index;
};

// What the hosting process knows of a claim.
struct Claim {
  mob_rank_t rank;  // whose thread
  uint32_t id;      // the thread's name in locks
  ClaimMode mode;
  bool waits;  // otherwise it is tried once
  uint64_t object;
  uint64_t index;
  uint64_t ticket;                                            // for the answer
  std::shared_ptr<const RemoteLockBatchWork> work = nullptr;  // that came with it
  // The object's:
  bool queued = false;     // it has been tried before
  bool at_gate = false;    // it has a part of what it needs
  bool recovered = false;  // from a dead owner
  mob_rank_t next = 0;
};

// The error for a thread that would wait for itself. `call` names the public function.
mob_status_t held_already(const char* call);

class RemoteLocks {
 public:
  RemoteLocks(const RemoteServices& services, RemoteObjects& objects)
      : services_(services), objects_(objects) {}

  // Readies this process to be asked.
  void open();

  // Those of the calling thread. `call` names the public function in errors; of the results,
  // `recovered` may be null. MOB_ERR_PEER if the hosting process died; MOB_ERR_STATE in a handler.
  mob_status_t acquire(const char* call, const RemoteLock& lock, ClaimMode mode, int* recovered);
  // With operations, which are complete with that, as the batch then says; the thread has nothing
  // any more if they end it.
  mob_status_t acquire_for(const char* call, const RemoteLock& lock, ClaimMode mode,
                           RemoteLockBatch* batch);
  mob_status_t try_acquire(const char* call, const RemoteLock& lock, ClaimMode mode, int* acquired,
                           int* recovered);
  // What the calling thread has; does not wait for the hosting process to do so.
  mob_status_t give_back(const RemoteLock& lock, ClaimMode mode);
  // Waits for the hosting processes to have taken back what this process has given back: what comes
  // between the two in a barrier need not come in that order otherwise.
  void settle() {
    if (is_unsettled_.load(std::memory_order_relaxed)) [[unlikely]] {
      settle_now();
    }
  }
  // Whether the calling thread has exclusive access.
  bool holds(const RemoteLock& lock);

  // Looks at the claims that wait here; whether one was satisfied. Any thread.
  bool look();

  // After the release, or the change that may satisfy a claim, of something that `host`, a rank of
  // this host, hosts: wakes it if it waits on others' behalf.
  static void released(Segment& segment, mob_rank_t host);

 private:
  friend class RemoteObjects;

  using Answer = ClaimAnswer;
  struct Ticket {
    std::atomic<Answer> answer = Answer::kNone;
    RemoteLockBatch* batch = nullptr;
  };
  class HostingWatch;
  class TicketScope;
  using Held = std::tuple<uint64_t, mob_rank_t, uint64_t, uint32_t>;

  Held held_by_self(const RemoteLock& lock) const;
  uint64_t add(Ticket& ticket);
  mob_status_t claim(const char* call, const RemoteLock& lock, ClaimMode mode, bool waits,
                     RemoteLockBatch* batch, Answer* answer);
  mob_status_t send(const RemoteLock& lock, ClaimMode mode, const RemoteLockBatch& batch,
                    uint64_t ticket);
  void answered(uint64_t ticket, Answer answer);
  void take_reply(mob_rank_t source, const ClaimedReply& reply, const unsigned char* data,
                  size_t bytes);
  void settle_now();

  // For others; these need RemoteObjects::mutex_.
  void serve(Claim claim);
  void serve_batch(mob_rank_t origin, const ClaimingRequest& request,
                   std::unique_ptr<unsigned char[]> pieces, size_t bytes);  // takes it
  void satisfy(const Claim& claim, RemoteObject& object);
  void reply(const Claim& claim, Answer answer, const BatchServer::Done& done);
  bool look_at_all(os::OwnerProbe* probe);
  void answer(const Claim& claim, Answer answer);

  const RemoteServices& services_;
  RemoteObjects& objects_;
  std::mutex mutex_;  // guards what follows, up to waiting_
  uint64_t next_ticket_ = 0;
  std::map<uint64_t, Ticket*> tickets_;
  std::set<Held> held_;
  std::set<mob_rank_t> unsettled_;  // who was given something back
  std::atomic<bool> is_unsettled_ = false;

  std::list<Claim> waiting_;  // in the order in which they came
};

}  // namespace mobius::engine
