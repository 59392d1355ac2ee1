// SPDX-License-Identifier: BSD-3-Clause

// Locks: a queue of PEs (Mellor-Crummey and Scott). Every PE has the lock's word, in which
//
//   highest bit   the PE waits for its predecessor
//   upper half    the PE that waits behind it, plus 1; 0: none
//   lower half    in the home PE only: the PE that came last, plus 1; 0: the lock is free
//
// All updates are of the whole word, because updates of parts would not be atomic against them.
// The two upper fields are zero in a PE that neither has the lock nor waits for it.

#include "locks.h"

#include "front.h"

namespace mobius::shmem {
namespace {

// The word of a lock, and the operations of its size.
template <typename Word>
struct Of;

template <>
struct Of<uint64_t> {
  static constexpr auto kGet = mob_get8;
  static constexpr auto kAnd = mob_fetch_and8;
  static constexpr auto kOr = mob_fetch_or8;
  static constexpr auto kCompareSwap = mob_compare_swap8;
  // Adds to a word of another PE, and wakes the PE.
  static mob_status_t tell(mob_rank_t rank, uint64_t* word, uint64_t value) {
    return mob_put_signal(rank, nullptr, nullptr, 0, word, value, MOB_SIGNAL_ADD);
  }
  // Waits until the highest bit is clear.
  static mob_status_t wait_for_turn(const uint64_t* word) {
    return mob_wait_until_i8(reinterpret_cast<const int64_t*>(word), MOB_GE, 0);
  }
  static mob_status_t wait_for(const uint64_t* word, uint64_t least) {
    return mob_wait_until_u8(word, MOB_GE, least);
  }
};

template <>
struct Of<uint32_t> {
  static constexpr auto kGet = mob_get4;
  static constexpr auto kAnd = mob_fetch_and4;
  static constexpr auto kOr = mob_fetch_or4;
  static constexpr auto kCompareSwap = mob_compare_swap4;
  // A PE that sleeps finds the change by itself (mobius/wait.h), since signals have 8 bytes.
  static mob_status_t tell(mob_rank_t rank, uint32_t* word, uint32_t value) {
    uint32_t old = 0;
    return mob_fetch_add4(rank, word, value, &old);
  }
  static mob_status_t wait_for_turn(const uint32_t* word) {
    return mob_wait_until_i4(reinterpret_cast<const int32_t*>(word), MOB_GE, 0);
  }
  static mob_status_t wait_for(const uint32_t* word, uint32_t least) {
    return mob_wait_until_u4(word, MOB_GE, least);
  }
};

template <typename Word>
class Lock {
 public:
  static constexpr unsigned kBits = sizeof(Word) * 8;
  static constexpr unsigned kNextShift = kBits / 2;
  static constexpr Word kWaits = Word{1} << (kBits - 1);
  static constexpr Word kLast = (Word{1} << kNextShift) - 1;

  Lock(Word* lock, const char* call) : here_(lock), call_(call) {
    check_started(call);
    if (static_cast<Word>(mob_size()) >= kWaits >> kNextShift) {
      die(call, "%d PEs are too many for a lock of 4 bytes", mob_size());
    }
    const size_t offset = offset_of(lock, call, "lock");
    // Different locks have different homes.
    home_ = static_cast<int>(offset / sizeof(Word) % static_cast<size_t>(mob_size()));
    at_home_ = place_in(lock, home_, call, "lock");
  }

  // Replaces the number of the PE that came last, and returns the former one. With `if_is`,
  // replaces it only if it is that number.
  Word replace_last(Word last, const Word* if_is) const {
    Word word = 0;
    check(Of<Word>::kGet(home_, at_home_, &word), call_);
    for (;;) {
      if (if_is != nullptr && (word & kLast) != *if_is) return word & kLast;
      Word old = 0;
      check(Of<Word>::kCompareSwap(home_, at_home_, word, (word & ~kLast) | last, &old), call_);
      if (old == word) return word & kLast;
      word = old;
    }
  }

  void change_own(Word keep, Word set) const {
    Word old = 0;
    if (keep != ~Word{0}) check(Of<Word>::kAnd(mob_rank(), here_, keep, &old), call_);
    if (set != 0) check(Of<Word>::kOr(mob_rank(), here_, set, &old), call_);
  }

  Word read_own() const {
    Word word = 0;
    check(Of<Word>::kGet(mob_rank(), here_, &word), call_);
    return word;
  }

  void tell(Word pe, Word value) const {
    const auto rank = static_cast<mob_rank_t>(pe - 1);
    auto* const word = reinterpret_cast<Word*>(place_in(here_, rank, call_, "lock"));
    check(Of<Word>::tell(rank, word, value), call_);
  }

  static Word me() { return static_cast<Word>(mob_rank()) + 1; }

 private:
  Word* here_;
  const char* call_;
  int home_ = 0;
  char* at_home_ = nullptr;
};

}  // namespace

template <typename Word>
void set_lock(Word* lock, const char* call) {
  const Lock<Word> found(lock, call);
  found.change_own(~Word{0}, found.kWaits);
  const Word before = found.replace_last(found.me(), nullptr);
  if (before == found.me()) {
    die(call, "lock %p is set by this PE already, or one of its threads waits for it",
        static_cast<void*>(lock));
  }
  if (before == 0) {
    found.change_own(~found.kWaits, 0);
    return;
  }
  found.tell(before, found.me() << found.kNextShift);
  check(Of<Word>::wait_for_turn(lock), call);
}

template <typename Word>
int test_lock(Word* lock, const char* call) {
  const Lock<Word> found(lock, call);
  constexpr Word kFree = 0;
  return found.replace_last(found.me(), &kFree) == 0 ? 0 : 1;
}

template <typename Word>
void clear_lock(Word* lock, const char* call) {
  const Lock<Word> found(lock, call);
  check(mob_flush_all(), call);
  const Word mine = found.me();
  const Word last = found.replace_last(0, &mine);
  if (last == mine) return;
  if (last == 0) die(call, "lock %p is not set", static_cast<void*>(lock));
  // Another PE came behind, and has put its number into the word or will.
  check(Of<Word>::wait_for(lock, Word{1} << found.kNextShift), call);
  const Word next = found.read_own() >> found.kNextShift;
  found.change_own(found.kLast, 0);
  found.tell(next, found.kWaits);
}

template void set_lock(uint32_t* lock, const char* call);
template int test_lock(uint32_t* lock, const char* call);
template void clear_lock(uint32_t* lock, const char* call);

}  // namespace mobius::shmem

using namespace mobius::shmem;  // NOLINT(google-build-using-namespace): this is the C face of it

SHMEM_TWIN(void, set_lock, (long* lock)) {
  set_lock(reinterpret_cast<uint64_t*>(lock), "shmem_set_lock");
}
SHMEM_TWIN(int, test_lock, (long* lock)) {
  return test_lock(reinterpret_cast<uint64_t*>(lock), "shmem_test_lock");
}
SHMEM_TWIN(void, clear_lock, (long* lock)) {
  clear_lock(reinterpret_cast<uint64_t*>(lock), "shmem_clear_lock");
}
