// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Which thread serves the requests of other processes, and how it is woken.
//
// Requests lie in shared memory; a process finds them with Waiter::poll(). Threads that wait in the
// library call it, programs do (mob_poll()), and otherwise the progress thread, which sleeps when
// there is nothing to do. A requester calls wake(), which costs a system call only if no thread of
// the target polls.
//
// No request is left lying. All pairings are of the form "write, full fence, read" on both sides,
// so that at least one of the two sees the other's write:
//
// - *Progress thread.* It sets kArmed, then polls, then sleeps. The requester writes the request,
//   then reads the word. Either the thread finds the request or the requester finds kArmed. One
//   requester clears kArmed and wakes the thread; if it dies in between, the thread wakes by itself
//   after a second.
// - *Waiting threads.* One that waits counts itself in the same word while it does; kArmed has no
//   effect then, because it polls. Before it sleeps it counts itself a sleeper of the doorbell,
//   then polls (Waiter::wait_until()); the requester, which reads both words, rings. When it
//   leaves, it takes itself off the count, then polls once more.
// - *Two at once.* Only one thread serves. Another one that wanted to leaves a mark, and who serves
//   calls wake() for its own process after it stopped, as if it had made a request.
// - *mob_poll().* A program that polls all the time clears kArmed and sends the thread into naps
//   that end by themselves. When nobody has polled during a nap, the thread sets kArmed again.

#include <mobius/status.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/settings.h"
#include "engine/common/thread_entry.h"
#include "engine/progress/waiter.h"
#include "engine/segment/segment_layout.h"

namespace mobius::engine {

// A thread of the library that serves processes of other hosts, beside the progress thread.
class NetworkServer {
 public:
  NetworkServer() = default;
  virtual ~NetworkServer() = default;
  NetworkServer(const NetworkServer&) = delete;
  NetworkServer& operator=(const NetworkServer&) = delete;

  // Whether the thread looks for requests, or is about to.
  virtual bool is_serving() const = 0;
  // Sends what was left to the thread to send.
  virtual void settle_all() = 0;
  // Has the thread look for what has arrived.
  virtual void wake() = 0;
};

class Progress {
 public:
  Progress(Waiter& waiter, NetworkServer& network, ThreadEntry& thread)
      : waiter_(waiter), network_(network), thread_entry_(thread) {}

  void open(ProcessBlock::Doorbell& own, base::ProgressMode mode);

  // Starts the progress thread unless it runs or the job does without (MOBIUS_PROGRESS). A
  // component calls it when it makes something that others can make requests of. Any thread.
  mob_status_t require();
  // Ends the thread. Nobody makes requests any more.
  void stop();

  // Ends the thread, and lets nobody start it until end_pause() has been called as often. Requests
  // wait meanwhile. Not called in handlers, which the thread may be running.
  void pause();
  void end_pause();
  // Starts it again if somebody asked for it, and no pause is left.
  mob_status_t go_on();

  // Makes sure that a thread serves the process whose doorbell this is. The calling thread has
  // written the request, and passed a full fence since.
  static void wake_after_fence(ProcessBlock::Doorbell& target) {
    if (is_to_be_woken(target)) [[unlikely]] {
      wake_now(target);
    }
  }
  static bool is_to_be_woken(const ProcessBlock::Doorbell& target) {
    // The two words lie in two lines: the owner seldom writes the first, and a program that polls
    // with mob_poll() seldom writes the second. Sequentially consistent as in
    // Waiter::ring_after_fence().
    return target.sleepers.load(std::memory_order_seq_cst) != 0 ||
           target.attention.load(std::memory_order_seq_cst) == kArmed;
  }
  static void wake(ProcessBlock::Doorbell& target) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    wake_after_fence(target);
  }

  // Changes which threads serve from now on, whatever the settings say. Waits until the progress
  // thread has ended what it is doing; not called in handlers.
  mob_status_t set_mode(base::ProgressMode mode, base::ProgressMode* before);

  // The calling thread polls from now on until it calls leave(), and then once more.
  void join() {
    own_->attention.fetch_add(1, std::memory_order_relaxed);
    // Counts of two threads may fall into one; that changes nothing.
    waits_.store(waits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void leave() { own_->attention.fetch_sub(1, std::memory_order_seq_cst); }

  // Whether threads of the library leave everything to those of the program (set_mode()).
  bool rests() const { return resting_.load(std::memory_order_seq_cst); }

  // Threads of the program that wait asleep, and would poll if they were rung.
  bool has_sleepers() const { return own_->sleepers.load(std::memory_order_seq_cst) != 0; }
  void ring_sleepers() { os::ring_sleepers(own_->bell); }

  // Whether threads of a process wait, awake or asleep. May change at any moment.
  static bool has_waiters(const ProcessBlock::Doorbell& target) {
    return (target.attention.load(std::memory_order_relaxed) & ~kArmed) != 0;
  }

  static bool has_several_waiters(const ProcessBlock::Doorbell& target) {
    return (target.attention.load(std::memory_order_relaxed) & ~kArmed) > 1;
  }

  // Whether a thread polls now, and is awake.
  bool is_polled() const {
    return (own_->attention.load(std::memory_order_seq_cst) & ~kArmed) != 0 && !has_sleepers();
  }

  // How often the program has polled, waited, and started a transfer with another host; they wrap.
  uint32_t polls() const { return polls_.load(std::memory_order_relaxed); }
  uint32_t waits() const { return waits_.load(std::memory_order_relaxed); }
  uint32_t starts() const { return starts_.load(std::memory_order_relaxed); }
  void note_start() {
    if (in_handler) return;  // the library's own thread runs those
    // Counts of two threads may fall into one; that changes nothing.
    starts_.store(starts_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // The program has polled: if it goes on like this, requesters need not wake the progress thread.
  void note_poll() {
    // Counts of two threads may fall into one; that changes nothing.
    polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if ((own_->attention.load(std::memory_order_relaxed) & kArmed) != 0) note_armed_poll();
  }

 private:
  static constexpr uint32_t kArmed = uint32_t{1} << 31;

  static void wake_now(ProcessBlock::Doorbell& target);
  static void wake_thread(ProcessBlock::Doorbell& target);
  void note_armed_poll();
  void end_thread();
  mob_status_t start_thread();
  void run();
  bool serve(uint64_t* sleep_ns);

  Waiter& waiter_;
  NetworkServer& network_;
  ThreadEntry& thread_entry_;
  ProcessBlock::Doorbell* own_ = nullptr;
  std::mutex mutex_;  // guards starting and ending the thread
  std::thread thread_;
  std::atomic<bool> running_ = false;
  std::atomic<bool> stop_ = false;
  bool wanted_ = false;                    // there is something to serve
  int pauses_ = 0;                         // during which there is no thread
  std::atomic<bool> resting_ = false;      // the thread leaves requests alone
  std::atomic<bool> serving_ = false;      // the thread looks for requests, or is about to
  std::atomic<uint32_t> polls_ = 0;        // by the program
  std::atomic<uint32_t> waits_ = 0;        // by threads of it
  std::atomic<uint32_t> starts_ = 0;       // of transfers with other hosts, likewise
  std::atomic<uint32_t> armed_polls_ = 0;  // … that found the thread armed, since it last was
  uint32_t polls_seen_ = 0;                // by the thread
};

}  // namespace mobius::engine
