// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Access to members of other hosts that was only started (mob_access_lock_nbi()) and nobody needs
// yet. What its thread transfers to that member is kept here, copied, until the access ends, or a
// transfer must be complete: then the claim, the transfers and the end, if it is that, are one
// message (remote/remote_lock_batch.h), whose answer is waited for.
//
// A thread has one such access at most. Before it gains or starts any other it gains that one: so a
// thread takes locks in the order of its calls, and while it waits for one it holds none that it
// asked for later. Nobody sends anything for another thread, which would wait for a lock that is
// not its own.

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

  // Whether what would be deferred may be, for a rank of another host.
  bool may_start(mob_rank_t rank, std::optional<schedule::Policy> hint) const;

  // The calling thread, which has none and may, starts access to a member. `access` is told.
  mob_status_t start(Access& access, mob_rank_t member, const RemoteLock& lock, ClaimMode mode,
                     std::optional<schedule::Policy> hint);

  // Ends the calling thread's access, complete; false if it has none that is deferred to that
  // member.
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
  std::mutex mutex_;  // guards the map; what is in it is its thread's alone
  std::map<uint32_t, std::unique_ptr<Kept>> by_thread_;
};

}  // namespace mobius::engine
