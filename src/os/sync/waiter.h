// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Waiting for another thread or process: spin briefly, yield, then sleep on a futex. With more
// processes than processors, a spinning waiter keeps the process it waits for from running, so
// every wait ends asleep. A watch can end a wait that can no longer succeed.

#include <mobius/status.h>

#include <atomic>
#include <cstdint>

namespace mobius::os {

class Crowding;

struct WaitPolicy {
  uint64_t spin_ns = 0;
  uint64_t yields = 0;
  uint64_t yield_ns = 0;  // and keeps yielding for this time
  // For a thread that looks for work beside the program's threads; it needs a processor of its own.
  uint64_t background_spin_ns = 0;
  Crowding* crowding = nullptr;  // null: yielding never moves the thread

  void yield() const;  // Yields once.
};

// A word to sleep on, and the number of sleepers; valid as zeros. A sleeper that was killed stays
// counted, which only costs needless wake-up calls.
struct WaitWord {
  std::atomic<uint32_t> value;
  std::atomic<uint32_t> sleepers;
};

// Tells whether a wait can still succeed. The waiter owns it; only the waiting thread calls it.
class Watch {
 public:
  virtual ~Watch() = default;

  // Called about every 100 ms of a wait. Any status but MOB_OK ends the wait with that status; this
  // function has recorded its text (base::fail()).
  virtual mob_status_t look() = 0;
};

// How a sleeper learns that its condition may hold.
enum class Wakeup {
  kRung,  // the thread that changes it reads the number of sleepers after a full fence, and rings
  kUnfenced,  // that thread does so without a fence, in order not to wait for its own stores
  kMaybe,     // that thread may not ring at all
};

// A function that the calling thread runs during its waits, once it has spun (mob_wait_hook()). It
// neither waits nor throws.
struct IdleHook {
  void (*call)(void*) = nullptr;
  void* argument = nullptr;
};
inline thread_local constinit IdleHook idle_hook;

// The work that a waiter found meanwhile.
enum class Work {
  kNone,
  kSome,     // the time was not wasted, so the wait starts over
  kForNear,  // for a process that needs this processor: stop spinning
};

// How long a waiter has waited, and its next step. One per wait, used by one thread.
class Patience {
 public:
  enum class Step { kAgain, kSleep, kGiveUp };

  Patience(const WaitPolicy& policy, Watch* watch, Wakeup wakeup = Wakeup::kRung)
      : policy_(policy), watch_(watch), wakeup_(wakeup) {}

  // Called when the condition does not hold. Pauses or yields and returns kAgain, or says that it
  // is time to sleep, or to give up with status().
  Step next(Work work = Work::kNone) {
    // A pause takes up to 50 ns, half of the time that a cache line needs between two cores. So
    // poll without pauses first, and read the clock seldom.
    if (work == Work::kNone && policy_.spin_ns != 0 && polls_ < kEagerPolls) {
      ++polls_;
      return Step::kAgain;
    }
    return next_patient(work);
  }

  // Sleeps while `word` holds `value`, at most until the watch must be called again or, if the
  // other side may not ring, until it is time to check the condition again.
  void sleep(const std::atomic<uint32_t>& word, uint32_t value);

  // Called before a sleep. The other side may have read the number of sleepers before this one was
  // counted, and then changed the condition without a visible store yet; it will not ring. Such a
  // store is visible to all long before this nap ends, and from then on the other side finds this
  // sleeper.
  bool naps_first() const { return wakeup_ == Wakeup::kUnfenced; }
  void nap(const std::atomic<uint32_t>& word, uint32_t value);

  mob_status_t status() const { return status_; }

 private:
  static constexpr uint32_t kEagerPolls = 256;
  static constexpr uint64_t kShortestNapNs = 50'000;
  static constexpr uint64_t kLongestNapNs = 1'000'000;

  Step next_patient(Work work);
  bool yields_on();
  bool watch_ends();

  const WaitPolicy& policy_;
  Watch* watch_;
  const Wakeup wakeup_;
  mob_status_t status_ = MOB_OK;
  uint64_t nap_ns_ = kShortestNapNs;
  uint32_t polls_ = 0;
  uint64_t yields_ = 0;
  uint32_t busy_ = 0;
  bool spun_ = false;       // the time for spinning has passed
  uint64_t spin_end_ = 0;   // 0: not spinning with pauses yet
  uint64_t yield_end_ = 0;  // 0: has not yielded yet
  uint64_t next_look_ = 0;  // 0: the clock has not been read yet
};

// Counts the calling thread as a sleeper, also when the wait is given up.
class SleeperScope {
 public:
  explicit SleeperScope(std::atomic<uint32_t>& sleepers) : sleepers_(sleepers) {
    // Pairs with the fence in wake_all() and ring(): either they see this sleeper, or this
    // sleeper's later reads see their change.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // Ordered before the thread's later reads: a process that rang this sleeper need not ring
  // another.
  ~SleeperScope() { sleepers_.fetch_sub(1, std::memory_order_seq_cst); }
  SleeperScope(const SleeperScope&) = delete;
  SleeperScope& operator=(const SleeperScope&) = delete;

 private:
  std::atomic<uint32_t>& sleepers_;
};

// Returns MOB_OK once `word` no longer holds `value` (acquire), or the status with which `watch`
// ended the wait. `word` and `sleepers` lie in memory shared with the process that changes the word
// and then calls wake_all(). Any thread.
mob_status_t wait_while_equal(const std::atomic<uint32_t>& word, uint32_t value,
                              std::atomic<uint32_t>& sleepers, const WaitPolicy& policy,
                              Watch* watch = nullptr);

// Wakes every sleeper of `word`. Call it after changing the word. Costs a fence and a load if no
// thread sleeps.
void wake_all(const std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers);

void ring_sleepers(std::atomic<uint32_t>& bell);

// Call it after changing a condition for which wait_until() waits on `bell`. Costs a full fence and
// a load if no thread sleeps. Every waiter on the bell checks its condition again.
inline void ring(std::atomic<uint32_t>& bell, std::atomic<uint32_t>& sleepers) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with SleeperScope
  if (sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    ring_sleepers(bell);
  }
}

struct NothingToPoll {
  Work operator()() const { return Work::kNone; }
};

// Returns MOB_OK once `done()` holds, or the status with which `watch` ended the wait. `done` reads
// with acquire. The process that makes the condition hold calls ring(bell, sleepers) afterwards, or
// does what `wakeup` says instead. Any thread.
//
// `poll` does other work meanwhile and says what it found; a process that makes work for it rings
// the same bell. Neither function is called while the waiter sleeps.
//
// No wake-up is lost. A sleeper counts itself, reads the bell, and then tests the condition; the
// other side changes the condition, then reads the count. If the other side misses the sleeper, the
// sleeper sees the change (SleeperScope). If it sees the sleeper, it changes the bell, and a futex
// does not sleep on a bell that has changed since it was read.
template <typename Predicate, typename Poll = NothingToPoll>
mob_status_t wait_until(Predicate done, std::atomic<uint32_t>& bell,
                        std::atomic<uint32_t>& sleepers, const WaitPolicy& policy,
                        Watch* watch = nullptr, Poll poll = {}, Wakeup wakeup = Wakeup::kRung) {
  if (done()) return MOB_OK;
  Patience patience(policy, watch, wakeup);
  Work work = Work::kNone;  // the work found just before sleeping
  do {
    const Work found = poll();
    if (found != Work::kNone) work = found;
    const Patience::Step step = patience.next(work);
    work = Work::kNone;
    // The watch may have ended the wait after the condition had come to hold.
    if (step == Patience::Step::kGiveUp) return done() ? MOB_OK : patience.status();
    if (step == Patience::Step::kSleep) {
      const SleeperScope scope(sleepers);
      // Acquire pairs with the release in ring_sleepers(): a waiter that sees the new bell sees the
      // change.
      const uint32_t seen = bell.load(std::memory_order_acquire);
      if (done()) return MOB_OK;
      work = poll();
      if (work != Work::kNone) continue;
      if (patience.naps_first()) {
        patience.nap(bell, seen);
        if (done()) return MOB_OK;
      }
      patience.sleep(bell, seen);
    }
  } while (!done());
  return MOB_OK;
}

}  // namespace mobius::os
