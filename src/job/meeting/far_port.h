// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How processes of other hosts come to a port, by TCP. They are greeted as those of this host are
// (port.h), with one difference: no descriptor can be handed over, so what they are admitted to is
// a *meeting*, a job of its own for all processes of both teams (meeting_directory.h). Its key is
// made of the port's key and of what both sides have chosen by chance:
//
//   port → visitor   Challenge
//   visitor → port   Connect   proves the port's key: how many want to come, and which of them it
//                              is
//   port → visitor   Accepted  how many accept, and which of them this is; or Refused with a reason
//   member → port    Member    each other process of both teams, after its own Challenge: it proves
//   port → member    Accepted  the meeting's key
//
// The connections stay open: they become the channels of the meeting's directory.

#include <mobius/job.h>

#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "job/bootstrap/local_protocol.h"
#include "job/bootstrap/proof.h"
#include "job/bootstrap/rejection_log.h"
#include "job/meeting/channel.h"
#include "job/meeting/port_text.h"
#include "os/file/held_descriptor.h"
#include "os/file/tcp_socket.h"

namespace mobius::job {

struct PortWait;

// A process that has proved to know a key.
struct FarVisitor {
  os::HeldDescriptor socket;
  Nonce challenge{};  // the port's
  Nonce nonce{};      // its own
  mob_rank_t rank = 0;
  mob_rank_t count = 0;
};

// The key of a meeting, in both processes that have greeted each other.
Secret meeting_key(const Secret& port, const Nonce& challenge, const Nonce& nonce);

// In the process that accepts. One thread at a time.
class FarListener {
 public:
  // Listens at the addresses of one interface, or of all.
  mob_status_t open(const std::string& interface);
  bool is_open() const { return listener_.is_open(); }
  const std::vector<sockaddr_storage>& addresses() const { return addresses_; }

  // What a wait has to watch.
  void add_to(std::vector<pollfd>* watched) const;
  // Takes connections in, and hears who they are: those that know the port's key, and those that
  // know the meeting's.
  void go_on(const Secret& key, const Secret* meeting, Nonces& nonces, RejectionLog& log,
             std::deque<FarVisitor>* visitors, std::deque<FarVisitor>* members);

 private:
  struct Unknown {
    os::HeldDescriptor socket;
    std::string from;
    Nonce challenge{};
    uint64_t end_ns = 0;
    Message hello;
    size_t got = 0;  // bytes of it
  };
  bool hear(Unknown& unknown, const Secret& key, const Secret* meeting, RejectionLog& log,
            std::deque<FarVisitor>* visitors, std::deque<FarVisitor>* members);

  os::TcpListener listener_;
  std::vector<sockaddr_storage> addresses_;
  std::deque<Unknown> unknown_;
};

// Answers a visitor that knows `key`. `*channel`: the connection from then on.
bool accept_far(FarVisitor& visitor, const Secret& key, mob_rank_t rank, mob_rank_t size,
                Channel* channel);
void refuse_far(FarVisitor& visitor, const Secret& key, const char* reason);

// In a process that comes to the port: what it says, and the answer.
struct FarGreeting {
  MessageType type{};  // kConnect or kMember
  mob_rank_t rank = 0;
  mob_rank_t size = 0;
  Secret key{};  // the port's, or the meeting's
};
struct FarAnswer {
  mob_rank_t rank = 0;
  mob_rank_t size = 0;
  Secret meeting{};  // after kConnect
  Channel channel;
};
mob_status_t visit_far(const char* call, const std::vector<sockaddr_storage>& addresses,
                       const FarGreeting& greeting, const PortWait& wait, FarAnswer* answer);

}  // namespace mobius::job
