// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Put and LAPI_Get: this file checks them, the engine carries them out and counts them.

#include "transfers/transfers.h"

#include "context/context.h"
#include "synchronisation/counters.h"

namespace lapi {
namespace {

int refuse(const char* call, const Context& context, unsigned tgt, unsigned long len,
           const void* tgt_addr, const void* org_addr) {
  if (const int error = refuse_target(call, context, tgt)) return error;
  if (len > LAPI_MAX_MSG_SZ) {
    return fail(call, LAPI_ERR_DATA_LEN, "%lu bytes; at most %lu", len, LAPI_MAX_MSG_SZ);
  }
  if (len > 0 && tgt_addr == nullptr) {
    return fail(call, LAPI_ERR_TGT_ADDR_NULL, "%lu bytes at the target's address null", len);
  }
  if (len > 0 && org_addr == nullptr) {
    return fail(call, LAPI_ERR_ORG_ADDR_NULL, "%lu bytes at the origin's address null", len);
  }
  return LAPI_SUCCESS;
}

inline bool is_plain(const Context& context, unsigned tgt, unsigned long len, const void* tgt_addr,
                     const void* org_addr) {
  return tgt < context.tasks && len - 1 < LAPI_MAX_MSG_SZ && tgt_addr != nullptr &&
         org_addr != nullptr && !context.any_purged.load(std::memory_order_relaxed);
}

// The checks of both calls (unless the program turned checks off), and the refusal of purged
// targets.
inline int check(const char* call, const Context& context, unsigned tgt, unsigned long len,
                 const void* tgt_addr, const void* org_addr) {
  if (is_plain(context, tgt, len, tgt_addr, org_addr)) [[likely]] {
    return LAPI_SUCCESS;
  }
  if (!context.checks.load(std::memory_order_relaxed)) {
    return check_target(call, context, tgt);
  }
  return refuse(call, context, tgt, len, tgt_addr, org_addr);
}

}  // namespace

int put(const char* call, Context& context, unsigned tgt, unsigned long len, void* tgt_addr,
        const void* org_addr, const Counters& counters) {
  if (const int error = check(call, context, tgt, len, tgt_addr, org_addr)) return error;
  const mob_status_t status = mob_put_counted(static_cast<mob_rank_t>(tgt), tgt_addr, org_addr, len,
                                              word_of(counters.target), word_of(counters.origin),
                                              word_of(counters.completion));
  if (status != MOB_OK) [[unlikely]] {
    return fail_by_engine(call, context, tgt, status);
  }
  context.push(tgt);
  return LAPI_SUCCESS;
}

int get(const char* call, Context& context, unsigned tgt, unsigned long len, const void* tgt_addr,
        void* org_addr, const Counters& counters) {
  if (const int error = check(call, context, tgt, len, tgt_addr, org_addr)) return error;
  const mob_status_t status =
      mob_get_counted(static_cast<mob_rank_t>(tgt), tgt_addr, org_addr, len,
                      word_of(counters.target), word_of(counters.origin), nullptr);
  if (status != MOB_OK) [[unlikely]] {
    return fail_by_engine(call, context, tgt, status);
  }
  context.push(tgt);
  return LAPI_SUCCESS;
}

}  // namespace lapi

using lapi::Context;

extern "C" int PLAPI_Put(lapi_handle_t hndl, unsigned int tgt, unsigned long len, void* tgt_addr,
                         void* org_addr, lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr,
                         lapi_cntr_t* cmpl_cntr) {
  Context* context = lapi::find_context("LAPI_Put", hndl);
  if (context == nullptr) [[unlikely]] {
    return LAPI_ERR_HNDL_INVALID;
  }
  return lapi::put("LAPI_Put", *context, tgt, len, tgt_addr, org_addr,
                   {tgt_cntr, org_cntr, cmpl_cntr});
}
LAPI_TWIN(Put)

extern "C" int PLAPI_Get(lapi_handle_t hndl, unsigned int tgt, unsigned long len, void* tgt_addr,
                         void* org_addr, lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr) {
  Context* context = lapi::find_context("LAPI_Get", hndl);
  if (context == nullptr) [[unlikely]] {
    return LAPI_ERR_HNDL_INVALID;
  }
  return lapi::get("LAPI_Get", *context, tgt, len, tgt_addr, org_addr,
                   {tgt_cntr, org_cntr, nullptr});
}
LAPI_TWIN(Get)
