// SPDX-License-Identifier: BSD-3-Clause

// Locks and flushes.

#include "binding/bootstrap.h"
#include "binding/errors.h"
#include "binding/real.h"
#include "windows/window.h"

namespace mobius::mpi {
namespace {

// A thread of several does not know what the others have stored and not made visible yet.
inline bool has_nothing_to_flush(const Window& window, const Target& target) {
  return (target.has_stores.load(std::memory_order_relaxed) |
          target.has_transfers.load(std::memory_order_relaxed)) == 0 &&
         !window.has_threads;
}

inline mob_status_t flush_target(const Window& window, const Target& target) {
  if (has_nothing_to_flush(window, target)) return MOB_OK;
  if (target.has_transfers.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    target.has_stores.store(0, std::memory_order_relaxed);
    target.has_transfers.store(0, std::memory_order_relaxed);
  }
  return mob_flush(target.owner);
}

inline mob_status_t flush_target_locally(const Window& window, const Target& target) {
  return has_nothing_to_flush(window, target) ? MOB_OK : mob_flush_local(target.owner);
}

inline void lock_here(const Window& window, Target* target, LockKind kind) {
  target->lock = kind;
  if (kind == kShared) {
    target->locks->access.lock_shared();
  } else {
    target->locks->access.lock_exclusive(window.targets[window.rank].rank);
  }
}

inline void unlock_here(const Target& target, uint8_t kind) {
  if (kind == kShared) {
    target.locks->access.unlock_shared();
  } else if (kind == kExclusive) {
    target.locks->access.unlock_exclusive();
  }
}

// Threads may lock different targets at once.
inline void count_locks(Window* window, int change) {
  if (window->has_threads) {
    window->locks.add(change);
  } else {
    window->locks = window->locks + change;
  }
}

int lock(Window* window, int type, int rank, int assertion) {
  if (type != MPI_LOCK_SHARED && type != MPI_LOCK_EXCLUSIVE) {
    return raise(*window, MPI_ERR_LOCKTYPE);
  }
  if ((assertion & ~MPI_MODE_NOCHECK) != 0) return raise(*window, MPI_ERR_ASSERT);
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (rank < 0 || rank >= window->size) return raise(*window, MPI_ERR_RANK);
  Target& target = window->targets[rank];
  if (target.lock != kUnlocked || window->access == Access::kLockedAll ||
      window->access == Access::kStarted || window->access == Access::kFenceUsed) {
    return raise(*window, MPI_ERR_RMA_SYNC);
  }
  if ((assertion & MPI_MODE_NOCHECK) != 0) {
    target.lock = kUnchecked;
  } else if (target.locks != nullptr) {
    lock_here(*window, &target, type == MPI_LOCK_EXCLUSIVE ? kExclusive : kShared);
  } else {
    const mob_access_mode_t mode = type == MPI_LOCK_EXCLUSIVE ? MOB_EXCLUSIVE : MOB_SHARED;
    const Progressing progressing;
    const mob_status_t status = target.is_here
                                    ? mob_access_lock(window->locked, target.rank, mode, nullptr)
                                    : mob_access_lock_nbi(window->locked, target.rank, mode);
    if (status != MOB_OK) return raise_status(*window, status);
    target.lock = mode == MOB_EXCLUSIVE ? kExclusive : kShared;
  }
  if (window->access == Access::kFence) window->access = Access::kNone;
  target.open.store(1, std::memory_order_relaxed);
  count_locks(window, 1);
  return MPI_SUCCESS;
}

int unlock(Window* window, int rank) {
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  if (rank < 0 || rank >= window->size) return raise(*window, MPI_ERR_RANK);
  Target& target = window->targets[rank];
  if (target.lock == kUnlocked) return raise(*window, MPI_ERR_RMA_SYNC);
  const uint8_t kind = target.lock;
  target.lock = kUnlocked;
  target.open.store(0, std::memory_order_relaxed);
  count_locks(window, -1);
  if (target.locks != nullptr) {
    const mob_status_t status = flush_target(*window, target);
    unlock_here(target, kind);
    return raise_if(status, *window);
  }
  const Progressing progressing;
  return raise_if(
      kind != kUnchecked ? mob_access_unlock(window->locked, target.rank) : mob_flush(target.owner),
      *window);
}

int lock_all(Window* window, int assertion) {
  if ((assertion & ~MPI_MODE_NOCHECK) != 0) return raise(*window, MPI_ERR_ASSERT);
  if (window->locks != 0 || window->access == Access::kLockedAll ||
      window->access == Access::kStarted || window->access == Access::kFenceUsed) {
    return raise(*window, MPI_ERR_RMA_SYNC);
  }
  window->is_lock_all_checked = (assertion & MPI_MODE_NOCHECK) == 0;
  if (window->is_lock_all_checked && window->locked == nullptr) {
    for (int i = 0; i < window->size; ++i) window->targets[i].locks->access.lock_shared();
  } else if (window->is_lock_all_checked) {
    const Progressing progressing;
    const mob_status_t status = mob_access_lock_all(window->locked, nullptr);
    if (status != MOB_OK) return raise_status(*window, status);
  }
  window->access = Access::kLockedAll;
  window->all_open.store(1, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int unlock_all(Window* window) {
  if (window->access != Access::kLockedAll) return raise(*window, MPI_ERR_RMA_SYNC);
  window->access = Access::kNone;
  window->all_open.store(0, std::memory_order_relaxed);
  if (window->locked == nullptr) {
    const mob_status_t status = mob_flush_all();
    if (window->is_lock_all_checked) {
      for (int i = 0; i < window->size; ++i) window->targets[i].locks->access.unlock_shared();
    }
    return raise_if(status, *window);
  }
  const Progressing progressing;
  return raise_if(
      window->is_lock_all_checked ? mob_access_unlock_all(window->locked) : mob_flush_all(),
      *window);
}

// Flushes are for passive epochs.
inline bool may_flush(const Window& window, int rank) {
  return window.access == Access::kLockedAll || window.targets[rank].lock != kUnlocked;
}

template <mob_status_t (*kFlush)(const Window&, const Target&)>
inline int flush_one(Window* window, int rank) {
  if (static_cast<unsigned>(rank) >= static_cast<unsigned>(window->size)) [[unlikely]] {
    return rank == MPI_PROC_NULL ? MPI_SUCCESS : raise(*window, MPI_ERR_RANK);
  }
  if (!may_flush(*window, rank)) [[unlikely]] {
    return raise(*window, MPI_ERR_RMA_SYNC);
  }
  return raise_if(kFlush(*window, window->targets[rank]), *window);
}

int flush_everybody(Window* window, bool remote) {
  if (window->access != Access::kLockedAll && window->locks == 0) {
    return raise(*window, MPI_ERR_RMA_SYNC);
  }
  return raise_if(remote ? mob_flush_all() : mob_flush_local_all(), *window);
}

}  // namespace
}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Win_lock)(int lock_type, int rank, int assertion, MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? lock(window, lock_type, rank, assertion)
                           : real::Win_lock(lock_type, rank, assertion, win);
}

MOBIUS_MPI_TWIN(Win_unlock)(int rank, MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? unlock(window, rank) : real::Win_unlock(rank, win);
}

MOBIUS_MPI_TWIN(Win_lock_all)(int assertion, MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? lock_all(window, assertion) : real::Win_lock_all(assertion, win);
}

MOBIUS_MPI_TWIN(Win_unlock_all)(MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? unlock_all(window) : real::Win_unlock_all(win);
}

MOBIUS_MPI_TWIN(Win_flush)(int rank, MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? flush_one<flush_target>(window, rank) : real::Win_flush(rank, win);
}

MOBIUS_MPI_TWIN(Win_flush_local)(int rank, MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? flush_one<flush_target_locally>(window, rank)
                           : real::Win_flush_local(rank, win);
}

MOBIUS_MPI_TWIN(Win_flush_all)(MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? flush_everybody(window, true) : real::Win_flush_all(win);
}

MOBIUS_MPI_TWIN(Win_flush_local_all)(MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? flush_everybody(window, false) : real::Win_flush_local_all(win);
}

MOBIUS_MPI_TWIN(Win_sync)(MPI_Win win) {
  Window* window = find_window(win);
  if (window == nullptr) return real::Win_sync(win);
  // The program may be waiting, by calling this, for what others write.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  static_cast<void>(mob_poll());
  let_mpi_progress();
  return MPI_SUCCESS;
}
