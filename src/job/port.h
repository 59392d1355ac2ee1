// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Ports: where a process of another job of the same user asks to join. This file is about jobs on
// one host; between hosts, processes come by TCP (meeting/far_port.h).
//
// A port is an abstract Unix socket whose address is derived from a random key, so nothing exists
// in a file system. The text of the port holds the key. Both sides prove that they know it
// (proof.h). A port may have a name, at which a second socket listens; there the key is told to
// processes of the same user. Nobody looks at the sockets but a process in accept(): until then
// those who connect wait.
//
//   visitor → port   connects; at a name, the port sends Key first. If the job that accepts is on
//                    several hosts, that is all: visitors come by TCP
//   port → visitor   Challenge
//   visitor → port   Connect   from one process: how many want to join
//   port → visitor   Accepted  the first of their numbers, and the descriptor of the segment; or
//                              Refused with a reason
//   visitor → port   Member    from each other process, after its own Challenge: which of them it
//   port → visitor   Accepted  is
//
// The connections stay open until all have joined: the end of one before is an error.

#include <mobius/job.h>

#include <poll.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "job/bootstrap/local_protocol.h"
#include "job/bootstrap/proof.h"
#include "job/bootstrap/rejection_log.h"
#include "job/meeting/channel.h"
#include "job/meeting/far_port.h"
#include "job/meeting/port_text.h"
#include "os/file/unix_socket.h"

namespace mobius::job {

// The longest name of a port.
inline constexpr size_t kMostNameBytes = 64;

// When a wait for another process ends, and what the waiting thread does meanwhile.
struct PortWait {
  uint64_t end_ns;                     // os::now_ns() then
  std::function<void()> work;          // every millisecond
  std::function<mob_status_t()> look;  // now and then: an error ends the wait
};

// A process that has proved to know the key, and how many want to join.
struct Visitor {
  os::UnixSocket socket;
  Nonce nonce{};  // its own
  mob_rank_t count = 0;
  int32_t pid = 0;  // as this process knows it
  bool pid_is_shared = false;
  bool is_far = false;  // it has come by TCP; then only `far` and `count` are set
  FarVisitor far{};
};

// What a visitor gets. If it has to come by TCP, only `far` is set.
struct Admission {
  int segment = -1;  // owned by the caller
  mob_rank_t first = 0;
  mob_rank_t others = 0;  // members of the team that accepts
  bool pid_is_shared = false;
  Secret key{};
  os::UnixSocket socket;  // keep it open until all have joined
  PortText far{};
};

// How visitors reach a port.
struct PortReach {
  bool is_near = true;      // by processes of jobs on this host alone, which join the segment
  bool is_far = true;       // by TCP
  std::string interface{};  // for TCP: this one alone, by its name, address or subnet
};

// In the process that accepts. One thread at a time.
class Port {
 public:
  Port() = default;
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // An empty name: none. MOB_ERR_STATE if a port of this user on this host has the name.
  mob_status_t open(const char* call, std::string_view name, const PortReach& reach);
  // What visitors need to know.
  PortText text() const { return {key_, far_.addresses()}; }

  // Waits for a process that wants to join. MOB_ERR_PEER when the time is over.
  mob_status_t accept(const char* call, const PortWait& wait, Visitor* visitor);
  // Lets it and those it speaks for join: they get the numbers from `first` on. `*callers` (empty)
  // gets the connections of all that were let in, also when this fails. Each process keeps its own
  // open until all have joined, or it has given up.
  mob_status_t admit(const char* call, const PortWait& wait, Visitor& visitor, int segment,
                     mob_rank_t first, mob_rank_t others, std::vector<os::UnixSocket>* callers);
  static void refuse(const Secret& key, Visitor& visitor, const char* reason);
  // Takes in the process that came by TCP, whose rank in the meeting is `first` plus its own, and
  // all others of the `size` processes of the meeting but this one, whose rank there is `own`.
  // `*channels` gets their connections, by rank.
  mob_status_t hold_meeting(const char* call, const PortWait& wait, FarVisitor& visitor,
                            const Secret& meeting, mob_rank_t own, mob_rank_t first,
                            mob_rank_t size, std::vector<Channel>* channels);
  const Secret& key() const { return key_; }

 private:
  struct Unknown {
    os::UnixSocket socket;
    pid_t pid = 0;
    Nonce nonce{};  // of its Challenge
    uint64_t end_ns = 0;
  };

  mob_status_t go_on(const char* call, const PortWait& wait, pollfd also);
  void take_in(os::UnixListener& listener, bool tells_key);
  bool hear(Unknown& unknown);

  Secret key_{};
  Nonces nonces_;
  RejectionLog log_;
  os::UnixListener listener_;
  os::UnixListener name_listener_;
  std::deque<Unknown> unknown_;
  std::deque<Visitor> visitors_;  // that nobody has accepted yet
  struct Member {
    Visitor visitor;
    mob_rank_t index = 0;
    mob_rank_t first = 0;
  };
  std::deque<Member> members_;
  bool is_near_ = true;
  FarListener far_;
  std::deque<FarVisitor> far_visitors_;
  std::deque<FarVisitor> far_members_;
  const Secret* meeting_ = nullptr;  // the key of the one that is being held
};

// In the process that connects.
//
// Asks at a port, given by its text or its name, that `count` processes may join. Nothing is asked
// if they have to come by TCP: because `may_be_near` says that they cannot join the segment of a
// job of this host, or because the port is not on this host.
mob_status_t visit(const char* call, std::string_view where, mob_rank_t count, bool may_be_near,
                   const PortWait& wait, Admission* admission);
// For the other processes: the key and `first` are those that the first one got, `index` is the
// caller's place among them.
mob_status_t visit_as_member(const char* call, const Secret& key, mob_rank_t first,
                             mob_rank_t index, const PortWait& wait, Admission* admission);

}  // namespace mobius::job
