// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A LAPI context: the state behind one handle of LAPI_Init(). The same number names it in each
// task.

#include <mobius/mobius.h>

#include <lapi.h>

#include <array>
#include <atomic>
#include <memory>

#include "context/completion_threads.h"
#include "context/errors.h"
#include "context/handle_lock.h"
#include "transfers/rdma.h"

namespace lapi {

inline constexpr unsigned kMostHandles = 16;
inline constexpr int kAddressTable = 1024;
// The index of rdma_arrived(), which no program can set.
inline constexpr unsigned kRdmaHandler = kAddressTable;

// Counts for one path: over a network, within a host, or to the task itself. Racing threads may
// lose counts; exact ones would slow down every message.
struct Statistics {
  std::atomic<uint64_t> sent = 0;
  std::atomic<uint64_t> received = 0;
  std::atomic<uint64_t> bytes_sent = 0;
  std::atomic<uint64_t> bytes_received = 0;

  static void add(std::atomic<uint64_t>& count, uint64_t amount) {
    count.store(count.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
};

struct Context {
  lapi_handle_t handle = 0;
  // Whether any thread may use the handle: until all tasks are in LAPI_Term().
  std::atomic<bool> live = false;
  // Whether messages are taken, and handlers may use it: until LAPI_Term() has run them.
  std::atomic<bool> serving = false;
  std::atomic<unsigned> session = 0;  // counts the uses of this object; a handler may outlive one
  std::atomic<bool> checks = true;
  std::atomic<bool> fenced = false;  // LAPI_Gfence() was called
  std::atomic<bool> any_purged = false;
  unsigned tasks = 0;
  unsigned task = 0;
  lapi_lib_t version = L1_LIB;
  LAPI_err_hndlr* error_handler = nullptr;
  std::atomic<int> timeout = 0;
  std::atomic<int> ack_threshold = 0;
  std::atomic<bool> interrupts = true;
  std::array<std::atomic<void*>, kAddressTable + 1> addresses{};
  std::unique_ptr<std::atomic<bool>[]> purged;
  std::atomic<unsigned> purges = 0;  // number of purges so far
  CompletionThreads completions;
  HandleLock lock;
  RdmaNotices rdma_notices;
  Statistics within_host;
  Statistics to_itself;
  Statistics over_network;
  std::atomic<uint64_t> sends_completed = 0;  // for LAPI_Msgpoll()
  std::atomic<uint64_t> receives_completed = 0;

  std::unique_ptr<Statistics*[]> ways;  // the path to each task

  Statistics& statistics_of(unsigned other) { return *ways[other]; }

  // Called after a transfer was started: sends it now, because the program may not call LAPI for a
  // long time. Between hosts the engine would otherwise gather it with others until the next call.
  void push(unsigned target);
};

extern std::array<Context, kMostHandles + 1> contexts;  // by handle; index 0 is never live

// The context of a handle that LAPI_Term() ends, for a handler that runs meanwhile; else null, with
// the error recorded.
[[gnu::cold]] Context* find_ending_context(const char* call, lapi_handle_t handle);

// The context of a handle; null if there is none, with the error recorded.
inline Context* find_context(const char* call, lapi_handle_t handle) {
  if (handle <= kMostHandles) [[likely]] {
    Context& found = contexts[handle];
    if (found.live.load(std::memory_order_acquire)) [[likely]] {
      return &found;
    }
  }
  return find_ending_context(call, handle);
}

// LAPI_SUCCESS, or the reason why a task cannot be a target.
[[gnu::cold]] int refuse_target(const char* call, const Context& context, unsigned target);
inline int check_target(const char* call, const Context& context, unsigned target) {
  if (target < context.tasks && !context.any_purged.load(std::memory_order_relaxed)) [[likely]] {
    return LAPI_SUCCESS;
  }
  return refuse_target(call, context, target);
}

// Reports an error of the engine in a call that concerns a task.
[[gnu::cold]] int fail_by_engine(const char* call, Context& context, unsigned target,
                                 mob_status_t status);

// An error that no call can return: calls the user's handler, or ends the job.
[[gnu::cold]] void report(Context& context, int code, lapi_err_t type, unsigned task,
                          const char* text);

// All tasks, for the calls that exchange addresses: they must not meet the barrier of a
// LAPI_Gfence() that another thread, or another task, is in at the same time.
extern mob_team_t addresses_team;

// Whether a task has ended that was not purged; `*task` becomes that task.
bool a_task_ended(const Context& context, unsigned* task);

// Not 0 while a header handler or an inline completion handler runs on this thread.
extern constinit thread_local int handler_depth [[gnu::tls_model("initial-exec")]];
struct InHandler {
  InHandler() { ++handler_depth; }
  ~InHandler() { --handler_depth; }
  InHandler(const InHandler&) = delete;
  InHandler& operator=(const InHandler&) = delete;
};
int check_may_wait(const char* call);

// An error if the program's MPI counts other processes than LAPI does, as it does under `mobius
// run`, where each process is an MPI job of its own. Task 0 also says it, once. A program may
// initialise MPI after LAPI, so several calls check; it takes a microsecond as long as there is
// none.
int check_mpi(const char* call);

inline void Context::push(unsigned target) {
  if (ways[target] == &over_network && handler_depth == 0) [[unlikely]] {
    mob_poll();
  }
}

}  // namespace lapi

// Defines LAPI_name as a weak alias of PLAPI_name, whose definition precedes it.
#define LAPI_TWIN(name) \
  extern "C" decltype(PLAPI_##name) LAPI_##name __attribute__((weak, alias("PLAPI_" #name)));
