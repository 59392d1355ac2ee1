// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// ARMCI's handles. A handle has two ints for the library. The first holds a number, under which
// this table keeps the operations of the handle. Between local peers operations are complete when
// the call returns, and nothing is kept. Operations of a collecting handle are only started: the
// engine gathers them into few messages, which a flush of their processes sends.

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "front.h"
#include "topology.h"

namespace mobius::armci {

// Value of `target` in a handle without operations.
inline constexpr int kNoOperation = -1;

// How the caller of a transfer waits for its completion.
struct Ending {
  enum Kind { kBlocking, kHandle, kImplicit } kind = kBlocking;
  armci_hdl_t* handle = nullptr;

  static Ending blocking() { return {}; }
  // Whether an operation on `proc` has no handle of its own, so that a flush completes it. Between
  // local peers there is nothing to gather.
  bool is_collected(int proc) const {
    return kind == kImplicit ||
           (kind == kHandle && handle->aggregate == 1 && topology().is_far(proc));
  }

  // A handle that does not collect forgets its former operation.
  static Ending nonblocking(armci_hdl_t* handle) {
    if (handle == nullptr) return {kImplicit, nullptr};
    if (handle->aggregate != 1) handle->target = kNoOperation;
    return {kHandle, handle};
  }
};

class Handles {
 public:
  // Records an operation that was started with a handle. It may be complete already.
  void started(armci_hdl_t* handle, int proc, mob_handle_t operation) {
    if (operation != MOB_HANDLE_DONE) keep(handle, proc, operation);
  }

  // Records an operation that was started with a collecting handle.
  void collected(armci_hdl_t* handle, int proc);

  void wait(armci_hdl_t* handle, const char* function);
  // For a collecting handle it waits.
  bool test(armci_hdl_t* handle, const char* function);
  void wait_process(int proc, const char* function);
  void wait_all(const char* function);

 private:
  struct Operation {
    int proc;
    // Done: a flush of the process completes this and all other such operations.
    mob_handle_t handle;
  };

  static void complete(Operation& operation, const char* function);

  void keep(armci_hdl_t* handle, int proc, mob_handle_t operation);
  // Removes the operations of a handle from the table, and returns them.
  std::vector<Operation> take(armci_hdl_t* handle);

  std::mutex mutex_;  // guards the members below
  std::map<int, std::vector<Operation>> pending_;
  int last_ = 0;
  std::atomic<bool> any_{false};  // whether pending_ has entries; read without the lock
};

Handles& handles();

// Carries out a transfer.
void issue(const mob_transfer_t& transfer, const Ending& ending, const char* function);

}  // namespace mobius::armci
