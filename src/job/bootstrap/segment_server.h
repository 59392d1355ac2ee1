// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Hands the descriptor of a host's segment to the other processes of the job on that host. Used
// only while processes join that `mobius run` did not start.
//
// The first process of the host listens at an abstract Unix socket. Every user of the machine can
// read the names of all sockets, so the name is random and independent of the job's secret. A
// process that connects must run as the same user (SO_PEERCRED, which both sides ask the kernel
// for), and both sides prove that they know the job's secret (proof.h).

#include <mobius/job.h>

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "job/bootstrap/proof.h"
#include "job/bootstrap/rejection_log.h"

namespace mobius::job {

struct ServerMessage;

// The random part of a server's socket name.
using ServerAddress = std::array<unsigned char, 16>;

// Owns the descriptor of a connected socket.
class Connection {
 public:
  Connection() = default;
  explicit Connection(int descriptor) : descriptor_(descriptor) {}
  Connection(Connection&& other) noexcept : descriptor_(other.descriptor_) {
    other.descriptor_ = -1;
  }
  Connection& operator=(Connection&& other) noexcept;
  ~Connection();

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// A process that the server has admitted.
struct SegmentClient {
  mob_rank_t rank = -1;
  bool knows_our_pid = false;  // it sees the server's process id as the server does
  bool pid_is_known = false;   // the server sees its process id as it does itself
  Connection connection;
};

// Not thread-safe. A thread of its own serves clients between start() and stop().
class SegmentServer {
 public:
  SegmentServer() = default;
  SegmentServer(const SegmentServer&) = delete;
  SegmentServer& operator=(const SegmentServer&) = delete;
  ~SegmentServer() { close(); }

  // Listens. Processes that connect wait until start() or close().
  mob_status_t open();
  const ServerAddress& address() const { return address_; }

  // Admits clients that prove to know the secret and are one of the job's `size` ranks but not
  // `own`.
  mob_status_t start(const Secret& secret, mob_rank_t own, mob_rank_t size);

  // Stops listening and returns the admitted clients in the order of their ranks.
  std::vector<SegmentClient> stop();

  // Stops listening and closes the connections of all clients.
  void close();

 private:
  void serve();
  // A connection before its hello.
  struct Unknown {
    Connection connection;
    Nonce nonce;  // of its challenge
  };

  void accept_some();
  void accept_failed(int error);
  void make_room();
  void receive_hellos();
  bool receive_hello(Unknown& unknown);
  bool admit(Unknown& unknown, const ServerMessage& hello);

  ServerAddress address_{};
  int listener_ = -1;
  int stop_ = -1;  // eventfd
  Secret secret_{};
  mob_rank_t own_ = -1;
  mob_rank_t size_ = 0;
  std::thread thread_;
  std::vector<Unknown> unknown_;  // in the order of their arrival
  std::vector<SegmentClient> clients_;
  RejectionLog rejections_;
  Nonces nonces_;
  int accept_failures_ = 0;  // in a row
};

// The server's answer once all processes of the host have joined.
struct SegmentOffer {
  int segment = -1;  // owned by the receiver
  bool pid_is_shared = false;
};

// Sends the offer to one client; the caller keeps its own descriptor.
mob_status_t send_segment(const SegmentClient& client, const SegmentOffer& offer);
// Tells a client why it gets no segment.
void send_refusal(const SegmentClient& client, const char* reason);

enum class JoinOutcome { kJoined, kNobodyThere, kFailed };

// Asks the server of rank `host` to admit this process as rank `own`. On kJoined, `*connection` is
// where the segment will arrive. kFailed sets mob_last_error().
JoinOutcome join_segment_server(const ServerAddress& address, const Secret& secret, mob_rank_t host,
                                mob_rank_t own, unsigned limit_s, Connection* connection);

// Waits for the server's send_segment(). `host` is named in error texts.
mob_status_t receive_segment(const Connection& connection, mob_rank_t host, unsigned limit_s,
                             SegmentOffer* offer);

}  // namespace mobius::job
