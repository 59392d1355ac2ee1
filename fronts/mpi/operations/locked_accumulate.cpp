// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>

#include "binding/bootstrap.h"
#include "binding/real.h"
#include "operations/accumulate.h"

namespace mobius::mpi {
namespace {

// old := brought op old.
void combine(const Element& element, MPI_Op op, const char* brought, char* old, size_t count) {
  constexpr size_t kMost = std::numeric_limits<int>::max();
  for (size_t done = 0; done < count;) {
    const size_t some = std::min(count - done, kMost);
    static_cast<void>(real::Reduce_local(brought + done * element.extent,
                                         old + done * element.extent, static_cast<int>(some),
                                         element.handle, op));
    done += some;
  }
}

mob_status_t move(mob_kind_t kind, const LockedUpdate& update, const Runs& local) {
  mob_transfer_t transfer{};
  transfer.kind = kind;
  transfer.rank = update.target.owner;
  describe_shape(&transfer, local, update.remote, &lists_of_thread());
  return mob_transfer(&transfer);
}

mob_status_t update_alone(const LockedUpdate& update) {
  const Datatype* type = datatypes.find(update.element.handle);
  const size_t count = update.remote.bytes() / update.element.bytes;
  std::vector<char> old(count * update.element.extent);
  const Runs elements(old.data(), static_cast<int64_t>(count), *type);
  if (const mob_status_t status = move(MOB_GET, update, elements)) return status;
  if (update.result != nullptr) copy_runs(*update.result, elements);
  if (update.local == nullptr) return MOB_OK;
  std::vector<char> brought(old.size());
  const Runs operands(brought.data(), static_cast<int64_t>(count), *type);
  copy_runs(operands, *update.local);
  if (update.op == MPI_REPLACE) {
    old.swap(brought);
  } else {
    combine(update.element, update.op, brought.data(), old.data(), count);
  }
  const Runs changed(old.data(), static_cast<int64_t>(count), *type);
  if (const mob_status_t status = move(MOB_PUT, update, changed)) return status;
  return mob_flush(update.target.owner);
}

}  // namespace

mob_status_t update_locked(const LockedUpdate& update) {
  const Progressing progressing;
  // Earlier accumulates of this process there complete first.
  if (const mob_status_t status = mob_flush(update.target.owner)) return status;
  if (update.target.locks != nullptr) {
    TargetLock& lock = update.target.locks->updates;
    lock.lock_exclusive(mob_rank());
    const mob_status_t done = update_alone(update);
    lock.unlock_exclusive();
    return done;
  }
  const mob_rank_t host = update.target.rank;
  if (const mob_status_t status = mob_mutex_lock(update.window.mutexes, 0, host, nullptr)) {
    return status;
  }
  const mob_status_t done = update_alone(update);
  const mob_status_t unlocked = mob_mutex_unlock(update.window.mutexes, 0, host);
  return done != MOB_OK ? done : unlocked;
}

}  // namespace mobius::mpi
