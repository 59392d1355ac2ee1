// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
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

// The largest element that Möbius knows.
constexpr size_t kMostWordBytes = 16;

// Fetches the word, has `change(word)` change it in place if it returns true, and puts it back.
template <typename Change>
mob_status_t change_word(const LockedWord& word, Change change) {
  const mob_rank_t owner = word.target.owner;
  const size_t bytes = word.element.bytes;
  char held[kMostWordBytes];
  const Progressing progressing;
  if (const mob_status_t status = mob_flush(owner)) return status;
  TargetLock& lock = word.target.locks->updates;
  lock.lock_exclusive(mob_rank());
  mob_status_t status = mob_get(owner, word.address, held, bytes);
  if (status == MOB_OK) {
    std::memcpy(word.result, held, bytes);
    if (change(held)) {
      status = mob_put(owner, word.address, held, bytes);
      if (status == MOB_OK) status = mob_flush(owner);
    }
  }
  lock.unlock_exclusive();
  return status;
}

}  // namespace

mob_status_t fetch_and_op_locked(const LockedWord& word, const void* origin, MPI_Op op) {
  char operand[kMostWordBytes];  // the result may be the operand's memory
  if (op != MPI_NO_OP) std::memcpy(operand, origin, word.element.bytes);
  return change_word(word, [&](char* held) {
    if (op == MPI_NO_OP) return false;
    if (op == MPI_REPLACE) {
      std::memcpy(held, operand, word.element.bytes);
    } else {
      combine(word.element, op, operand, held, 1);
    }
    return true;
  });
}

mob_status_t compare_and_swap_locked(const LockedWord& word, const void* origin,
                                     const void* compare) {
  const size_t bytes = word.element.bytes;
  char desired[kMostWordBytes];
  char expected[kMostWordBytes];
  std::memcpy(desired, origin, bytes);
  std::memcpy(expected, compare, bytes);
  return change_word(word, [&](char* held) {
    if (std::memcmp(held, expected, bytes) != 0) return false;
    std::memcpy(held, desired, bytes);
    return true;
  });
}

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
