// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Locks in processes of other hosts. A thread sends a claim to the process that hosts the lock.
// That process tries on the thread's behalf, under the thread's name (Peers::lock_id()), and queues
// claims that it cannot satisfy yet. The first queued claim becomes the lock's heir
// (os::inherit()), so every release hands the lock over to it, also the release of a local peer in
// shared memory. The releasing process then wakes the hosting process, whose progress thread sends
// the answer. Nobody polls, and claims of one lock are served in the order in which they came.
//
// Dead owners are looked for when a thread waits for long: about every 100 ms the waiting process
// asks the hosting one to check for them. If the hosting process is gone, the waiting process finds
// that out itself.

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
#include "os/sync/hybrid_lock.h"

namespace mobius::engine {

class RemoteObject;
class RemoteObjects;

// A lock of a member on another host: the lock at `index` of the object of that name in `rank`. The
// object defines the meaning of the index.
struct RemoteLock {
  mob_rank_t rank;
  uint64_t object;
  uint64_t index;
};

// A claim, as the hosting process keeps it.
struct Claim {
  mob_rank_t rank;  // of the claiming thread
  uint32_t id;      // the thread's name in locks
  ClaimMode mode;
  bool waits;  // otherwise it is tried once
  uint64_t object;
  uint64_t index;
  uint64_t ticket;                                            // identifies the claim in the answer
  std::shared_ptr<const RemoteLockBatchWork> work = nullptr;  // the batch that it carries
  // State that the object keeps with the claim:
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

  // Lets peers send claims to this process.
  void open();

  // These act for the calling thread. `call` names the public function in errors; `recovered` may
  // be null. MOB_ERR_PEER if the hosting process died; MOB_ERR_STATE in a handler.
  mob_status_t acquire(const char* call, const RemoteLock& lock, ClaimMode mode, int* recovered);
  // Acquires the lock for a batch of operations, which are complete when this returns; the batch
  // holds their outcome. The thread does not keep the lock if the batch ends the access.
  mob_status_t acquire_for(const char* call, const RemoteLock& lock, ClaimMode mode,
                           RemoteLockBatch* batch);
  mob_status_t try_acquire(const char* call, const RemoteLock& lock, ClaimMode mode, int* acquired,
                           int* recovered);
  // Releases a lock of the calling thread; does not wait for the hosting process to do so.
  mob_status_t give_back(const RemoteLock& lock, ClaimMode mode);
  // Waits until the hosting processes have taken back the locks that this process has released. A
  // barrier calls it, because a release before the barrier could otherwise come after a claim that
  // follows it.
  void settle() {
    if (is_unsettled_.load(std::memory_order_relaxed)) [[unlikely]] {
      settle_now();
    }
  }
  // Whether the calling thread has exclusive access.
  bool holds(const RemoteLock& lock);

  // Tries the claims that wait here; returns whether any was satisfied. Any thread.
  bool look();

  // Called after a release, or another change that may satisfy a claim, of an object that `host`, a
  // rank of this host, hosts. Wakes that process if claims wait there.
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

  // Work for other processes; these need RemoteObjects::mutex_.
  void serve(Claim claim);
  void serve_batch(mob_rank_t origin, const ClaimingRequest& request,
                   std::unique_ptr<unsigned char[]> pieces, size_t bytes);  // takes it
  void satisfy(const Claim& claim, RemoteObject& object);
  void reply(const Claim& claim, Answer answer, const BatchServer::Done& done);
  bool look_at_all(os::OwnerProbe* probe);
  void answer(const Claim& claim, Answer answer);

  const RemoteServices& services_;
  RemoteObjects& objects_;
  std::mutex mutex_;  // guards all below, up to waiting_
  uint64_t next_ticket_ = 0;
  std::map<uint64_t, Ticket*> tickets_;
  std::set<Held> held_;
  std::set<mob_rank_t> unsettled_;  // ranks that were sent releases since settle()
  std::atomic<bool> is_unsettled_ = false;

  std::list<Claim> waiting_;  // in the order in which they came
};

}  // namespace mobius::engine
