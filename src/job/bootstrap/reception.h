// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How the processes of a host find each other where no launcher of ours started them: the first
// of them receives the others at an abstract Unix socket of its own and hands each the descriptor
// of the segment. While they join, and not after.
//
// The socket's name is random and says nothing: every user of the machine can read the names of all
// sockets. Who connects must be the same user (SO_PEERCRED, asked of the kernel by both sides) and
// show the job's key.

#include <mobius/job.h>

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "job/bootstrap/strangers.h"

namespace mobius::job {

struct ReceptionMessage;

using Secret = std::array<unsigned char, 16>;

mob_status_t make_secret(Secret* secret);

// Where a process receives others.
using ReceptionAddress = std::array<unsigned char, 16>;

// One connection, which is closed with it.
class Line {
 public:
  Line() = default;
  explicit Line(int descriptor) : descriptor_(descriptor) {}
  Line(Line&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Line& operator=(Line&& other) noexcept;
  ~Line();

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// A process that a reception let in.
struct Guest {
  mob_rank_t rank = -1;
  bool knows_our_pid = false;  // by the number that we know ourselves by
  bool pid_is_known = false;   // we know it by the number that it knows itself by
  Line line;
};

// Used by one thread; a thread of its own serves it between start() and stop().
class Reception {
 public:
  Reception() = default;
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;
  ~Reception() { close(); }

  // From now on others can connect, and wait until this process starts or closes.
  mob_status_t open();
  const ReceptionAddress& address() const { return address_; }

  // Lets in who shows the key and is one of the job's `size` ranks but not `own`.
  mob_status_t start(const Secret& secret, mob_rank_t own, mob_rank_t size);

  // Who was let in, in the order of ranks. Nobody else can connect.
  std::vector<Guest> stop();

  // Whoever waits to be let in is turned away.
  void close();

 private:
  void serve();
  void accept_all();
  void make_room();
  void hear_all();
  bool hear(Line& stranger);
  bool welcome(Line& stranger, const ReceptionMessage& hello);

  ReceptionAddress address_{};
  int listener_ = -1;
  int stop_ = -1;  // eventfd
  Secret secret_{};
  mob_rank_t own_ = -1;
  mob_rank_t size_ = 0;
  std::thread thread_;
  std::vector<Line> strangers_;  // in the order of their arrival
  std::vector<Guest> guests_;
  Strangers turned_away_;
};

// What a guest is told when all are there.
struct Handover {
  int segment = -1;  // the receiver's
  bool pid_is_shared = false;
};

// Sends one of them what it needs; the descriptor stays the caller's.
mob_status_t hand_over(const Guest& guest, const Handover& handover);
// Sends it the reason why there will be nothing.
void turn_away(const Guest& guest, const char* reason);

enum class Visit { kLetIn, kNobodyThere, kFailed };

// Asks the reception of `host` to be let in, as rank `own`; `*line` is then the connection on which
// the rest will come. kFailed with mob_last_error().
Visit visit(const ReceptionAddress& address, const Secret& secret, mob_rank_t host, mob_rank_t own,
            unsigned limit_s, Line* line);

// Waits for hand_over(); `host` for error texts.
mob_status_t take_over(const Line& line, mob_rank_t host, unsigned limit_s, Handover* handover);

}  // namespace mobius::job
