// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Rmw and LAPI_Rmw64.

#include <cstring>

#include "context/context.h"
#include "synchronisation/counters.h"
#include "transfers/transfers.h"

namespace lapi {
namespace {

int check(const char* call, const Context& context, RMW_ops_t op, unsigned tgt, const void* tgt_var,
          const void* in, unsigned bits) {
  if (const int error = refuse_target(call, context, tgt)) return error;
  if (static_cast<unsigned>(op) > COMPARE_AND_SWAP) {
    return fail(call, LAPI_ERR_RMW_OP, "operation %d", static_cast<int>(op));
  }
  if (tgt_var == nullptr) {
    return fail(call, LAPI_ERR_TGT_VAR_NULL, "the target variable's address is null");
  }
  if (reinterpret_cast<uintptr_t>(tgt_var) % (bits / 8) != 0) {
    return fail(call, LAPI_ERR_TGT_VAR_ALIGN, "%p is not aligned to %u bytes", tgt_var, bits / 8);
  }
  if (in == nullptr) return fail(call, LAPI_ERR_IN_VAL_NULL, "in_val is null");
  return LAPI_SUCCESS;
}

template <typename T>
struct Calls;
template <>
struct Calls<uint32_t> {
  static constexpr auto add = mob_fetch_add4;
  static constexpr auto bit_or = mob_fetch_or4;
  static constexpr auto swap = mob_swap4;
  static constexpr auto compare_swap = mob_compare_swap4;
};
template <>
struct Calls<uint64_t> {
  static constexpr auto add = mob_fetch_add8;
  static constexpr auto bit_or = mob_fetch_or8;
  static constexpr auto swap = mob_swap8;
  static constexpr auto compare_swap = mob_compare_swap8;
};

template <typename T>
mob_status_t update(RMW_ops_t op, mob_rank_t rank, void* tgt_var, const void* in, void* previous) {
  T values[2] = {};
  std::memcpy(values, in, op == COMPARE_AND_SWAP ? 2 * sizeof(T) : sizeof(T));
  T old = 0;
  mob_status_t status = MOB_OK;
  switch (op) {
    case FETCH_AND_ADD:
      status = Calls<T>::add(rank, tgt_var, values[0], &old);
      break;
    case FETCH_AND_OR:
      status = Calls<T>::bit_or(rank, tgt_var, values[0], &old);
      break;
    case SWAP:
      status = Calls<T>::swap(rank, tgt_var, values[0], &old);
      break;
    case COMPARE_AND_SWAP:
      status = Calls<T>::compare_swap(rank, tgt_var, values[0], values[1], &old);
      old = old == values[0] ? 1 : 0;  // whether it was swapped
      break;
  }
  if (status == MOB_OK && previous != nullptr) std::memcpy(previous, &old, sizeof old);
  return status;
}

}  // namespace

int rmw(const char* call, Context& context, RMW_ops_t op, unsigned tgt, void* tgt_var,
        const void* in, void* previous, unsigned bits, lapi_cntr_t* origin) {
  if (context.checks.load(std::memory_order_relaxed)) {
    if (const int error = check(call, context, op, tgt, tgt_var, in, bits)) return error;
  } else if (const int error = check_target(call, context, tgt)) {
    return error;
  }
  const auto rank = static_cast<mob_rank_t>(tgt);
  const mob_status_t status = bits == 32 ? update<uint32_t>(op, rank, tgt_var, in, previous)
                                         : update<uint64_t>(op, rank, tgt_var, in, previous);
  if (status != MOB_OK) [[unlikely]] {
    return fail_by_engine(call, context, tgt, status);
  }
  count(origin, tgt);
  return LAPI_SUCCESS;
}

}  // namespace lapi

using lapi::Context;

extern "C" int PLAPI_Rmw(lapi_handle_t hndl, RMW_ops_t op, unsigned int tgt, int* tgt_var,
                         int* in_val, int* prev_tgt_val, lapi_cntr_t* org_cntr) {
  Context* context = lapi::find_context("LAPI_Rmw", hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  return lapi::rmw("LAPI_Rmw", *context, op, tgt, tgt_var, in_val, prev_tgt_val, 32, org_cntr);
}
LAPI_TWIN(Rmw)

extern "C" int PLAPI_Rmw64(lapi_handle_t hndl, RMW_ops_t op, unsigned int tgt, long long* tgt_var,
                           long long* in_val, long long* prev_tgt_val, lapi_cntr_t* org_cntr) {
  Context* context = lapi::find_context("LAPI_Rmw64", hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  return lapi::rmw("LAPI_Rmw64", *context, op, tgt, tgt_var, in_val, prev_tgt_val, 64, org_cntr);
}
LAPI_TWIN(Rmw64)
