// SPDX-License-Identifier: BSD-3-Clause
#include "engine/progress.h"

#include <pthread.h>
#include <signal.h>

#include <system_error>

#include "base/status.h"
#include "engine/engine.h"
#include "os/futex.h"

namespace mobius::engine {
namespace {

// A program that calls mob_poll() this often while the thread is armed is one that polls.
constexpr uint32_t kPollsToDisarm = 64;
// How long such a program may not poll before the thread takes over again.
constexpr uint64_t kNapNs = 1'000'000;

// No signal of the program is handled by a thread that it does not know of.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

mob_status_t Progress::require() {
  if (running_.load(std::memory_order_acquire) ||
      engine_.settings().progress_mode() == base::ProgressMode::kPoll) {
    return MOB_OK;
  }
  const std::lock_guard lock(mutex_);
  if (running_.load(std::memory_order_relaxed)) return MOB_OK;
  try {
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return base::fail(
        MOB_ERR_SYSTEM,
        "the progress thread cannot be started: %s; MOBIUS_PROGRESS=poll does without",
        error.what());
  }
  running_.store(true, std::memory_order_release);
  return MOB_OK;
}

void Progress::stop() {
  if (thread_.joinable()) end_thread();
}

bool Progress::pause() {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) return false;
  end_thread();
  stop_.store(false, std::memory_order_relaxed);
  running_.store(false, std::memory_order_release);  // pairs with the acquire in require()
  return true;
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
  // Release pairs with the acquire in nap_or_sleep().
  target.thread_bell.fetch_add(1, std::memory_order_release);
  os::futex_wake(&target.thread_bell, 1);
}

void Progress::note_armed_poll() {
  if (armed_polls_.fetch_add(1, std::memory_order_relaxed) < kPollsToDisarm) return;
  const uint32_t before = own_->attention.fetch_and(~kArmed, std::memory_order_relaxed);
  if ((before & kArmed) != 0) wake_thread(*own_);
}

void Progress::run() {
  enter(&engine_);
  while (!stop_.load(std::memory_order_relaxed)) {
    if (!engine_.poll()) nap_or_sleep();
  }
}

void Progress::nap_or_sleep() {
  const uint32_t bell = own_->thread_bell.load(std::memory_order_acquire);
  const uint32_t polls = polls_.load(std::memory_order_relaxed);
  if (polls != polls_seen_) {
    polls_seen_ = polls;
    if (!stop_.load(std::memory_order_relaxed)) {
      os::futex_wait(&own_->thread_bell, bell, kNapNs);
    }
    return;
  }
  armed_polls_.store(0, std::memory_order_relaxed);
  own_->attention.fetch_or(kArmed, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // stop() rings after it said so: either that is seen here, or the bell has changed.
  if (engine_.poll() || stop_.load(std::memory_order_relaxed)) {
    own_->attention.fetch_and(~kArmed, std::memory_order_relaxed);
    return;
  }
  os::futex_wait(&own_->thread_bell, bell, os::kNoTimeout);
}

}  // namespace mobius::engine
