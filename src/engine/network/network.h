// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The processes of other hosts: one endpoint of the transport, and a link for each of them that
// this process has to do with, made at first use.
//
// The network makes progress in poll(), which threads that wait in the library call. A thread of
// its own does when nobody else would: it sleeps until the transport has something. While others
// poll it naps on a word of its own, so as not to be woken by everything that they take care of;
// who stops polling to sleep wakes it (unpark()), so does who leaves a long wait, and who just
// stops is replaced at the end of the nap.

#include <mobius/job.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/settings.h"
#include "engine/common/peers.h"
#include "engine/common/thread_entry.h"
#include "engine/network/link.h"
#include "engine/network/network_rma.h"
#include "engine/network/write_observer.h"
#include "engine/progress/progress.h"
#include "engine/progress/waiter.h"
#include "transport/ofi/endpoint.h"

namespace mobius::engine {

class Network final : public NetworkServer {
 public:
  Network(const base::Settings& settings, Peers& peers, Waiter& waiter, Progress& progress,
          ThreadEntry& threads)
      : settings_(settings),
        peers_(peers),
        waiter_(waiter),
        progress_(progress),
        threads_(threads) {}

  // Makes the endpoint. Does nothing in a job on one host. Both outlive this.
  mob_status_t open(RecordSinks& sinks, WriteObserver& observer);
  // Starts the thread. After everything that may be asked for through the network is ready.
  mob_status_t start();
  // Lets all others know of the endpoint, and returns when all have: collective over the job, and
  // the last step of joining. Who cannot go on leaves before it.
  mob_status_t meet();
  // Ends the thread until end_pause() has been called as often. Not called in handlers, which it
  // may be running.
  void pause();
  void end_pause();
  // Starts it again if there was one, and no pause is left.
  mob_status_t go_on();
  // Nobody sends any more, and what was sent has arrived.
  void stop();
  void close();

  bool is_open() const { return open_.load(std::memory_order_acquire); }

  NetworkRma& rma() { return rma_; }
  // For registrations of memory.
  transport::ofi::Endpoint& endpoint() { return endpoint_; }

  // The link to a process of another host. Any thread.
  mob_status_t link(mob_rank_t rank, Link** link);
  // … if there is one already.
  Link* find(mob_rank_t rank) const {
    return by_rank_ == nullptr
               ? nullptr
               : by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
  }

  // Receives, and pushes on what could not be sent; whether there was anything. One thread at a
  // time.
  bool poll();
  // The second half of that: sends what could not be sent, and, if nothing comes (`idle`), reports
  // on what was read. Any thread.
  bool settle(bool idle);

  // A link has something to send that it could not send at once.
  void note_unsettled() { unsettled_.store(true, std::memory_order_relaxed); }
  // Whether something is to be sent that goes when somebody polls.
  bool has_unsettled() const {
    return unsettled_.load(std::memory_order_seq_cst) || waits_.load(std::memory_order_seq_cst);
  }

  // The same where nothing will come from the peer that has somebody poll.
  void note_stuck() { note_for_sleeper(unsettled_); }

  // A link has a report that waits for something to ride on while something comes.
  void note_report() { note_for_sleeper(waits_); }
  // … and an answer that waits at least until then, and goes by itself after that.
  void note_held(uint64_t until_ns) {
    held_until_ns_.store(until_ns, std::memory_order_relaxed);
    note_for_sleeper(waits_);
  }

  // Has the thread look around. Whether it does so now: as in Progress, it says so before it looks
  // whether it is to rest.
  void wake() override;
  void settle_all() override { settle(true); }
  bool is_serving() const override { return serving_.load(std::memory_order_seq_cst); }

  // A thread that has polled is about to sleep: what it took from the transport does not wake the
  // thread that sleeps there.
  void unpark() {
    if (parked_.load(std::memory_order_relaxed) != kIsUp ||
        asleep_.load(std::memory_order_relaxed)) {
      wake();
    }
  }
  // … or goes on without: there may be more of what it has found. Who naps will look by itself,
  // unless it does so long because this wait is. After the caller has said that it polls no more:
  // it finds the thread parked, or that finds nobody who polls.
  void leave() {
    if (parked_.load(std::memory_order_seq_cst) == kNapsUntilLeft ||
        (empty_polls_.load(std::memory_order_relaxed) == 0 &&
         asleep_.load(std::memory_order_relaxed))) {
      wake();
    }
  }

  // Asked by those who wait for a process of another host: whether it has failed, or is silent.
  bool is_dead(mob_rank_t rank);
  // A transfer with it, which it takes a living process to carry out, has ended.
  void note_heard(mob_rank_t rank) {
    if (Link* known = find(rank)) known->note_heard();
  }

  // The silence of a process that this one has never talked to is not noticed: who waits for one of
  // another host has it talked to from now on.
  void watch(mob_rank_t rank);
  // … who waits for nobody in particular, one of each of the next hosts, and one more at each call,
  // up to a limit.
  void watch_more();

  // What became of a rank that is dead, behind its name: "died", or "is lost: …" with the reason;
  // with provider and host, if that is another one.
  std::string fate(mob_rank_t rank) const;
  // "provider net, peer 192.0.2.3:41233 on hostb", of one that there is a link to.
  std::string name_of(mob_rank_t rank) const;

  // Others know that it is dead: when this returns nothing that it has sent is written any more.
  // Not called in handlers.
  void give_up(mob_rank_t rank);

  // Whether that has been found of any.
  bool has_lost_any() const;

  // Every process of the job has come to its end, and what was sent has arrived: from now on one
  // may be gone when another still tells it how far it has read.
  void note_all_met() { all_met_.store(true, std::memory_order_relaxed); }
  bool have_all_met() const { return all_met_.load(std::memory_order_relaxed); }

 private:
  mob_status_t start_thread();
  void end_thread();
  void greeted(uint64_t card);
  void received(const unsigned char* message, size_t bytes);
  void lost(transport::ofi::PeerId id, const char* why);
  mob_status_t connect(mob_rank_t rank);
  void run();
  bool serve();
  void sleep();
  void wake_sleepers();
  void note_for_sleeper(std::atomic<bool>& what);
  // Whether the thread naps, and until when at most.
  enum Parked : uint32_t { kIsUp, kNaps, kNapsUntilLeft };
  template <typename Condition>
  void park(Parked how, Condition condition, uint64_t timeout_ns);

  const base::Settings& settings_;
  Peers& peers_;
  Waiter& waiter_;
  Progress& progress_;
  ThreadEntry& threads_;
  RecordSinks* sinks_ = nullptr;
  WriteObserver* observer_ = nullptr;
  std::atomic<bool> open_ = false;
  uint64_t timeout_ns_ = 0;
  transport::ofi::Endpoint endpoint_;
  NetworkRma rma_{*this, endpoint_};

  std::mutex mutex_;  // guards making links
  std::unique_ptr<std::atomic<Link*>[]> by_rank_;
  std::vector<std::unique_ptr<Link>> links_;  // reserved: their places do not change
  std::atomic<size_t> link_count_ = 0;
  std::atomic<bool> unsettled_ = false;
  std::atomic<bool> waits_ = false;   // something that waits for something to ride on
  std::atomic<uint32_t> passed_ = 0;  // how often settle() has left that alone
  std::atomic<uint64_t> held_until_ns_ = 0;
  std::atomic<bool> all_met_ = false;
  std::atomic<mob_rank_t> next_watched_ = 0;

  std::atomic<uint32_t> empty_polls_ = 1;  // in a row; by who polls
  std::mutex thread_mutex_;                // guards starting and ending the thread
  std::thread thread_;
  bool started_ = false;  // by start()
  int pauses_ = 0;        // during which there is no thread
  std::atomic<bool> stop_ = false;
  std::atomic<bool> serving_ = false;
  std::atomic<uint32_t> parked_ = kIsUp;  // the thread sleeps on this word while it naps
  std::atomic<bool> asleep_ = false;      // … or sleeps until the transport has something
  int event_ = -1;                        // ends that
};

}  // namespace mobius::engine
