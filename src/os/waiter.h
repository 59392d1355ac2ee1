// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Waiting for another thread or process: spin briefly, yield, then sleep on a futex. With more
// processes than processors a spinning waiter keeps the one it waits for from running, so every
// wait ends asleep. A wait can be watched, and given up when what it waits for cannot come any
// more.

#include <mobius/status.h>

#include <atomic>
#include <cstdint>

namespace mobius::os {

class Crowding;

struct WaitPolicy {
  uint64_t spin_ns = 0;
  uint64_t yields = 0;
  uint64_t yield_ns = 0;  // and goes on with them for so long
  // Of a thread that looks for work beside those of the program; it needs a processor of its own.
  uint64_t background_spin_ns = 0;
  Crowding* crowding = nullptr;  // null: who yields stays where it is

  void yield() const;  // once
};

// A word to sleep on and how many sleep there; valid as zeros. A sleeper that was killed stays
// counted: that costs needless wake-up calls and nothing else.
struct WaitWord {
  std::atomic<uint32_t> value;
  std::atomic<uint32_t> sleepers;
};

// Says whether a wait still makes sense. Owned by who waits; looked at by the waiting thread only.
class Watch {
 public:
  virtual ~Watch() = default;

  // Called about every 100 ms of a wait. Anything but MOB_OK ends the wait with that status, whose
  // text this function has recorded (base::fail()).
  virtual mob_status_t look() = 0;
};

// How a sleeper learns that what it waits for may have come about.
enum class Wakeup {
  kRung,      // who changes it looks for sleepers, and rings, after a full fence
  kUnfenced,  // who changes it does so without a fence, so as not to wait for its own stores
  kMaybe,     // who changes it may not ring at all
};

// What a waiter found to do meanwhile.
enum class Work {
  kNone,
  kSome,     // it has not waited for nothing, and starts over
  kForNear,  // for somebody who needs this very processor to go on: no more spinning
};

// How long a waiter has been at it and what it should do next. One per wait, used by one thread.
class Patience {
 public:
  enum class Step { kAgain, kSleep, kGiveUp };

  Patience(const WaitPolicy& policy, Watch* watch, Wakeup wakeup = Wakeup::kRung)
      : policy_(policy), watch_(watch), wakeup_(wakeup) {}

  // After the condition was found not to hold: pauses or yields and says kAgain, or that it is time
  // to sleep or to give up with status().
  Step next(Work work = Work::kNone) {
    // A pause takes up to 50 ns, half of what a cache line needs between two cores: poll without
    // it first, and look at the clock seldom.
    if (work == Work::kNone && policy_.spin_ns != 0 && polls_ < kEagerPolls) {
      ++polls_;
      return Step::kAgain;
    }
    return next_patient(work);
  }

  // Sleeps while `word` holds `value`, at most until the watch has to look again, or, if nobody may
  // ring, until it is time to look at the condition again.
  void sleep(const std::atomic<uint32_t>& word, uint32_t value);

  // Before a sleep: for a change that nobody may ring for, because its look at the sleepers came
  // before this one was counted while the change itself was not visible yet. A store is visible to
  // all long before this nap ends, and from then on every look finds the sleeper.
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
  bool spun_ = false;       // the time for spinning is over
  uint64_t spin_end_ = 0;   // 0: not spinning with pauses yet
  uint64_t yield_end_ = 0;  // 0: has not yielded yet
  uint64_t next_look_ = 0;  // 0: the clock was not read yet
};

// Counts the calling thread as a sleeper, also when the wait is given up.
class SleeperScope {
 public:
  explicit SleeperScope(std::atomic<uint32_t>& sleepers) : sleepers_(sleepers) {
    // Pairs with the fence in wake_all() and ring(): either they see this sleeper, or what the
    // sleeper reads from here on includes their change.
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // Ordered before what the thread looks at next: who rang this sleeper need not ring another.
  ~SleeperScope() { sleepers_.fetch_sub(1, std::memory_order_seq_cst); }
  SleeperScope(const SleeperScope&) = delete;
  SleeperScope& operator=(const SleeperScope&) = delete;

 private:
  std::atomic<uint32_t>& sleepers_;
};

// Returns MOB_OK once `word` no longer holds `value` (acquire), or what `watch` ended the wait
// with. `word` and `sleepers` lie in memory shared with who calls wake_all() after changing the
// word. Any thread.
mob_status_t wait_while_equal(const std::atomic<uint32_t>& word, uint32_t value,
                              std::atomic<uint32_t>& sleepers, const WaitPolicy& policy,
                              Watch* watch = nullptr);

// Wakes every sleeper of `word`; costs a fence and a load when nobody sleeps. Call after the word
// was changed.
void wake_all(const std::atomic<uint32_t>& word, std::atomic<uint32_t>& sleepers);

void ring_sleepers(std::atomic<uint32_t>& bell);

// Call after changing a condition that wait_until() waits for on `bell`. Costs a full fence and a
// load when nobody sleeps. Who waits for what the bell announces looks again, whoever it is.
inline void ring(std::atomic<uint32_t>& bell, std::atomic<uint32_t>& sleepers) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with SleeperScope
  if (sleepers.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    ring_sleepers(bell);
  }
}

struct NothingToPoll {
  Work operator()() const { return Work::kNone; }
};

// Returns MOB_OK once `done()` holds, or what `watch` ended the wait with. `done` reads what it
// tests with acquire. Whoever makes it hold calls ring(bell, sleepers) afterwards, or does what
// `wakeup` says instead. Any thread.
//
// `poll` does other work meanwhile and says what there was; whoever makes work for it rings
// the same bell. Neither is called while the waiter sleeps.
//
// No wake-up is lost: a sleeper counts itself, reads the bell, and only then tests the condition,
// while the other side changes the condition, then reads the count. If it misses the sleeper, the
// sleeper sees the change (SleeperScope); if it sees it, it changes the bell, and a futex does not
// sleep on a bell that changed since it was read.
template <typename Predicate, typename Poll = NothingToPoll>
mob_status_t wait_until(Predicate done, std::atomic<uint32_t>& bell,
                        std::atomic<uint32_t>& sleepers, const WaitPolicy& policy,
                        Watch* watch = nullptr, Poll poll = {}, Wakeup wakeup = Wakeup::kRung) {
  if (done()) return MOB_OK;
  Patience patience(policy, watch, wakeup);
  Work work = Work::kNone;  // found when about to sleep
  do {
    const Work found = poll();
    if (found != Work::kNone) work = found;
    const Patience::Step step = patience.next(work);
    work = Work::kNone;
    // What the watch found may have come after all that was waited for.
    if (step == Patience::Step::kGiveUp) return done() ? MOB_OK : patience.status();
    if (step == Patience::Step::kSleep) {
      const SleeperScope scope(sleepers);
      // Acquire pairs with the release in ring_sleepers(): who sees the new bell sees the change.
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
