// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Starts the processes of a world where no launcher does: the process that spawns starts them
// itself, and a thread of it lets them join and watches them until all have. They are killed when
// that process ends.

#include <mobius/job.h>

#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

#include "job/bootstrap/local_protocol.h"
#include "job/bootstrap/proof.h"
#include "job/control.h"
#include "job/spawn_request.h"
#include "os/file/unix_socket.h"

namespace mobius::job {

class ChildStarter {
 public:
  // The block is that of the segment, and its record of the world says what is asked for. `segment`
  // stays open until the object ends.
  ChildStarter(ControlBlock& block, int segment, mob_rank_t first)
      : block_(block), segment_(segment), first_(first) {}
  ChildStarter(const ChildStarter&) = delete;
  ChildStarter& operator=(const ChildStarter&) = delete;
  ~ChildStarter();

  // Starts the processes and sets the state of the record. The kernel kills those that have not
  // joined when the calling thread ends. `*reason` says why it fails; cancel() ends those that were
  // started nevertheless.
  mob_status_t start(const SpawnRequest& request, std::string* reason);

  // All have joined.
  void settle();
  // Ends the processes, and returns when they have ended.
  void cancel();
  WorldState state() const { return world().state.load(std::memory_order_acquire); }
  // Whether its thread has ended, or was never started.
  bool is_settled() const { return !thread_.joinable(); }
  // Whether all processes have ended. Removes what is left of those that have. The starter is
  // settled.
  bool have_ended();

 private:
  struct Child {
    pid_t pid = 0;  // 0: has ended
    int pidfd = -1;
    os::UnixSocket connection;  // closing it kills the process
  };
  struct Unknown {
    os::UnixSocket socket;
    pid_t pid = 0;
    Nonce nonce{};  // of its Challenge
  };

  mob_status_t listen();
  mob_status_t start_all(const SpawnRequest& request, std::string* reason);
  void serve();
  void accept_some();
  bool receive_hello(Unknown& unknown);
  void note_ends();
  void give_up(const std::string& reason);
  World& world() const { return block_.world(first_); }

  ControlBlock& block_;
  const int segment_;
  const mob_rank_t first_;
  Secret secret_{};
  Nonces nonces_;
  os::UnixListener listener_;
  int stop_ = -1;
  std::string program_;
  std::vector<Child> children_;
  std::vector<Unknown> unknown_;
  std::thread thread_;
};

}  // namespace mobius::job
