// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// ARMCI's handles. They have two ints that are the library's; what Möbius knows of the operations
// of one is kept here under a number that lies in the first. Between host-mates operations are
// complete when the call returns, and nothing is kept. Operations of a handle that collects are
// only started: the engine gathers them into few messages, which a flush of their processes sends.

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "front.h"
#include "topology.h"

namespace mobius::armci {

// In `target` of a handle.
inline constexpr int kNoOperation = -1;

// How the caller of a transfer learns of its end.
struct Ending {
  enum Kind { kBlocking, kHandle, kImplicit } kind = kBlocking;
  armci_hdl_t* handle = nullptr;

  static Ending blocking() { return {}; }
  // An operation on `proc` has no handle of its own: a flush completes it. Between host-mates there
  // is nothing to gather.
  bool is_collected(int proc) const {
    return kind == kImplicit ||
           (kind == kHandle && handle->aggregate == 1 && topology().is_far(proc));
  }

  // A handle that does not collect forgets what it stood for.
  static Ending nonblocking(armci_hdl_t* handle) {
    if (handle == nullptr) return {kImplicit, nullptr};
    if (handle->aggregate != 1) handle->target = kNoOperation;
    return {kHandle, handle};
  }
};

class Handles {
 public:
  // An operation was started with a handle. It may be done already.
  void started(armci_hdl_t* handle, int proc, mob_handle_t operation) {
    if (operation != MOB_HANDLE_DONE) keep(handle, proc, operation);
  }

  // … with a handle that collects; it has no name of its own.
  void collected(armci_hdl_t* handle, int proc);

  void wait(armci_hdl_t* handle, const char* function);
  // Waits for what a handle has collected.
  bool test(armci_hdl_t* handle, const char* function);
  void wait_process(int proc, const char* function);
  void wait_all(const char* function);

 private:
  struct Operation {
    int proc;
    mob_handle_t handle;  // done: a flush of the process completes it, and all like it
  };

  static void complete(Operation& operation, const char* function);

  void keep(armci_hdl_t* handle, int proc, mob_handle_t operation);
  // Takes what a handle stands for out of the table.
  std::vector<Operation> take(armci_hdl_t* handle);

  std::mutex mutex_;  // guards what follows
  std::map<int, std::vector<Operation>> pending_;
  int last_ = 0;
  std::atomic<bool> any_{false};  // whether pending_ has anything: looked at without the lock
};

Handles& handles();

// Carries a transfer out.
void issue(const mob_transfer_t& transfer, const Ending& ending, const char* function);

}  // namespace mobius::armci
