// SPDX-License-Identifier: BSD-3-Clause
#include "context/context.h"

#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include "context/program_memory.h"
#include "messages/messages.h"
#include "mpi_beside.h"
#include "synchronisation/counters.h"

namespace lapi {

std::array<Context, kMostHandles + 1> contexts;
constinit thread_local int handler_depth = 0;
mob_team_t addresses_team = MOB_TEAM_NONE;

namespace {

constexpr int kDefaultTimeout = 900;  // seconds

std::mutex contexts_mutex;  // guards opening and ending contexts
unsigned live_contexts = 0;
bool began_job = false;  // this front called mob_init()

int check_info(const char* call, const lapi_handle_t* hndl, const lapi_info_t* info) {
  if (hndl == nullptr)
    return fail(call, LAPI_ERR_RET_PTR_NULL, "the pointer to the handle is null");
  if (info == nullptr) return fail(call, LAPI_ERR_RET_PTR_NULL, "lapi_info is null");
  if (info->info6 != 0 || info->instance_no > kMostHandles || info->num_compl_hndlr_thr < 0 ||
      info->lib_vers > LAST_LIB) {
    return fail(call, LAPI_ERR_INFO_NONZERO_INFO,
                "info6 %d, instance_no %u, num_compl_hndlr_thr %d, lib_vers %d", info->info6,
                info->instance_no, info->num_compl_hndlr_thr, static_cast<int>(info->lib_vers));
  }
  return LAPI_SUCCESS;
}

int join_job(const char* call) {
  if (mob_initialized() == 0) {
    began_job = mob_init() == MOB_OK;
    if (!began_job) return fail(call, LAPI_ERR_NO_ENVIRONMENT, "%s", mob_last_error());
  }
  if (mob_parent() != MOB_BRIDGE_NONE) {
    return fail(
        call, LAPI_ERR_NO_ENVIRONMENT,
        "mob_spawn() started this process; LAPI needs tasks numbered from 0, which only the "
        "processes of `mobius run -n` are: start more of those, or call mob_put() and the like in "
        "this one");
  }
  if (const int error = check_mpi(call)) return error;
  // Every address of a task may be a target.
  if (expose_program() != MOB_OK || register_messages() != MOB_OK ||
      (addresses_team == MOB_TEAM_NONE &&
       mob_team_split(MOB_TEAM_WORLD, 0, mob_rank(), &addresses_team) != MOB_OK)) {
    return fail(call, LAPI_ERR_NO_ENVIRONMENT, "%s", mob_last_error());
  }
  return LAPI_SUCCESS;
}

void begin(Context& context, const lapi_info_t& info) {
  const auto tasks = static_cast<unsigned>(mob_size());
  context.tasks = tasks;
  context.task = static_cast<unsigned>(mob_rank());
  context.version = info.lib_vers;
  context.error_handler = info.err_hndlr;
  context.timeout = kDefaultTimeout;
  context.ack_threshold = 30;
  context.interrupts = true;
  context.checks = true;
  context.fenced = false;
  context.any_purged = false;
  context.purges = 0;
  for (auto& address : context.addresses) address = nullptr;
  context.addresses[kRdmaHandler] = reinterpret_cast<void*>(rdma_arrived);
  context.rdma_notices.clear();
  context.purged = std::make_unique<std::atomic<bool>[]>(tasks);
  context.ways = std::make_unique<Statistics*[]>(tasks);
  for (unsigned i = 0; i < tasks; ++i) {
    const bool is_local = mob_is_host_mate(static_cast<mob_rank_t>(i)) == 1;
    context.ways[i] = is_local ? &context.within_host : &context.over_network;
  }
  context.ways[context.task] = &context.to_itself;
  for (Statistics* each : {&context.within_host, &context.to_itself, &context.over_network}) {
    each->sent = each->received = each->bytes_sent = each->bytes_received = 0;
  }
  context.completions.open(info.num_compl_hndlr_thr, info.lapi_thread_attr);
  context.session.fetch_add(1, std::memory_order_relaxed);
  context.serving.store(true, std::memory_order_relaxed);
  context.live.store(true, std::memory_order_release);
}

// Waits until all operations that this task requested, or that others requested of it, are done, as
// far as the other tasks are alive. Threads that go on to send would keep it from ending.
void settle(Context& context) {
  static_cast<void>(mob_flush_all());
  static_cast<void>(mob_barrier());
  context.live.store(false, std::memory_order_release);
  context.completions.drain();
  static_cast<void>(mob_flush_all());
  static_cast<void>(mob_barrier());
}

}  // namespace

Context* find_ending_context(const char* call, lapi_handle_t handle) {
  if (handle <= kMostHandles && contexts[handle].serving.load(std::memory_order_acquire) &&
      (handler_depth != 0 || CompletionThreads::is_inside())) {
    return &contexts[handle];
  }
  fail(call, LAPI_ERR_HNDL_INVALID,
       "handle %u is not one that LAPI_Init() gave, or LAPI_Term() ended it", handle);
  return nullptr;
}

int refuse_target(const char* call, const Context& context, unsigned target) {
  if (target >= context.tasks) {
    const bool came_later = mob_rank_alive(static_cast<mob_rank_t>(target)) == 1;
    return fail(call, LAPI_ERR_TGT, "target %u; tasks are 0 to %u%s", target, context.tasks - 1,
                came_later
                    ? "; processes that came later are no tasks: reach them by mob_put() and "
                      "the like"
                    : "");
  }
  if (context.purged[target].load(std::memory_order_relaxed)) {
    return fail(call, LAPI_ERR_TGT_PURGED,
                "task %u was purged; LAPI_Resume_totask() allows it again", target);
  }
  return LAPI_SUCCESS;
}

int check_may_wait(const char* call) {
  if (handler_depth == 0) return LAPI_SUCCESS;
  return fail(call, LAPI_ERR_IN_HANDLER, "a header or inline completion handler must not wait");
}

int check_mpi(const char* call) {
  static std::atomic<bool> agrees = false;
  // A program that made the job itself may have made it of any processes.
  if (!began_job || agrees.load(std::memory_order_relaxed)) return LAPI_SUCCESS;
  namespace mpi = mobius::mpi_beside;
  mpi::Comm world = 0;
  int rank = -1;
  int size = 0;
  if (!mpi::is_live() || !mpi::world(&world) || !mpi::place(world, &rank, &size)) {
    return LAPI_SUCCESS;
  }
  if (rank != mob_rank() || size != mob_size()) {
    const int code =
        fail(call, LAPI_ERR_NO_ENVIRONMENT,
             "MPI_COMM_WORLD has this process as rank %d of %d, and LAPI as task %d of %d; "
             "start the program with the launcher of its MPI (mpirun, mpiexec)",
             rank, size, mob_rank(), mob_size());
    // Many programs look at no return code.
    static std::atomic<bool> was_said = false;
    if (mob_rank() == 0 && !was_said.exchange(true)) {
      char text[LAPI_MAX_ERR_STRING];
      PLAPI_Msg_string(code, text);
      std::fprintf(stderr, "%s\n", text);
    }
    return code;
  }
  agrees.store(true, std::memory_order_relaxed);
  return LAPI_SUCCESS;
}

bool a_task_ended(const Context& context, unsigned* task) {
  for (unsigned i = 0; i < context.tasks; ++i) {
    if (context.purged[i].load(std::memory_order_relaxed)) continue;
    if (mob_rank_alive(static_cast<mob_rank_t>(i)) != 0) continue;
    *task = i;
    return true;
  }
  return false;
}

int fail_by_engine(const char* call, Context& context, unsigned target, mob_status_t status) {
  const char* text = mob_last_error();
  switch (status) {
    case MOB_OK:
      return LAPI_SUCCESS;
    case MOB_ERR_RANK:
      return fail(call, LAPI_ERR_TGT, "%s", text);
    case MOB_ERR_RANGE:
      return fail(call, LAPI_ERR_TGT_RANGE, "%s", text);
    case MOB_ERR_MEMORY:
      return fail(call, LAPI_ERR_MEMORY_EXHAUSTED, "%s", text);
    case MOB_ERR_STATE:
      return fail(call, LAPI_ERR_IN_HANDLER, "%s", text);
    case MOB_ERR_HANDLE:
      return fail(call, LAPI_ERR_TGT, "%s", text);
    case MOB_ERR_SYSTEM:
      return fail(call, LAPI_ERR_SYSTEM, "%s", text);
    case MOB_ERR_PEER: {
      const int code = fail(call, LAPI_ERR_TIMEOUT, "%s", text);
      // While the handle ends, a task that is gone is no surprise.
      if (context.error_handler != nullptr && context.live.load(std::memory_order_acquire)) {
        report(context, code, COM_ERR, target, text);
      }
      return code;
    }
    default:
      return fail(call, LAPI_ERR_BAD_PARAMETER, "%s", text);
  }
}

void report(Context& context, int code, lapi_err_t type, unsigned task, const char* text) {
  if (context.error_handler == nullptr) {
    char reason[LAPI_MAX_ERR_STRING];
    std::snprintf(reason, sizeof reason,
                  "%s: %s; LAPI_Init() was given no error handler that would take it",
                  name_of(code), text);
    mob_abort(1, reason);
  }
  lapi_handle_t handle = context.handle;
  int error_code = fail("LAPI", code, "%s", text);
  int task_id = static_cast<int>(context.task);
  int source = static_cast<int>(task);
  context.error_handler(&handle, &error_code, &type, &task_id, &source);
}

}  // namespace lapi

using lapi::Context;
using lapi::contexts;

extern "C" int PLAPI_Init(lapi_handle_t* hndl, lapi_info_t* lapi_info) {
  constexpr const char* kCall = "LAPI_Init";
  if (const int error = lapi::check_info(kCall, hndl, lapi_info)) return error;
  const std::lock_guard lock(lapi::contexts_mutex);
  unsigned handle = lapi_info->instance_no;
  if (handle == 0) {
    for (handle = 1; handle <= lapi::kMostHandles && contexts[handle].live; ++handle) {
    }
  }
  if (handle > lapi::kMostHandles || contexts[handle].live) {
    return lapi::fail(kCall, LAPI_ERR_ALL_HNDL_IN_USE, "%s",
                      handle > lapi::kMostHandles ? "there are 16 handles"
                                                  : "the handle of this instance_no is in use");
  }
  if (lapi::live_contexts == 0) {
    if (const int error = lapi::join_job(kCall)) return error;
  }
  Context& context = contexts[handle];
  context.handle = handle;
  lapi::begin(context, *lapi_info);
  ++lapi::live_contexts;
  // From here on every task may send to this one.
  if (const mob_status_t status = mob_barrier()) {
    return lapi::fail_by_engine(kCall, context, context.task, status);
  }
  lapi_info->protocol = MOBIUS_DEV;
  *hndl = handle;
  return LAPI_SUCCESS;
}
LAPI_TWIN(Init)

extern "C" int PLAPI_Term(lapi_handle_t hndl) {
  constexpr const char* kCall = "LAPI_Term";
  if (const int error = lapi::check_may_wait(kCall)) return error;
  const std::lock_guard lock(lapi::contexts_mutex);
  Context* context = lapi::find_context(kCall, hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  static_cast<void>(lapi::check_mpi(kCall));  // a last chance to say it
  lapi::settle(*context);
  context->serving.store(false, std::memory_order_release);
  context->completions.close();
  if (!context->interrupts.exchange(true)) static_cast<void>(lapi::allow_interrupts());
  if (--lapi::live_contexts > 0) return LAPI_SUCCESS;
  lapi::withdraw_program();
  if (std::exchange(lapi::began_job, false) && mob_finalize() != MOB_OK) {
    return lapi::fail(kCall, LAPI_ERR_UNKNOWN, "%s", mob_last_error());
  }
  return LAPI_SUCCESS;
}
LAPI_TWIN(Term)
