// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The launcher's side of job/bootstrap/local_protocol.h: who joined, who left, who was lost.

#include <mobius/job.h>

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "job/bootstrap/local_protocol.h"
#include "job/control.h"
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
  };
  struct Change {
    mob_rank_t rank;
    State state;
  };

  explicit Rendezvous(Poller& poller) : poller_(poller) {}
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // Makes the job's key, its segments and the socket. With several `hosts`, virtual ones, each has
  // a segment of its own.
  mob_status_t open(mob_rank_t size, int32_t hosts);

  const std::string& key() const { return key_; }
  const Member& member(mob_rank_t rank) const { return members_[static_cast<size_t>(rank)]; }
  mob_rank_t joined() const { return joined_; }  // ever
  mob_rank_t lost() const { return lost_; }      // ever

  void on_listener();                 // Source::kListener
  void on_connection(uint32_t slot);  // Source::kConnection
  // Handles what is waiting now, so that what these ranks said before they ended is known when
  // their end is judged.
  void catch_up(const std::vector<mob_rank_t>& ended);

  // Lets the ranks that joined know that one, which has ended, is gone for good.
  void declare_dead(mob_rank_t rank);

  // What happened since the last call, in order.
  std::vector<Change> take_changes() { return std::exchange(changes_, {}); }

 private:
  struct Connection {
    int descriptor = -1;
    pid_t pid = 0;
    mob_rank_t rank = -1;  // before Hello
    uint64_t number = 0;   // in the order of arrival
  };

  // A segment, and its control block here.
  struct Segment {
    int descriptor = -1;
    job::ControlBlock* block = nullptr;
  };

  mob_status_t make_segments(mob_rank_t size, int32_t hosts);
  void report(pid_t pid, const char* what);
  bool drop_silent();
  bool receive(Connection& connection);
  void on_abort(const job::Message& message);
  bool welcome(Connection& connection, const job::Message& hello);
  bool refuse(const Connection& connection, const std::string& reason);
  void close_connection(Connection& connection);

  Poller& poller_;
  std::string key_;
  int listener_ = -1;
  job::Layout layout_{std::span<const int32_t>()};
  std::vector<Segment> segments_;  // by host
  Segment board_;                  // if there are several hosts
  std::vector<Member> members_;
  std::vector<Connection> connections_;
  std::vector<Change> changes_;
  uint64_t accepted_ = 0;
  mob_rank_t joined_ = 0;
  mob_rank_t lost_ = 0;
  int reported_ = 0;  // strangers
};

}  // namespace mobius::launch
