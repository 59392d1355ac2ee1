// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Short mutual exclusion among all threads of all processes of a host, by a lock in shared memory.

#include "engine/remote/remote_locks.h"
#include "engine/segment/locks/shared_lock.h"
#include "engine/sync/sync_services.h"
#include "os/sync/hybrid_lock.h"

namespace mobius::engine {

// Locks that callers hold as long as they like. `call` names the public function in errors.
// `recovered` may be null.
mob_status_t acquire_lock(const SyncServices& services, const char* call, os::HybridLockWord& word,
                          int* recovered, mob_rank_t host = -1);
mob_status_t try_acquire_lock(const SyncServices& services, const char* call,
                              os::HybridLockWord& word, int* acquired, int* recovered,
                              mob_rank_t host = -1);
// Completes the calling thread's transfers, then releases the lock. Returns their error, with the
// lock released. `host` is the local rank that hosts a lock which processes of other hosts may
// claim.
mob_status_t release_lock(const SyncServices& services, const char* call, os::HybridLockWord& word,
                          mob_rank_t host = -1);

// RemoteObject::attempt() for a lock.
bool attempt_lock(os::HybridLockWord& word, Claim& claim, os::OwnerProbe* probe);

// Whether a live thread holds the lock, which can still release it.
bool is_held(const SyncServices& services, const os::HybridLockWord& word);

}  // namespace mobius::engine
