// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The processes of the job as this one sees them: which of them share this host's memory, and which
// have died or left. Every component that needs to know a rank takes a Peers.

#include <mobius/job.h>

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/common/thread_id.h"
#include "job/job.h"
#include "job/liveness.h"

namespace mobius::engine {

// Facts that only components below this folder have: the links to other hosts, and the messages in
// which their processes announce that they end. Any thread.
class PeerReports {
 public:
  PeerReports() = default;
  virtual ~PeerReports() = default;
  PeerReports(const PeerReports&) = delete;
  PeerReports& operator=(const PeerReports&) = delete;

  // Whether the link to a process of another host has failed.
  virtual bool has_lost(mob_rank_t rank) = 0;
  // Asks for signs of life of a process of another host from now on; nothing for local peers.
  virtual void watch(mob_rank_t rank) = 0;
  // The same for more and more processes of other hosts, when the caller waits for none in
  // particular.
  virtual void watch_more() = 0;
  // How a process was lost, as the end of a sentence that begins with its
  // rank.
  virtual std::string fate(mob_rank_t rank) = 0;
  // Peers::is_ending() and Peers::is_at_end().
  virtual bool is_ending(mob_rank_t rank) = 0;
  virtual bool is_at_end(mob_rank_t rank) = 0;
};

class Peers {
 public:
  explicit Peers(PeerReports& reports) : reports_(reports) {}

  job::Job& job() { return job_; }
  const job::Job& job() const { return job_; }
  job::HostGroup& host() { return job_.host(); }
  const job::HostGroup& host() const { return job_.host(); }
  job::Liveness& liveness() { return job_.host().liveness(); }

  // In an engine that is a guest of another job (engine/guests.h): the numbers by which this
  // process' program names the processes, by the numbers here; -1: it names them not. Null in other
  // engines, where both numbers are the same.
  void set_public_numbers(const std::vector<mob_rank_t>* numbers) { public_numbers_ = numbers; }
  bool is_guest() const { return public_numbers_ != nullptr; }
  mob_rank_t public_number(mob_rank_t rank) const {
    if (public_numbers_ == nullptr) [[likely]] {
      return rank;
    }
    return static_cast<size_t>(rank) < public_numbers_->size()
               ? (*public_numbers_)[static_cast<size_t>(rank)]
               : -1;
  }

  // The number of this process. Calls name processes by their numbers.
  mob_rank_t rank() const { return job_.rank(); }
  // The processes that were started together with this one: its world. The first has the number
  // first().
  mob_rank_t size() const { return job_.size(); }
  mob_rank_t first() const { return job_.first(); }
  // All numbers in use are lower than bound(), which grows when processes are spawned, and all that
  // ever will be are lower than most().
  mob_rank_t bound() const { return job_.bound(); }
  mob_rank_t most() const { return job_.most(); }
  // For calls that have not checked the rank: whether it is one of this job. `known` numbers are
  // valid in the process' own job; in another one there may be more.
  bool is_rank(mob_rank_t rank, mob_rank_t known) const {
    return static_cast<uint32_t>(rank) < static_cast<uint32_t>(known) ||
           (known != 0 && is_guest() &&
            static_cast<uint32_t>(rank) < static_cast<uint32_t>(bound()));
  }
  // Whether the process is of this world, or of one that a bridge connects with it.
  bool is_connected(mob_rank_t rank) const {
    return job_.hosts() == 1 ? host().is_connected(rank) : job_.directory()->is_connected(rank);
  }
  // Whether the process is of another job, which has connected with this one.
  // In a meeting (job/meeting/far_port.h) every process is.
  bool is_foreign(mob_rank_t rank) const {
    return job_.is_meeting() || (job_.hosts() == 1 && host().is_foreign(rank));
  }
  // A rank's number among the processes of this host; -1 if it is on another host.
  mob_rank_t host_index(mob_rank_t rank) const { return job_.index_here(rank); }
  bool is_here(mob_rank_t rank) const { return host_index(rank) >= 0; }

  // Of a process of this host.
  pid_t pid_of(mob_rank_t rank) const {
    return host().slot(host_index(rank)).pid.load(std::memory_order_relaxed);
  }
  // Whether pid_of() means that process in this process' pid namespace, too.
  bool knows_pid_of(mob_rank_t rank) const {
    return host().slot(host_index(rank)).start_time.load(std::memory_order_relaxed) != 0;
  }
  // Whether a rank is this process or a thread of it.
  bool is_same_process(mob_rank_t rank) const {
    return rank == this->rank() || (is_here(rank) && pid_of(rank) == pid_of(this->rank()) &&
                                    knows_pid_of(rank) && knows_pid_of(this->rank()));
  }

  // The process ended without leaving the job.
  bool is_dead(mob_rank_t rank);
  // The process has called mob_finalize(). Of another host this is known once all processes of that
  // host have, which is enough for collective calls.
  bool is_ending(mob_rank_t rank) { return reports_.is_ending(rank); }
  // The process has called mob_finalize(), and does nothing but serve others. A process of another
  // host is asked, and the answer is known at a later call.
  bool is_at_end(mob_rank_t rank) { return reports_.is_at_end(rank); }
  // The process waits for the others at the end of mob_finalize(), or has returned from it.
  bool is_leaving(mob_rank_t rank);
  // The process has returned from mob_finalize().
  bool has_left(mob_rank_t rank);
  bool has_gone(mob_rank_t rank) { return is_dead(rank) || has_left(rank); }

  void watch(mob_rank_t rank) { reports_.watch(rank); }
  void watch_more() { reports_.watch_more(); }
  // Whether a process that the caller waits for has died or left; from now on its signs of life are
  // asked for.
  bool is_lost(mob_rank_t rank) {
    reports_.watch(rank);
    return has_gone(rank);
  }
  // How a process died, left or was lost, as the end of a sentence that begins with
  // its rank.
  std::string fate(mob_rank_t rank) { return reports_.fate(rank); }
  std::string fate_of_lost(mob_rank_t rank) {
    return has_left(rank) ? "has left the job (mob_finalize)" : fate(rank);
  }

  // Identifies the calling thread in locks that lie in shared memory.
  uint32_t lock_id() const {
    const uint32_t number = thread_id();
    const auto rank = static_cast<uint32_t>(job_.rank());
    return (rank + 1) << kThreadBits | ((number - 1) & ((1u << kThreadBits) - 1));
  }
  // The rank of the process of a lock_id().
  static mob_rank_t lock_owner(uint32_t id) {
    return static_cast<mob_rank_t>(id >> kThreadBits) - 1;
  }

 private:
  static constexpr unsigned kThreadBits = 18;

  job::Job job_;
  PeerReports& reports_;
  const std::vector<mob_rank_t>* public_numbers_ = nullptr;
};

}  // namespace mobius::engine
