// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The processes of other hosts: one endpoint of the transport, and a link to each process that this
// one communicates with, made at first use.
//
// Threads that wait in the library call poll(), which makes progress. The network thread polls when
// no other thread would; it sleeps until the transport has an event. While other threads poll, it
// naps on a word of its own, so that the events they handle do not wake it. A poller that goes to
// sleep wakes it (unpark()), and so does a poller that leaves a long wait. If a poller just stops,
// the network thread takes over at the end of its nap.

#include <mobius/job.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/settings.h"
#include "engine/common/peers.h"
#include "engine/common/sparse_array.h"
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

  // Makes the endpoint. Does nothing in a job on one host. Both arguments outlive this object.
  mob_status_t open(RecordSinks& sinks, WriteObserver& observer);
  // Starts the network thread. Call it once all services that peers may ask for are ready.
  mob_status_t start();
  // Publishes the endpoint to all processes and returns when all have done so. Collective over the
  // job, and the last step of joining: a process that cannot go on leaves before it.
  mob_status_t meet();
  // Ends the network thread until end_pause() has been called as often. Not called in handlers,
  // which that thread may be running.
  void pause();
  void end_pause();
  // Starts the thread again if it ran before and no pause is left.
  mob_status_t go_on();
  // Ends the thread for good. Called when nobody sends any more and all sent messages have arrived.
  void stop();
  void close();

  // "messages, AES-256-GCM": MOBIUS_SECURITY as it is in force, and the cipher.
  std::string security_text() const;

  bool is_open() const { return open_.load(std::memory_order_acquire); }

  NetworkRma& rma() { return rma_; }
  // For memory registrations.
  transport::ofi::Endpoint& endpoint() { return endpoint_; }

  // Finds or makes the link to a process of another host. Any thread.
  mob_status_t link(mob_rank_t rank, Link** link);
  // Finds the link; null if there is none yet. Any thread.
  Link* find(mob_rank_t rank) const {
    return by_rank_.empty() ? nullptr
                            : by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
  }

  // Receives, and sends what could not be sent before; returns whether it did something. One thread
  // at a time.
  bool poll();
  // The second half of poll(): sends what could not be sent before and, if nothing comes (`idle`),
  // reports how far this process has read. Any thread.
  bool settle(bool idle);

  // A link has something that it could not send at once.
  void note_unsettled() { unsettled_.store(true, std::memory_order_relaxed); }
  // Whether a link has something that it sends at the next poll.
  bool has_unsettled() const {
    return unsettled_.load(std::memory_order_seq_cst) || waits_.load(std::memory_order_seq_cst);
  }

  // As note_unsettled(), when no frame will come from the peer that makes a thread poll.
  void note_stuck() { note_for_sleeper(unsettled_); }

  // A link has a report that waits for a frame to ride on as long as frames come.
  void note_report() { note_for_sleeper(waits_); }
  // A link has an answer that it holds at least until then, and sends by itself afterwards.
  void note_held(uint64_t until_ns) {
    held_until_ns_.store(until_ns, std::memory_order_relaxed);
    note_for_sleeper(waits_);
  }

  // Wakes the network thread. As in Progress, the thread announces that it serves before it checks
  // whether it must rest, so is_serving() afterwards tells whether it does now.
  void wake() override;
  void settle_all() override { settle(true); }
  bool is_serving() const override { return serving_.load(std::memory_order_seq_cst); }

  // A polling thread is about to sleep. The events that it took from the transport do not wake the
  // network thread, so wake it here.
  void unpark() {
    if (parked_.load(std::memory_order_relaxed) != kIsUp ||
        asleep_.load(std::memory_order_relaxed)) {
      wake();
    }
  }
  // A polling thread leaves its wait, and may leave events behind. A napping network thread looks
  // by itself at the end of its nap, unless it naps for long because of this wait. Call it after
  // the thread has announced that it stops polling: then either this call finds the network thread
  // parked, or that thread finds no poller.
  void leave() {
    if (parked_.load(std::memory_order_seq_cst) == kNapsUntilLeft ||
        (empty_polls_.load(std::memory_order_relaxed) == 0 &&
         asleep_.load(std::memory_order_relaxed))) {
      wake();
    }
  }

  // Whether a process of another host has failed or is silent. Threads that wait for it call this.
  bool is_dead(mob_rank_t rank);
  // Notes the end of a transfer that only a living process can carry out.
  void note_heard(mob_rank_t rank) {
    if (Link* known = find(rank)) known->note_heard();
  }

  // Links this process to one that a thread waits for: without a link nobody would notice its
  // silence.
  void watch(mob_rank_t rank);
  // For threads that wait for no process in particular: links this process to one process of each
  // of the next hosts, and to one more process at each call, up to a limit.
  void watch_more();

  // The fate of a dead rank, as the end of a sentence: "died", or "is lost: …" with the reason, and
  // with provider and host if it is on another host.
  std::string fate(mob_rank_t rank) const;
  // "provider net, peer 192.0.2.3:41233 on hostb", if there is a link to the rank.
  std::string name_of(mob_rank_t rank) const;

  // Others know that the rank is dead: when this returns, nothing that it has sent is written to
  // memory any more. Not called in handlers.
  void give_up(mob_rank_t rank);

  // Whether a link to a process of this world has failed.
  bool has_lost_any() const;

  // Every process of this world, and of those connected with it, has come to its end, and all sent
  // messages have arrived. From now on a process may be gone while another still reports to it.
  void note_all_met() { all_met_.store(true, std::memory_order_relaxed); }
  // A process that has left in order closes its connections.
  bool has_left(mob_rank_t rank) { return peers_.has_left(rank); }
  bool have_all_met() const { return all_met_.load(std::memory_order_relaxed); }

 private:
  mob_status_t find_networks(std::vector<std::string>* networks);
  mob_status_t open_endpoint(transport::ofi::Options options,
                             const transport::ofi::Callbacks& callbacks);
  mob_status_t try_network(size_t number, const std::string& error, bool* reached,
                           std::string* reason);
  mob_status_t start_thread();
  void end_thread();
  void greeted(uint64_t card);
  base::Security security() const;
  void received(transport::ofi::PeerId sender, const unsigned char* message, size_t bytes);
  void pose(transport::ofi::PeerId sender, mob_rank_t rank);
  void lost(transport::ofi::PeerId id, const char* why);
  mob_status_t connect(mob_rank_t rank);
  void run();
  bool serve();
  void sleep();
  void wake_sleepers();
  void note_for_sleeper(std::atomic<bool>& what);
  // Whether the network thread naps, and whether until the end of a wait.
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
  base::Security security_ = base::Security::kOff;  // in force
  // Of addresses in the job's directory; the address of each network that was tried has one.
  static constexpr const char* kAddressKey = "mobius-ofi";
  std::string address_key_ = kAddressKey;
  NetworkRma rma_{*this, endpoint_};

  std::mutex mutex_;  // guards making links
  SparseArray<std::atomic<Link*>> by_rank_;
  std::vector<std::unique_ptr<Link>> owned_;
  SparseArray<Link*> links_;  // in the order of their making; entries do not move
  std::atomic<size_t> link_count_ = 0;
  std::atomic<bool> unsettled_ = false;
  std::atomic<bool> waits_ = false;   // a link holds a report or an answer
  std::atomic<uint32_t> passed_ = 0;  // how often settle() has left waits_ alone
  std::atomic<uint64_t> held_until_ns_ = 0;
  std::atomic<bool> all_met_ = false;
  std::atomic<mob_rank_t> next_watched_ = 0;

  std::atomic<uint32_t> empty_polls_ = 1;  // in a row; the poller writes it
  std::mutex thread_mutex_;                // guards starting and ending the thread
  std::thread thread_;
  bool started_ = false;  // by start()
  int pauses_ = 0;        // while any is left there is no thread
  std::atomic<bool> stop_ = false;
  std::atomic<bool> serving_ = false;
  std::atomic<uint32_t> parked_ = kIsUp;  // the thread sleeps on this word while it naps
  std::atomic<bool> asleep_ = false;      // … or sleeps until the transport has an event
  int event_ = -1;                        // wakes the thread from that sleep
};

}  // namespace mobius::engine
