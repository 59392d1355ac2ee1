// SPDX-License-Identifier: BSD-3-Clause
#include "synchronisation/counters.h"

#include <ctime>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "context/context.h"

namespace lapi {
namespace {

constexpr int kSpins = 200;

std::atomic<int> waiters = 0;

// All statuses that were ever set, by counter. They are never freed, because a counter has no end.
std::mutex statuses_mutex;
std::unordered_map<const lapi_cntr_t*, std::unique_ptr<lapi_cntr_status>> statuses;

void relax() {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

int64_t load(const lapi_cntr_t& counter) {
  return static_cast<int64_t>(__atomic_load_n(&counter.lapi_value, __ATOMIC_ACQUIRE));
}

// Subtracts `value` if the counter holds that much; `*left` becomes the rest.
bool take(lapi_cntr_t& counter, int64_t value, int64_t* left) {
  uint64_t held = __atomic_load_n(&counter.lapi_value, __ATOMIC_ACQUIRE);
  while (static_cast<int64_t>(held) >= value) {
    const uint64_t rest = held - static_cast<uint64_t>(value);
    if (__atomic_compare_exchange_n(&counter.lapi_value, &held, rest, true, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      *left = static_cast<int64_t>(rest);
      return true;
    }
  }
  return false;
}

int mark(const lapi_cntr_status& status, unsigned task, int from, int to) {
  int marked = 0;
  for (int i = 0; i < status.destinations; ++i) {
    if (status.list[i] != task) continue;
    int expected = from;
    if (__atomic_compare_exchange_n(&status.status[i], &expected, to, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      ++marked;
    }
  }
  return marked;
}

int check(const char* call, lapi_handle_t hndl, const lapi_cntr_t* cntr, Context** context) {
  *context = find_context(call, hndl);
  if (*context == nullptr) return LAPI_ERR_HNDL_INVALID;
  if (cntr == nullptr) return fail(call, LAPI_ERR_CNTR_NULL, "the counter is null");
  return LAPI_SUCCESS;
}

void set(lapi_cntr_t& counter, int value, lapi_cntr_status* status) {
  __atomic_store_n(&counter.lapi_status, status, __ATOMIC_RELEASE);
  __atomic_store_n(&counter.lapi_value, static_cast<uint64_t>(static_cast<int64_t>(value)),
                   __ATOMIC_SEQ_CST);
  wake_waiters();
}

// Waits once for a change of a counter: LAPI_SUCCESS when the caller should check the counter
// again.
int wait_in_engine(const char* call, Context& context, lapi_cntr_t& counter, int value) {
  waiters.fetch_add(1, std::memory_order_seq_cst);
  const mob_status_t status =
      mob_wait_until_i8(reinterpret_cast<const int64_t*>(&counter.lapi_value), MOB_GE, value);
  waiters.fetch_sub(1, std::memory_order_relaxed);
  if (status == MOB_OK) return LAPI_SUCCESS;
  if (status == MOB_ERR_STATE) return check_may_wait(call);
  unsigned task = 0;
  if (status == MOB_ERR_PEER) {
    // A task that has ended and was purged does not end the wait.
    if (!a_task_ended(context, &task)) return LAPI_SUCCESS;
  }
  return fail_by_engine(call, context, task, status);
}

}  // namespace

void wake_waiters() {
  if (waiters.load(std::memory_order_seq_cst) == 0) return;
  // Counted when the engine gets to it, which may be after this call has returned.
  static uint64_t rung = 0;
  static_cast<void>(mob_put_counted(mob_rank(), nullptr, nullptr, 0, nullptr, &rung, nullptr));
}

void count(lapi_cntr_t* counter, unsigned source) {
  if (counter == nullptr) return;
  const lapi_cntr_status* status = __atomic_load_n(&counter->lapi_status, __ATOMIC_ACQUIRE);
  if (status != nullptr) mark(*status, source, LAPI_MSG_INITIAL, LAPI_MSG_RECVD);
  __atomic_fetch_add(&counter->lapi_value, 1, __ATOMIC_SEQ_CST);
  wake_waiters();
}

// Updates the counters that wait for a purged task.
void note_purge(unsigned task) {
  const std::lock_guard lock(statuses_mutex);
  for (const auto& each : statuses) {
    mark(*each.second, task, LAPI_MSG_INITIAL, LAPI_MSG_PURGED);
    mark(*each.second, task, LAPI_MSG_RECVD, LAPI_MSG_PURGED_RCVD);
  }
}

}  // namespace lapi

using lapi::Context;

extern "C" int PLAPI_Setcntr(lapi_handle_t hndl, lapi_cntr_t* cntr, int val) {
  Context* context = nullptr;
  if (const int error = lapi::check("LAPI_Setcntr", hndl, cntr, &context)) return error;
  lapi::set(*cntr, val, nullptr);
  return LAPI_SUCCESS;
}
LAPI_TWIN(Setcntr)

extern "C" int PLAPI_Getcntr(lapi_handle_t hndl, lapi_cntr_t* cntr, int* val) {
  Context* context = nullptr;
  if (const int error = lapi::check("LAPI_Getcntr", hndl, cntr, &context)) return error;
  if (val == nullptr) {
    return lapi::fail("LAPI_Getcntr", LAPI_ERR_RET_PTR_NULL, "the pointer to the value is null");
  }
  mob_poll();
  *val = static_cast<int>(lapi::load(*cntr));
  return LAPI_SUCCESS;
}
LAPI_TWIN(Getcntr)

extern "C" int PLAPI_Waitcntr(lapi_handle_t hndl, lapi_cntr_t* cntr, int val, int* cur_cntr_val) {
  constexpr const char* kCall = "LAPI_Waitcntr";
  Context* context = nullptr;
  if (const int error = lapi::check(kCall, hndl, cntr, &context)) return error;
  int64_t left = 0;
  int spins = 0;
  while (!lapi::take(*cntr, val, &left)) {
    if (++spins < lapi::kSpins) {
      lapi::relax();
      continue;
    }
    if (const int error = lapi::wait_in_engine(kCall, *context, *cntr, val)) return error;
  }
  if (cur_cntr_val != nullptr) *cur_cntr_val = static_cast<int>(left);
  return LAPI_SUCCESS;
}
LAPI_TWIN(Waitcntr)

extern "C" int PLAPI_Setcntr_wstatus(lapi_handle_t hndl, lapi_cntr_t* cntr, int num_dest,
                                     unsigned* dest_list, int* dest_status) {
  constexpr const char* kCall = "LAPI_Setcntr_wstatus";
  Context* context = nullptr;
  if (const int error = lapi::check(kCall, hndl, cntr, &context)) return error;
  if (context->version == L1_LIB) {
    return lapi::fail(kCall, LAPI_ERR_LIB_VERS, "lib_vers was L1_LIB in LAPI_Init()");
  }
  if (num_dest < 0 || (num_dest > 0 && (dest_list == nullptr || dest_status == nullptr))) {
    return lapi::fail(kCall, LAPI_ERR_NUM_DEST, "%d destinations, lists at %p and %p", num_dest,
                      static_cast<void*>(dest_list), static_cast<void*>(dest_status));
  }
  for (int i = 0; i < num_dest; ++i) {
    if (dest_list[i] >= context->tasks) {
      return lapi::fail(kCall, LAPI_ERR_TGT, "destination %d is task %u of %u", i, dest_list[i],
                        context->tasks);
    }
    dest_status[i] = context->purged[dest_list[i]].load() ? LAPI_MSG_INVALID : LAPI_MSG_INITIAL;
  }
  const std::lock_guard lock(lapi::statuses_mutex);
  auto& status = lapi::statuses[cntr];
  if (status == nullptr) status = std::make_unique<lapi_cntr_status>();
  status->destinations = num_dest;
  status->list = dest_list;
  status->status = dest_status;
  lapi::set(*cntr, 0, status.get());
  return LAPI_SUCCESS;
}
LAPI_TWIN(Setcntr_wstatus)

// Sleeps between checks.
extern "C" int PLAPI_Nopoll_wait(lapi_handle_t hndl, lapi_cntr_t* cntr_ptr, int val,
                                 int* cur_cntr_val) {
  constexpr const char* kCall = "LAPI_Nopoll_wait";
  Context* context = nullptr;
  if (const int error = lapi::check(kCall, hndl, cntr_ptr, &context)) return error;
  if (context->version == L1_LIB) {
    return lapi::fail(kCall, LAPI_ERR_LIB_VERS, "lib_vers was L1_LIB in LAPI_Init()");
  }
  if (val <= 0) return lapi::fail(kCall, LAPI_ERR_CNTR_VAL, "%d is not positive", val);
  if (const int error = lapi::check_may_wait(kCall)) return error;
  lapi_cntr_status* status = __atomic_load_n(&cntr_ptr->lapi_status, __ATOMIC_ACQUIRE);
  if (status != nullptr && status->has_waiter.exchange(true)) {
    return lapi::fail(kCall, LAPI_ERR_MULTIPLE_WAITERS,
                      "another thread waits for the counter at %p", static_cast<void*>(cntr_ptr));
  }
  const unsigned purges = context->purges.load();
  int64_t left = 0;
  int result = LAPI_SUCCESS;
  for (long nap_ns = 20'000; !lapi::take(*cntr_ptr, val, &left);) {
    unsigned task = 0;
    if (context->purges.load() != purges) {
      left = lapi::load(*cntr_ptr);
      result = lapi::fail(kCall, LAPI_ERR_TGT_PURGED, "a task was purged meanwhile");
      break;
    }
    if (lapi::a_task_ended(*context, &task)) {
      result = lapi::fail_by_engine(kCall, *context, task, MOB_ERR_PEER);
      break;
    }
    const timespec nap = {0, nap_ns};
    nanosleep(&nap, nullptr);
    if (nap_ns < 1'000'000) nap_ns += nap_ns / 2;
    mob_poll();
  }
  if (status != nullptr) status->has_waiter.store(false);
  if (cur_cntr_val != nullptr) *cur_cntr_val = static_cast<int>(left);
  return result;
}
LAPI_TWIN(Nopoll_wait)
