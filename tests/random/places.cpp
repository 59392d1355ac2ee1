// SPDX-License-Identifier: BSD-3-Clause
#include "random/places.h"

#include "random/report.h"

namespace random_program {

namespace {

mob_lock_t* word_of(const Places& places, const LockPlace& lock) {
  if (lock.lock != Lock::kWord || places.locks.empty()) return nullptr;
  return places.locks[static_cast<size_t>(lock.rank)] + lock.which;
}

void check_recovered(int recovered) {
  if (recovered != 0) report("a lock was recovered from somebody who is alive");
}

}  // namespace

void acquire(const Places& places, const LockPlace& lock) {
  int recovered = 0;
  if (mob_lock_t* word = word_of(places, lock)) {
    check(mob_lock(word, &recovered), "mob_lock");
  } else if (lock.lock == Lock::kAccess) {
    check(mob_access_lock(places.access[lock.which], lock.rank, MOB_EXCLUSIVE, &recovered),
          "mob_access_lock");
  } else {
    check(mob_mutex_lock(places.mutexes, lock.which, lock.rank, &recovered), "mob_mutex_lock");
  }
  check_recovered(recovered);
}

bool try_acquire(const Places& places, const LockPlace& lock, mob_access_mode_t mode) {
  int acquired = -1;
  int recovered = 0;
  if (mob_lock_t* word = word_of(places, lock)) {
    check(mob_trylock(word, &acquired, &recovered), "mob_trylock");
  } else if (lock.lock == Lock::kAccess) {
    check(mob_access_trylock(places.access[lock.which], lock.rank, mode, &acquired, &recovered),
          "mob_access_trylock");
  } else {
    check(mob_mutex_trylock(places.mutexes, lock.which, lock.rank, &acquired, &recovered),
          "mob_mutex_trylock");
  }
  check_recovered(recovered);
  if (acquired != 0 && acquired != 1) report("trying for a lock left it open whether it is had");
  return acquired == 1;
}

void release(const Places& places, const LockPlace& lock) {
  if (mob_lock_t* word = word_of(places, lock)) {
    check(mob_unlock(word), "mob_unlock");
  } else if (lock.lock == Lock::kAccess) {
    check(mob_access_unlock(places.access[lock.which], lock.rank), "mob_access_unlock");
  } else {
    check(mob_mutex_unlock(places.mutexes, lock.which, lock.rank), "mob_mutex_unlock");
  }
}

}  // namespace random_program
