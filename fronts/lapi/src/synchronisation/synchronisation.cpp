// SPDX-License-Identifier: BSD-3-Clause

// Fences, progress, addresses, and the purge of tasks.

#include "context/context.h"
#include "synchronisation/counters.h"

using lapi::Context;

namespace lapi {
namespace {

int flush(const char* call, Context& context) {
  if (const int error = check_may_wait(call)) return error;
  const mob_status_t status = mob_flush_all();
  if (status == MOB_OK) return LAPI_SUCCESS;
  unsigned task = 0;
  if (status == MOB_ERR_PEER && !a_task_ended(context, &task)) return LAPI_SUCCESS;
  return fail_by_engine(call, context, task, status);
}

int check_index(const char* call, int index) {
  if (index >= 1 && index < kAddressTable) return LAPI_SUCCESS;
  return fail(call, LAPI_ERR_ADDR_HNDL_RANGE, "index %d; it must be 1 to %d", index,
              kAddressTable - 1);
}

int publish(const char* call, lapi_handle_t hndl, const void* mine, void** all) {
  Context* context = find_context(call, hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  if (all == nullptr) return fail(call, LAPI_ERR_RET_PTR_NULL, "the table is null");
  if (const int error = check_may_wait(call)) return error;
  if (const int error = check_mpi(call)) return error;
  const mob_status_t status = mob_publish(addresses_team, mine, all);
  if (status == MOB_OK) return LAPI_SUCCESS;
  unsigned task = 0;
  static_cast<void>(a_task_ended(*context, &task));
  return fail_by_engine(call, *context, task, status);
}

}  // namespace
}  // namespace lapi

extern "C" int PLAPI_Fence(lapi_handle_t hndl) {
  Context* context = lapi::find_context("LAPI_Fence", hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  return lapi::flush("LAPI_Fence", *context);
}
LAPI_TWIN(Fence)

extern "C" int PLAPI_Gfence(lapi_handle_t hndl) {
  constexpr const char* kCall = "LAPI_Gfence";
  Context* context = lapi::find_context(kCall, hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  if (const int error = lapi::check_may_wait(kCall)) return error;
  // The other tasks wait for this one even if its own operations have failed.
  int flushed = lapi::flush(kCall, *context);
  const bool is_first = !context->fenced.load(std::memory_order_relaxed);
  if (is_first) context->fenced.store(true, std::memory_order_relaxed);
  const mob_status_t status = mob_barrier();
  if (flushed == LAPI_SUCCESS && is_first) flushed = lapi::check_mpi(kCall);
  if (flushed != LAPI_SUCCESS || status == MOB_OK) return flushed;
  unsigned task = 0;
  static_cast<void>(lapi::a_task_ended(*context, &task));
  return lapi::fail_by_engine(kCall, *context, task, status);
}
LAPI_TWIN(Gfence)

extern "C" int PLAPI_Probe(lapi_handle_t hndl) {
  if (lapi::find_context("LAPI_Probe", hndl) == nullptr) return LAPI_ERR_HNDL_INVALID;
  mob_poll();
  return LAPI_SUCCESS;
}
LAPI_TWIN(Probe)

extern "C" int PLAPI_Msgpoll(lapi_handle_t hndl, unsigned int cnt, lapi_msg_info_t* info) {
  constexpr const char* kCall = "LAPI_Msgpoll";
  Context* context = lapi::find_context(kCall, hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  if (info == nullptr) return lapi::fail(kCall, LAPI_ERR_RET_PTR_NULL, "info is null");
  const uint64_t sends = context->sends_completed.load();
  const uint64_t receives = context->receives_completed.load();
  bool sent = false;
  bool received = false;
  for (unsigned i = 0; i < cnt && !sent && !received; ++i) {
    mob_poll();
    sent = context->sends_completed.load() != sends;
    received = context->receives_completed.load() != receives;
  }
  int flags = 0;
  if (sent) flags |= LAPI_SEND_COMPLETE;
  if (received) flags |= LAPI_RECV_COMPLETE;
  if (sent && received) flags |= LAPI_BOTH_COMPLETE;
  if (flags == 0) flags = LAPI_DISP_CNTR;
  *info = {static_cast<lapi_msg_state_t>(flags), {}};
  return LAPI_SUCCESS;
}
LAPI_TWIN(Msgpoll)

extern "C" int PLAPI_Address(void* my_addr, unsigned long* ret_addr) {
  if (ret_addr == nullptr) {
    return lapi::fail("LAPI_Address", LAPI_ERR_RET_PTR_NULL, "the pointer to the result is null");
  }
  if (my_addr == nullptr) {
    return lapi::fail("LAPI_Address", LAPI_ERR_ORG_ADDR_NULL, "the address is null");
  }
  *ret_addr = reinterpret_cast<unsigned long>(my_addr);
  return LAPI_SUCCESS;
}
LAPI_TWIN(Address)

extern "C" int PLAPI_Address_init(lapi_handle_t hndl, void* my_addr, void* add_tab[]) {
  return lapi::publish("LAPI_Address_init", hndl, my_addr, add_tab);
}
LAPI_TWIN(Address_init)

extern "C" int PLAPI_Address_init64(lapi_handle_t hndl, lapi_long_t my_addr, lapi_long_t* add_tab) {
  static_assert(sizeof(lapi_long_t) == sizeof(void*));
  return lapi::publish("LAPI_Address_init64", hndl, reinterpret_cast<void*>(my_addr),
                       reinterpret_cast<void**>(add_tab));
}
LAPI_TWIN(Address_init64)

extern "C" int PLAPI_Addr_set(lapi_handle_t hndl, void* addr, int addr_hndl) {
  Context* context = lapi::find_context("LAPI_Addr_set", hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  if (const int error = lapi::check_index("LAPI_Addr_set", addr_hndl)) return error;
  context->addresses[static_cast<size_t>(addr_hndl)].store(addr, std::memory_order_release);
  return LAPI_SUCCESS;
}
LAPI_TWIN(Addr_set)

extern "C" int PLAPI_Addr_get(lapi_handle_t hndl, void** addr, int addr_hndl) {
  Context* context = lapi::find_context("LAPI_Addr_get", hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  if (addr == nullptr) {
    return lapi::fail("LAPI_Addr_get", LAPI_ERR_RET_PTR_NULL, "the pointer to the result is null");
  }
  if (const int error = lapi::check_index("LAPI_Addr_get", addr_hndl)) return error;
  *addr = context->addresses[static_cast<size_t>(addr_hndl)].load(std::memory_order_acquire);
  return LAPI_SUCCESS;
}
LAPI_TWIN(Addr_get)

extern "C" int PLAPI_Purge_totask(lapi_handle_t hndl, unsigned int dest) {
  constexpr const char* kCall = "LAPI_Purge_totask";
  Context* context = lapi::find_context(kCall, hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  if (dest >= context->tasks) {
    return lapi::fail(kCall, LAPI_ERR_TGT, "task %u of %u", dest, context->tasks);
  }
  context->purged[dest] = true;
  context->any_purged = true;
  lapi::note_purge(dest);
  context->purges.fetch_add(1);
  lapi::wake_waiters();
  return LAPI_SUCCESS;
}
LAPI_TWIN(Purge_totask)

extern "C" int PLAPI_Resume_totask(lapi_handle_t hndl, unsigned int dest) {
  constexpr const char* kCall = "LAPI_Resume_totask";
  Context* context = lapi::find_context(kCall, hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  if (dest >= context->tasks) {
    return lapi::fail(kCall, LAPI_ERR_TGT, "task %u of %u", dest, context->tasks);
  }
  context->purged[dest] = false;
  bool any = false;
  for (unsigned i = 0; i < context->tasks; ++i) any |= context->purged[i].load();
  context->any_purged = any;
  return LAPI_SUCCESS;
}
LAPI_TWIN(Resume_totask)
