// SPDX-License-Identifier: BSD-3-Clause
#include "engine/progress/progress.h"

#include <new>
#include <system_error>

#include "base/status.h"
#include "os/cpu/scheduling.h"
#include "os/process/signals.h"
#include "os/sync/futex.h"

namespace mobius::engine {
namespace {

// A program that calls mob_poll() this often while the thread is armed is one that polls.
constexpr uint32_t kPollsToDisarm = 64;
// How long such a program may not poll before the thread takes over again.
constexpr uint64_t kNapNs = 1'000'000;
// A requester that has to wake the thread may be killed just before. Later requesters leave that to
// it, so the thread looks by itself, too.
constexpr uint64_t kLongestSleepNs = 1'000'000'000;

}  // namespace

void Progress::open(ProcessBlock::Doorbell& own, base::ProgressMode mode) {
  own_ = &own;
  resting_.store(mode == base::ProgressMode::kPoll, std::memory_order_relaxed);
}

mob_status_t Progress::require() {
  if (running_.load(std::memory_order_acquire)) return MOB_OK;
  const std::lock_guard lock(mutex_);
  wanted_ = true;
  return resting_.load(std::memory_order_relaxed) ? MOB_OK : start_thread();
}

mob_status_t Progress::start_thread() {
  if (running_.load(std::memory_order_relaxed) || pauses_ > 0) return MOB_OK;
  try {
    const os::SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return base::fail(
        MOB_ERR_SYSTEM,
        "the progress thread cannot be started: %s; MOBIUS_PROGRESS=poll does without",
        error.what());
  } catch (const std::bad_alloc&) {
    return base::fail(MOB_ERR_MEMORY, "this process has no memory left for the progress thread");
  }
  running_.store(true, std::memory_order_release);
  return MOB_OK;
}

mob_status_t Progress::set_mode(base::ProgressMode mode, base::ProgressMode* before) {
  const std::lock_guard lock(mutex_);
  const bool rested = resting_.load(std::memory_order_relaxed);
  const bool rests = mode == base::ProgressMode::kPoll;
  if (rests && !rested) {
    // Both of resting_ and serving_ are written, then the other is read: one of the two sees it.
    resting_.store(true, std::memory_order_seq_cst);
    while (serving_.load(std::memory_order_seq_cst) || network_.is_serving()) {
      std::this_thread::yield();
    }
    own_->attention.fetch_and(~kArmed, std::memory_order_relaxed);
    network_.settle_all();  // what was left to the thread to send
  } else if (!rests && rested) {
    resting_.store(false, std::memory_order_seq_cst);
    const mob_status_t status = wanted_ ? start_thread() : MOB_OK;
    if (status != MOB_OK) {
      resting_.store(true, std::memory_order_relaxed);
      return status;
    }
    wake_thread(*own_);  // they look for what has come meanwhile
    network_.wake();
  }
  *before = rested ? base::ProgressMode::kPoll : base::ProgressMode::kThread;
  return MOB_OK;
}

void Progress::stop() {
  if (thread_.joinable()) end_thread();
}

void Progress::pause() {
  const std::lock_guard lock(mutex_);
  ++pauses_;
  if (!thread_.joinable()) return;
  end_thread();
  stop_.store(false, std::memory_order_relaxed);
  running_.store(false, std::memory_order_release);  // pairs with the acquire in require()
}

void Progress::end_pause() {
  const std::lock_guard lock(mutex_);
  --pauses_;
}

mob_status_t Progress::go_on() {
  const std::lock_guard lock(mutex_);
  return wanted_ && !resting_.load(std::memory_order_relaxed) ? start_thread() : MOB_OK;
}

void Progress::end_thread() {
  stop_.store(true, std::memory_order_relaxed);
  wake_thread(*own_);
  thread_.join();
  own_->attention.fetch_and(~kArmed, std::memory_order_relaxed);
}

void Progress::wake_now(ProcessBlock::Doorbell& target) {
  if (target.sleepers.load(std::memory_order_relaxed) != 0) {
    os::ring_sleepers(target.bell);
    return;
  }
  // One of many requesters makes the system call.
  uint32_t armed = kArmed;
  if (target.attention.compare_exchange_strong(armed, 0, std::memory_order_relaxed)) {
    wake_thread(target);
  }
}

void Progress::wake_thread(ProcessBlock::Doorbell& target) {
  // Release pairs with the acquire in run().
  target.thread_bell.fetch_add(1, std::memory_order_release);
  os::futex_wake(&target.thread_bell, 1);
}

void Progress::note_armed_poll() {
  if (armed_polls_.fetch_add(1, std::memory_order_relaxed) < kPollsToDisarm) return;
  const uint32_t before = own_->attention.fetch_and(~kArmed, std::memory_order_relaxed);
  if ((before & kArmed) != 0) wake_thread(*own_);
}

void Progress::run() {
  thread_entry_.enter();
  os::ask_for_short_slices();
  while (!stop_.load(std::memory_order_relaxed)) {
    // A ring after this line keeps the thread from sleeping below.
    const uint32_t bell = own_->thread_bell.load(std::memory_order_acquire);
    uint64_t sleep_ns = kLongestSleepNs;
    serving_.store(true, std::memory_order_seq_cst);
    const bool rests = resting_.load(std::memory_order_seq_cst);
    const bool found = !rests && serve(&sleep_ns);
    serving_.store(false, std::memory_order_release);
    // end_thread() rings after it said so: either that is seen here, or the bell has changed.
    if (found || stop_.load(std::memory_order_relaxed)) continue;
    os::futex_wait(&own_->thread_bell, bell, sleep_ns);
  }
}

// Serves requests. If there are none, returns false, and may shorten the time for which the thread
// may sleep unless it is rung.
bool Progress::serve(uint64_t* sleep_ns) {
  const uint32_t polls = polls_.load(std::memory_order_relaxed);
  if (polls != polls_seen_) {
    polls_seen_ = polls;
    *sleep_ns = kNapNs;  // without a look: who polls must not find the turn taken
    return false;
  }
  if (waiter_.poll()) return true;
  armed_polls_.store(0, std::memory_order_relaxed);
  own_->attention.fetch_or(kArmed, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (waiter_.poll() || stop_.load(std::memory_order_relaxed)) {
    own_->attention.fetch_and(~kArmed, std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace mobius::engine
