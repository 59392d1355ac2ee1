// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The launcher's side of job/bootstrap/local_protocol.h: which ranks have joined, left or been
// lost.
//
// Any process of the machine can connect. One that does so without pause must not keep the launcher
// from its other work: each call does a bounded amount, connections of other users are closed
// before anything is allocated for them, and when many outsiders come the listener pauses.

#include <mobius/job.h>

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "job/bootstrap/local_protocol.h"
#include "job/control.h"
#include "job/launch/host_worlds.h"
#include "job/launch/poller.h"

namespace mobius::launch {

class Rendezvous {
 public:
  enum class State { kAbsent, kJoined, kLeft, kLost };  // lost: gone without Goodbye
  struct Member {
    State state = State::kAbsent;
    pid_t pid = 0;         // of the process that joined; with a wrapper not the one that we started
    uint32_t slot = 0;     // its connection, while joined
    bool aborted = false;  // asked for the end of the job
    int pidfd = -1;        // while it is joined without connection, having closed its descriptors
  };
  struct Change {
    mob_rank_t rank;
    State state;
  };
  using Clock = std::chrono::steady_clock;
  static constexpr auto kNever = Clock::time_point::max();
  // Connections that have not proven to be of the job, beyond one for each rank. With more, or with
  // fewer descriptors, the oldest of them are closed.
  static constexpr size_t kMostUnknown = 512;

  explicit Rendezvous(Poller& poller) : poller_(poller) {}
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  using Segment = HostSegment;

  // Makes the job's secret, its segments and the socket. With several virtual `hosts` each has a
  // segment of its own.
  mob_status_t open(mob_rank_t size, int32_t hosts);

  // The value of MOBIUS_JOB for the ranks.
  const std::string& key() const { return key_; }
  const Member& member(mob_rank_t rank) const { return members_[static_cast<size_t>(rank)]; }
  mob_rank_t joined() const { return joined_; }  // ever
  mob_rank_t lost() const { return lost_; }      // ever

  void on_listener();                 // Source::kListener
  void on_connection(uint32_t slot);  // Source::kConnection
  void on_detached(mob_rank_t rank);  // Source::kDetached
  // Ends a pause of the listener.
  void on_time(Clock::time_point now);
  Clock::time_point deadline() const { return resume_at_; }
  // Why no rank can join any more; empty while ranks can.
  const std::string& failure() const { return failure_; }
  // Handles everything that arrived before the call, so that the messages which these ranks sent
  // before they ended are known when their end is judged.
  void catch_up(const std::vector<mob_rank_t>& ended);

  // Marks a rank that has ended as dead, for the ranks that joined.
  void declare_dead(mob_rank_t rank);

  // The worlds whose record has changed, as ranks have said since the last call.
  std::vector<mob_rank_t> take_worlds() { return std::exchange(worlds_, {}); }
  // There are so many ranks from now on; they never become fewer.
  void grow(mob_rank_t size);
  // The segment with the records of worlds: that of the only host, or the directory's.
  const Segment& worlds() const { return segments_.size() == 1 ? segments_[0] : directory_; }
  // In a job on virtual hosts: the hosts, and the processes of spawns on them.
  bool has_virtual_hosts() const { return segments_.size() > 1; }
  mob_status_t place_world(mob_rank_t first, std::span<const int32_t> hosts) {
    return host_worlds_.place(segments_, worlds().block->world(first), first, hosts);
  }
  void start_world(mob_rank_t first, mob_rank_t count) {
    if (has_virtual_hosts()) host_worlds_.start(segments_, first, count);
  }
  void fail_world(mob_rank_t first) {
    if (has_virtual_hosts()) host_worlds_.fail(segments_, first);
  }
  // -1: it has none, or this is not a job on virtual hosts.
  int32_t virtual_host_of(mob_rank_t rank) const {
    return has_virtual_hosts() ? place_of(rank).host : -1;
  }

  // The changes since the last call, in order.
  std::vector<Change> take_changes() { return std::exchange(changes_, {}); }

 private:
  struct Connection {
    int descriptor = -1;
    pid_t pid = 0;
    mob_rank_t rank = -1;  // before Hello
    job::Nonce nonce{};    // of its Challenge
    Clock::time_point since{};
    std::list<uint32_t>::iterator unknown;  // its place in unknown_, before Hello
  };

  mob_status_t make_segments(mob_rank_t size, int32_t hosts);
  void accept_some(int most);
  void accept_failed(int error);
  void add_connection(int descriptor, pid_t pid);
  void make_room(pid_t pid);
  void pause_until(Clock::time_point time);
  void count_outsider();
  void report(pid_t pid, const char* what);
  void drop_if_silent(uint32_t slot);
  bool drop_oldest_unknown(std::chrono::milliseconds least_age);
  bool receive(Connection& connection);
  bool detach(mob_rank_t rank);
  void note(mob_rank_t rank, State state);
  job::Place place_of(mob_rank_t rank) const;
  const Segment& segment_of(mob_rank_t rank) const;
  job::ProcessState state_in_segment(mob_rank_t rank) const;
  void on_spawn(const job::Message& message);
  void on_abort(const job::Message& message);
  bool welcome(Connection& connection, const job::Message& hello);
  bool refuse(const Connection& connection, const job::Message& hello, const std::string& reason);
  bool answer(const Connection& connection, job::Message message, const job::Message& hello,
              int descriptor);
  void close_connection(Connection& connection);

  Poller& poller_;
  job::Secret secret_{};
  std::string key_;  // the secret as text
  job::Nonces nonces_;
  int listener_ = -1;
  job::Layout layout_{std::span<const int32_t>()};
  std::vector<Segment> segments_;  // by host
  Segment directory_;              // if there are several hosts
  HostWorlds host_worlds_;         // … too
  std::vector<Member> members_;
  std::vector<Connection> connections_;
  std::vector<uint32_t> free_;   // slots of connections_
  std::list<uint32_t> unknown_;  // slots of connections before Hello, in the order of arrival
  std::vector<Change> changes_;
  std::vector<mob_rank_t> worlds_;
  mob_rank_t joined_ = 0;
  mob_rank_t lost_ = 0;
  int reported_ = 0;   // outsiders that were logged
  int outsiders_ = 0;  // since window_began_
  Clock::time_point window_began_{};
  Clock::time_point resume_at_ = kNever;      // the listener is paused until then
  Clock::time_point failing_since_ = kNever;  // accept() fails since then
  std::string failure_;
};

}  // namespace mobius::launch
