// SPDX-License-Identifier: BSD-3-Clause
#include "engine/network/network.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "engine/network/duty.h"
#include "engine/progress/adaptive_spin.h"
#include "os/cpu/scheduling.h"
#include "os/process/signals.h"
#include "os/sync/asymmetric_fence.h"
#include "os/sync/futex.h"
#include "transport/secure/secure.h"

namespace mobius::engine {
namespace {

using base::SettingId;
using transport::ofi::PeerId;

// How long the network thread lets others poll before it checks whether they still do. Each check
// takes a processor, mostly that of a polling thread. So naps grow while the others go on polling,
// and a poller that leaves a long wait wakes it.
constexpr uint64_t kNapNs = 250'000;
constexpr uint64_t kLongestNapNs = 1'000'000;
constexpr uint64_t kLongestNapInWaitNs = 8'000'000;
// Longest sleep with something left to send, or without a descriptor to sleep on.
constexpr int kRetryMs = 1;
// Longest sleep otherwise: a wake-up that a provider loses costs no more than this.
constexpr int kLongestSleepMs = 200;
// A program that starts transfers is left alone for this long: it would wait while the network
// thread receives, and for its processor.
constexpr uint64_t kNapAfterStartNs = 100'000;

// A thread that waits for no process in particular makes no more links than this, and at first to
// one process of so many other hosts: each link is a connection that is probed again and again.
constexpr size_t kMostWatched = 64;
constexpr int32_t kMostWatchedHosts = 16;

// After so many empty polls in a row, each a system call, the network counts as idle.
constexpr uint32_t kEmptyPollsToIdle = 16;

// While events come, held reports and answers are checked only every so many polls: mostly they
// must go on waiting, and a check costs as much as a small message.
constexpr uint32_t kPassed = 8;

}  // namespace

mob_status_t Network::open(RecordSinks& sinks, WriteObserver& observer) {
  if (peers_.job().hosts() == 1) return MOB_OK;
  sinks_ = &sinks;
  observer_ = &observer;
  timeout_ns_ = settings_.number(SettingId::kPeerTimeout) * 1'000'000;
  transport::ofi::Options options;
  options.provider = settings_.text(SettingId::kProvider);
  options.interface = settings_.text(SettingId::kInterface);
  options.allow_loopback = peers_.job().is_virtual();
  options.prefer_loopback = options.allow_loopback;
  options.card = static_cast<uint64_t>(peers_.rank());
  std::memcpy(options.key, peers_.job().secret().data(), sizeof options.key);
  options.security = security();
  security_ = options.security;
  transport::ofi::Callbacks callbacks;
  callbacks.context = this;
  callbacks.received = [](void* self, PeerId from, const unsigned char* message, size_t bytes) {
    static_cast<Network*>(self)->received(from, message, bytes);
  };
  callbacks.greeted = [](void* self, uint64_t card) { static_cast<Network*>(self)->greeted(card); };
  callbacks.ended = [](void* self, uint64_t operation, mob_status_t status, const char* text) {
    static_cast<Network*>(self)->rma_.ended(operation, status, text);
  };
  callbacks.noted = [](void* self, uint64_t note) {
    static_cast<Network*>(self)->observer_->noted(note);
  };
  callbacks.peer_failed = [](void* self, PeerId id, const char* why) {
    static_cast<Network*>(self)->lost(id, why);
  };
  if (const mob_status_t status = open_endpoint(options, callbacks)) return status;
  by_rank_ = SparseArray<std::atomic<Link*>>(static_cast<size_t>(peers_.most()));
  links_ = SparseArray<Link*>(static_cast<size_t>(peers_.most()));
  // Remote memory access cannot be authenticated.
  if (security_ != base::Security::kFull) rma_.open(settings_.number(SettingId::kRma));
  // Release pairs with the acquire in is_open(): the progress thread polls already.
  open_.store(true, std::memory_order_release);
  return MOB_OK;
}

// A setting that the user has not chosen gives way to a host without OpenSSL.
base::Security Network::security() const {
  const base::Security wanted = settings_.security();
  if (wanted == base::Security::kOff || settings_.is_set(SettingId::kSecurity) ||
      transport::secure::load() == MOB_OK) {
    return wanted;
  }
  if (peers_.host().index() == 0) {
    base::log(base::LogLevel::kWarn,
              "messages to other hosts are not encrypted (as with MOBIUS_SECURITY=off): %s",
              mob_last_error());
  }
  return base::Security::kOff;
}

std::string Network::security_text() const {
  if (security_ == base::Security::kOff) return "off, not encrypted";
  return std::string(base::name_of(security_)) + ", " + endpoint_.description().cipher;
}

mob_status_t Network::meet() {
  if (!is_open()) return MOB_OK;
  job::Directory& directory = *peers_.job().directory();
  if (const mob_status_t status = directory.fence()) return status;
  // Links are made later, and some never. If all agree with the first rank, all agree.
  const mob_rank_t other =
      peers_.rank() != peers_.first() ? peers_.first() : peers_.first() + peers_.size() - 1;
  std::vector<unsigned char> address;
  if (const mob_status_t status = directory.fetch(other, address_key_, &address)) return status;
  return endpoint_.check_security(("rank " + std::to_string(other)).c_str(), address);
}

mob_status_t Network::start() {
  if (!is_open()) return MOB_OK;
  const std::lock_guard lock(thread_mutex_);
  started_ = true;
  return start_thread();
}

mob_status_t Network::start_thread() {
  if (!started_ || pauses_ > 0 || thread_.joinable()) return MOB_OK;
  if (event_ < 0) event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_ < 0) {
    return base::fail_errno(MOB_ERR_SYSTEM, errno, "no descriptor for the network's thread");
  }
  try {
    const os::SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return base::fail(MOB_ERR_SYSTEM, "the network's thread cannot be started: %s", error.what());
  } catch (const std::bad_alloc&) {
    return base::fail(MOB_ERR_MEMORY, "this process has no memory left for the network's thread");
  }
  return MOB_OK;
}

void Network::pause() {
  const std::lock_guard lock(thread_mutex_);
  ++pauses_;
  end_thread();
  stop_.store(false, std::memory_order_relaxed);
}

void Network::end_pause() {
  const std::lock_guard lock(thread_mutex_);
  --pauses_;
}

mob_status_t Network::go_on() {
  const std::lock_guard lock(thread_mutex_);
  return start_thread();
}

void Network::stop() {
  const std::lock_guard lock(thread_mutex_);
  started_ = false;
  end_thread();
}

void Network::end_thread() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_seq_cst);
  wake();
  thread_.join();
}

void Network::close() {
  stop();
  endpoint_.close();
  open_.store(false, std::memory_order_release);
  link_count_.store(0, std::memory_order_relaxed);
  by_rank_ = {};
  links_ = {};
  owned_.clear();
  if (event_ >= 0) ::close(event_);
  event_ = -1;
}

mob_status_t Network::link(mob_rank_t rank, Link** link) {
  *link = find(rank);
  if (*link != nullptr) return MOB_OK;
  const std::lock_guard lock(mutex_);
  if (find(rank) == nullptr) {
    if (const mob_status_t status = connect(rank)) return status;
  }
  *link = find(rank);
  return MOB_OK;
}

// Needs mutex_. Transport peers are numbered in the order in which links were made.
mob_status_t Network::connect(mob_rank_t rank) {
  std::vector<unsigned char> address;
  mob_status_t status = peers_.job().directory()->fetch(rank, address_key_, &address);
  PeerId id = 0;
  if (status == MOB_OK) status = endpoint_.add_peer(address, &id);
  if (status != MOB_OK) return status;
  const size_t count = link_count_.load(std::memory_order_relaxed);
  links_[count] = owned_
                      .emplace_back(std::make_unique<Link>(*this, peers_.rank(), progress_,
                                                           endpoint_, *sinks_, rank, id))
                      .get();
  // Release, both: a thread that finds the link sees it complete.
  by_rank_[static_cast<size_t>(rank)].store(links_[count], std::memory_order_release);
  link_count_.store(count + 1, std::memory_order_release);
  return MOB_OK;
}

// A rank without a link to this process connects to it.
void Network::greeted(uint64_t card) {
  if (card >= static_cast<uint64_t>(peers_.bound())) return;
  const auto rank = static_cast<mob_rank_t>(card);
  if (peers_.is_here(rank)) return;
  try {
    Link* from = nullptr;
    if (link(rank, &from) == MOB_OK) return;
    base::log(base::LogLevel::kError, "rank %d cannot be answered: %s", rank, mob_last_error());
  } catch (const std::bad_alloc&) {
    base::log(base::LogLevel::kError,
              "rank %d cannot be answered: this process has no memory left for it", rank);
  }
}

void Network::received(PeerId sender, const unsigned char* message, size_t bytes) {
  FrameHeader header;
  if (bytes < sizeof header) return;
  std::memcpy(&header, message, sizeof header);
  const mob_rank_t rank = header.source;
  if (rank < 0 || rank >= peers_.bound() || peers_.is_here(rank)) {
    base::log(base::LogLevel::kWarn, "a message that no rank can have sent was dropped");
    return;
  }
  Link* from = nullptr;
  const char* wrong = nullptr;
  try {
    if (link(rank, &from) != MOB_OK) {
      base::log(base::LogLevel::kError, "a message of rank %d cannot be taken: %s", rank,
                mob_last_error());
      return;
    }
    if (sender != transport::ofi::kNobody && sender != from->peer_id()) {
      pose(sender, rank);
      return;
    }
    if (!from->accept(header, message + sizeof header, bytes - sizeof header)) {
      wrong = "it has sent an invalid frame";
    }
  } catch (const std::bad_alloc&) {
    wrong = "this process has no memory left for what it has sent";
  }
  if (from == nullptr) {
    // The sender waits for a report, and tries again or gives this process up.
    base::log(base::LogLevel::kError, "a message of rank %d cannot be taken: %s", rank, wrong);
    return;
  }
  if (wrong != nullptr) {
    // Without this frame later ones would be misread, or their gap would go unnoticed.
    from->fail(endpoint_.peer_name(from->peer_id()) + ": " + wrong);
    endpoint_.fail_peer(from->peer_id(), wrong);
  }
  from->note_report();
}

// Ends the connection to a process that sends in the name of another rank.
void Network::pose(PeerId sender, mob_rank_t rank) {
  const std::string why = "it has sent a message in the name of rank " + std::to_string(rank);
  lost(sender, (endpoint_.peer_name(sender) + ": " + why).c_str());
  endpoint_.fail_peer(sender, why.c_str());
}

void Network::lost(PeerId id, const char* why) {
  const size_t count = link_count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    if (links_[i]->peer_id() == id) links_[i]->fail(why);
  }
}

bool Network::poll() {
  bool found = endpoint_.poll();
  found |= rma_.pump();
  const uint32_t empty = found ? 0 : empty_polls_.load(std::memory_order_relaxed) + 1;
  empty_polls_.store(empty, std::memory_order_relaxed);
  return settle(empty >= kEmptyPollsToIdle) || found;
}

bool Network::settle(bool idle) {
  bool waits = waits_.load(std::memory_order_relaxed);
  if (waits && !idle) {
    // Two threads may lose a count; that does no harm.
    const uint32_t passed = passed_.load(std::memory_order_relaxed) + 1;
    passed_.store(passed, std::memory_order_relaxed);
    waits = passed % kPassed == 0;
  }
  if (!unsettled_.load(std::memory_order_relaxed) && !waits) return false;
  unsettled_.exchange(false, std::memory_order_seq_cst);
  waits_.exchange(false, std::memory_order_seq_cst);
  const size_t count = link_count_.load(std::memory_order_acquire);
  bool again = false;
  for (size_t i = 0; i < count; ++i) again |= links_[i]->settle(idle, waits);
  if (again) note_unsettled();
  return again;
}

bool Network::is_dead(mob_rank_t rank) {
  Link* known = find(rank);
  if (known == nullptr) return false;
  if (!known->has_failed() && timeout_ns_ != 0 && known->is_silent(timeout_ns_)) {
    // Mostly both processes have the same setting.
    const char* const polled = settings_.progress_mode() == base::ProgressMode::kPoll
                                   ? ", or its program does not call the library (MOBIUS_PROGRESS)"
                                   : "";
    const std::string why =
        "it has not answered for " + std::to_string(timeout_ns_ / 1'000'000) +
        " ms (MOBIUS_PEER_TIMEOUT_MS); its process or host has stopped, or the network between" +
        polled;
    known->fail(endpoint_.peer_name(known->peer_id()) + ": " + why +
                endpoint_.advice(known->peer_id()));
    endpoint_.fail_peer(known->peer_id(), why.c_str());
  }
  return known->has_failed();
}

void Network::watch(mob_rank_t rank) {
  Link* link_to_it = nullptr;
  if (!is_open() || timeout_ns_ == 0 || peers_.is_here(rank) || peers_.has_left(rank)) return;
  static_cast<void>(link(rank, &link_to_it));
}

void Network::watch_more() {
  const job::Job& job = peers_.job();
  if (!is_open()) return;
  for (int32_t i = 1; i < std::min(job.hosts(), kMostWatchedHosts + 1); ++i) {
    const mob_rank_t leader = job.leader_of((job.own_host() + i) % job.hosts());
    if (leader >= 0) watch(leader);
  }
  const mob_rank_t next = next_watched_.load(std::memory_order_relaxed);
  if (next == peers_.size() || link_count_.load(std::memory_order_relaxed) >= kMostWatched) return;
  watch(peers_.first() + next);
  next_watched_.store(next + 1, std::memory_order_relaxed);
}

std::string Network::fate(mob_rank_t rank) const {
  const Link* known = find(rank);
  if (known == nullptr) return "died";
  return known->has_failed() ? "is lost: " + known->why() : "died (" + name_of(rank) + ")";
}

std::string Network::name_of(mob_rank_t rank) const {
  const Link* known = find(rank);
  return known != nullptr ? endpoint_.peer_name(known->peer_id()) : "no link to it";
}

void Network::give_up(mob_rank_t rank) {
  Link* known = find(rank);
  if (known != nullptr) known->cut(endpoint_.peer_name(known->peer_id()) + ": its process died");
}

bool Network::has_lost_any() const {
  const size_t count = link_count_.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    const mob_rank_t rank = links_[i]->peer() - peers_.first();
    if (rank >= 0 && rank < peers_.size() && links_[i]->has_failed()) return true;
  }
  return false;
}

void Network::run() {
  threads_.enter();
  os::ask_for_short_slices();
  os::prepare_heavy_fences();  // early, because it may take long: the scheduler's queues need them
  Progress& progress = progress_;
  AdaptiveSpin eagerness(peers_.job().host().policy().background_spin_ns);
  uint32_t polls_seen = progress.polls();
  uint32_t waits_seen = progress.waits();
  uint32_t starts_seen = progress.starts();
  uint64_t nap_ns = kNapNs;
  const auto longer_nap = [&nap_ns](uint64_t longest) {
    const uint64_t now = std::min(nap_ns, longest);
    nap_ns = 2 * now;
    return now;
  };
  const auto is_polled = [&progress] { return progress.is_polled(); };
  const auto nobody_sleeps = [&progress] { return !progress.has_sleepers(); };
  while (!stop_.load(std::memory_order_relaxed)) {
    // Decide before polling: a thread of the program must not find the turn taken by a network
    // thread that has no processor.
    const uint32_t polls = std::exchange(polls_seen, progress.polls());
    const uint32_t waits = std::exchange(waits_seen, progress.waits());
    const uint32_t starts = std::exchange(starts_seen, progress.starts());
    const Duty duty = choose({.rests = progress.rests(),
                              .is_polled = progress.is_polled(),
                              .has_sleepers = progress.has_sleepers(),
                              .has_polled = polls != polls_seen,
                              .has_started = starts != starts_seen,
                              .waits = waits_seen - waits});
    if (duty != Duty::kServe) eagerness.note_left();
    switch (duty) {
      case Duty::kRest:
        wake_sleepers();
        break;
      case Duty::kNapBetweenWaits:
        park(kNaps, is_polled, longer_nap(kLongestNapNs));
        break;
      case Duty::kNapInWait:
        park(kNapsUntilLeft, is_polled, longer_nap(kLongestNapInWaitNs));
        break;
      case Duty::kNapForProgram:
        park(kNaps, nobody_sleeps, longer_nap(kLongestNapNs));
        break;
      case Duty::kNapAfterStart:
        park(kNaps, nobody_sleeps, kNapAfterStartNs);
        break;
      case Duty::kServe:
        nap_ns = kNapNs;
        if (serve()) {
          eagerness.note_found();
        } else if (waits != waits_seen || !eagerness.looks_again(os::now_ns())) {
          // Beside a program that waits now and then, poll only briefly.
          eagerness.note_left();
          sleep();
        }
        break;
    }
  }
}

bool Network::serve() {
  serving_.store(true, std::memory_order_seq_cst);
  const bool found = !progress_.rests() && waiter_.poll();
  serving_.store(false, std::memory_order_release);
  return found;
}

// The program alone polls, but its sleeping threads learn of network events only from this thread.
void Network::wake_sleepers() {
  Progress& progress = progress_;
  park(kNaps, [&] { return progress.rests() && !progress.has_sleepers(); }, os::kNoTimeout);
  if (!progress.rests() || !progress.has_sleepers()) return;
  sleep();
  progress.ring_sleepers();
  park(kNaps, [&] { return progress.rests(); }, kNapNs);  // while they handle the events
}

// Sleeps while the condition holds, until a thread calls wake(). A thread that makes the condition
// false does so before it calls wake(): either it sees parked_, or this thread sees the condition
// false.
template <typename Condition>
void Network::park(Parked how, Condition condition, uint64_t timeout_ns) {
  parked_.store(how, std::memory_order_seq_cst);
  if (condition() && !stop_.load(std::memory_order_seq_cst)) {
    os::futex_wait(&parked_, how, timeout_ns);
  }
  parked_.store(kIsUp, std::memory_order_relaxed);
}

void Network::sleep() {
  // Nobody sends reports or held answers while this thread sleeps.
  settle(true);
  if (os::now_ns() < held_until_ns_.load(std::memory_order_relaxed)) return;
  // Pairs with note_for_sleeper(): either that thread sees asleep_, or this one sees its mark.
  asleep_.store(true, std::memory_order_seq_cst);
  if (endpoint_.ready_to_sleep() && !stop_.load(std::memory_order_seq_cst)) {
    pollfd wanted[2] = {{event_, POLLIN, 0}, {endpoint_.descriptor(), POLLIN, 0}};
    // Frames that had no room or no connection are tried again after an event, and now and then.
    const bool is_stuck = has_unsettled() || rma_.has_waiting();
    ::poll(wanted, 2, is_stuck || wanted[1].fd < 0 ? kRetryMs : kLongestSleepMs);
    uint64_t count = 0;
    if (wanted[0].revents != 0) {
      [[maybe_unused]] const ssize_t got = ::read(event_, &count, sizeof count);
    }
  }
  asleep_.store(false, std::memory_order_seq_cst);
}

void Network::note_for_sleeper(std::atomic<bool>& what) {
  what.store(true, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) wake();
}

// One wake-up is enough until the thread has looked around.
void Network::wake() {
  if (parked_.exchange(kIsUp, std::memory_order_seq_cst) != kIsUp) os::futex_wake(&parked_, 1);
  if (asleep_.exchange(false, std::memory_order_seq_cst)) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t sent = ::write(event_, &one, sizeof one);
  }
}

}  // namespace mobius::engine
