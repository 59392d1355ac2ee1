// SPDX-License-Identifier: BSD-3-Clause

// Locks: a queue of PEs (Mellor-Crummey and Scott). Every PE has the lock's word, in which
//
//   bit 63       the PE waits for its predecessor
//   bits 62..32  the PE that waits behind it, plus 1; 0: none
//   bits 31..0   in the home PE only: the PE that came last, plus 1; 0: the lock is free
//
// All updates are of 8 bytes, because updates of parts of a word would not be atomic against them.

#include "front.h"

namespace mobius::shmem {
namespace {

constexpr uint64_t kWaits = uint64_t{1} << 63;
constexpr unsigned kNextShift = 32;
constexpr uint64_t kLast = 0xffffffff;

struct Lock {
  long* here;
  int home;
  char* at_home;
};

Lock find(long* lock, const char* call) {
  check_started(call);
  const size_t offset = offset_of(lock, call, "lock");
  // Different locks have different homes.
  const int home = static_cast<int>(offset / sizeof(long) % static_cast<size_t>(mob_size()));
  return {lock, home, place_in(lock, home, call, "lock")};
}

uint64_t me() { return static_cast<uint64_t>(mob_rank()) + 1; }

uint64_t read_home(const Lock& lock, const char* call) {
  uint64_t word = 0;
  check(mob_get8(lock.home, lock.at_home, &word), call);
  return word;
}

// Replaces the number of the PE that came last, and returns the former one. With `if_is`, replaces
// it only if it is that number.
uint64_t replace_last(const Lock& lock, uint64_t last, const uint64_t* if_is, const char* call) {
  uint64_t word = read_home(lock, call);
  for (;;) {
    if (if_is != nullptr && (word & kLast) != *if_is) return word & kLast;
    uint64_t old = 0;
    check(mob_compare_swap8(lock.home, lock.at_home, word, (word & ~kLast) | last, &old), call);
    if (old == word) return word & kLast;
    word = old;
  }
}

void change_own(const Lock& lock, uint64_t keep, uint64_t set, const char* call) {
  uint64_t old = 0;
  if (keep != ~uint64_t{0}) check(mob_fetch_and8(mob_rank(), lock.here, keep, &old), call);
  if (set != 0) check(mob_fetch_or8(mob_rank(), lock.here, set, &old), call);
}

// Adds to a word of another PE, and wakes the PE.
void tell(long* lock, uint64_t pe, uint64_t value, const char* call) {
  const auto rank = static_cast<mob_rank_t>(pe - 1);
  auto* const word = reinterpret_cast<uint64_t*>(place_in(lock, rank, call, "lock"));
  check(mob_put_signal(rank, nullptr, nullptr, 0, word, value, MOB_SIGNAL_ADD), call);
}

}  // namespace
}  // namespace mobius::shmem

using namespace mobius::shmem;  // NOLINT(google-build-using-namespace): this is the C face of it

SHMEM_TWIN(void, set_lock, (long* lock)) {
  constexpr const char* kCall = "shmem_set_lock";
  const Lock found = find(lock, kCall);
  change_own(found, kLast, kWaits, kCall);
  const uint64_t before = replace_last(found, me(), nullptr, kCall);
  if (before == 0) {
    change_own(found, ~kWaits, 0, kCall);
    return;
  }
  tell(lock, before, me() << kNextShift, kCall);
  check(mob_wait_until_i8(reinterpret_cast<const int64_t*>(lock), MOB_GE, 0), kCall);
}

SHMEM_TWIN(int, test_lock, (long* lock)) {
  constexpr const char* kCall = "shmem_test_lock";
  const Lock found = find(lock, kCall);
  change_own(found, kLast, 0, kCall);
  constexpr uint64_t kFree = 0;
  return replace_last(found, me(), &kFree, kCall) == 0 ? 0 : 1;
}

SHMEM_TWIN(void, clear_lock, (long* lock)) {
  constexpr const char* kCall = "shmem_clear_lock";
  const Lock found = find(lock, kCall);
  check(mob_flush_all(), kCall);
  const uint64_t mine = me();
  const uint64_t last = replace_last(found, 0, &mine, kCall);
  if (last == mine) return;
  if (last == 0) die(kCall, "lock %p is not set", static_cast<void*>(lock));
  // Somebody came behind, and says so or will.
  check(
      mob_wait_until_u8(reinterpret_cast<const uint64_t*>(lock), MOB_GE, uint64_t{1} << kNextShift),
      kCall);
  uint64_t word = 0;
  check(mob_get8(mob_rank(), lock, &word), kCall);
  change_own(found, kLast, 0, kCall);
  tell(lock, word >> kNextShift, kWaits, kCall);
}
