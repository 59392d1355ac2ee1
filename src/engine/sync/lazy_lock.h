// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Deferred access to members of other hosts. mob_access_lock_nbi() only starts it. The thread's
// transfers to that member are copied and kept here until the access ends or a transfer must be
// complete. Then the claim, the transfers, and the unlock if there is one, travel in one message
// (remote/remote_lock_batch.h), and the thread waits for its answer.
//
// A thread has at most one deferred access, and gains it before it gains or starts another. So a
// thread takes locks in the order of its calls, and while it waits for a lock it holds none that it
// asked for later. A thread never sends another thread's message, because it would then wait for
// that thread's lock.

#include <mobius/job.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "engine/remote/remote_locks.h"
#include "engine/rma/deferred_access.h"
#include "engine/rma/operation.h"
#include "engine/sync/sync_services.h"
#include "schedule/plan.h"

namespace mobius::engine {

class Access;

class LazyLock final : public DeferredAccess {
 public:
  explicit LazyLock(const SyncServices& services);
  ~LazyLock() override;

  // Whether access to a rank of another host may be deferred.
  bool may_start(mob_rank_t rank, std::optional<schedule::Policy> hint) const;

  // Starts access to a member for the calling thread, which has no deferred access and may start
  // one. Notifies `access`.
  mob_status_t start(Access& access, mob_rank_t member, const RemoteLock& lock, ClaimMode mode,
                     std::optional<schedule::Policy> hint);

  // Ends the calling thread's access and completes its transfers. False if the thread has no
  // deferred access to that member.
  bool end(const char* call, const Access& access, mob_rank_t member, mob_status_t* status) {
    return is_used() && end_own(call, access, member, status);
  }

 private:
  struct Kept;

  Kept* find_own();
  bool keep(const Operation& operation, mob_status_t* status) override;
  bool may_keep(const Kept& kept, const Operation& operation) const;
  mob_status_t gain_own(const char* call) override;
  mob_status_t complete_own(const char* call, mob_rank_t rank) override;
  bool end_own(const char* call, const Access& access, mob_rank_t member, mob_status_t* status);
  mob_status_t send(const char* call, Kept& kept, bool ends, bool is_awaited = false);
  void write(Kept& kept, RemoteLockBatch* batch);
  void close(Kept& kept);

  const SyncServices& services_;
  std::mutex mutex_;  // guards the map; an entry belongs to its thread alone
  std::map<uint32_t, std::unique_ptr<Kept>> by_thread_;
};

}  // namespace mobius::engine
