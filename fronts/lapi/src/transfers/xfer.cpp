// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Xfer: the other transfers under one name, with a handler instead of an origin counter.

#include "context/context.h"
#include "synchronisation/counters.h"
#include "transfers/rdma.h"
#include "transfers/transfers.h"

namespace lapi {
namespace {

lapi_cntr_t* counter_at(lapi_long_t address) { return reinterpret_cast<lapi_cntr_t*>(address); }
void* pointer_at(lapi_long_t address) { return reinterpret_cast<void*>(address); }

// Converts the target's vector to one of LAPI_Putv().
lapi_vec_t narrow(const lapi_lvec_t& vector) {
  return {vector.vec_type, vector.num_vecs, reinterpret_cast<void**>(vector.info), vector.len};
}
static_assert(sizeof(lapi_long_t) == sizeof(void*));

// If there is a handler: waits for local completion and calls it.
int tell(const char* call, Context& context, unsigned tgt, scompl_hndlr_t* handler, void* argument,
         int result) {
  if (handler == nullptr || result != LAPI_SUCCESS) return result;
  if (const mob_status_t status = mob_flush_local(static_cast<mob_rank_t>(tgt))) {
    return fail_by_engine(call, context, tgt, status);
  }
  lapi_handle_t handle = context.handle;
  lapi_sh_info_t info{};
  info.src = tgt;
  info.reason = LAPI_SUCCESS;
  handler(&handle, argument, &info);
  return LAPI_SUCCESS;
}

int tell_arrival(const char* call, Context& context, unsigned tgt, compl_hndlr_t* handler,
                 void* argument, int result) {
  if (handler == nullptr || result != LAPI_SUCCESS) return result;
  if (const mob_status_t status = mob_flush_local(static_cast<mob_rank_t>(tgt))) {
    return fail_by_engine(call, context, tgt, status);
  }
  lapi_handle_t handle = context.handle;
  handler(&handle, argument);
  return LAPI_SUCCESS;
}

int run_rmw(const char* call, Context& context, const lapi_rmw_t& x) {
  if (x.size != 32 && x.size != 64) {
    return fail(call, LAPI_ERR_OP_SZ, "%u bits; it must be 32 or 64", x.size);
  }
  const auto value32 = static_cast<uint32_t>(x.in_val);
  const void* in = x.op == COMPARE_AND_SWAP ? pointer_at(x.in_val)
                   : x.size == 32           ? static_cast<const void*>(&value32)
                                            : &x.in_val;
  uint32_t previous32 = 0;
  lapi_long_t previous64 = 0;
  void* previous = x.size == 32 ? static_cast<void*>(&previous32) : &previous64;
  const int result =
      rmw(call, context, x.op, x.tgt, pointer_at(x.tgt_var), in, previous, x.size, nullptr);
  if (result != LAPI_SUCCESS) return result;
  if (x.prev_tgt_val != nullptr) *x.prev_tgt_val = x.size == 32 ? previous32 : previous64;
  count(x.org_cntr, x.tgt);
  return result;
}

int run_vector(const char* call, Context& context, unsigned tgt, const lapi_lvec_t* there,
               const lapi_vec_t* here, const Counters& counters, bool is_put) {
  if (there == nullptr) {
    return fail(call, LAPI_ERR_TGT_VEC_NULL, "the target vector is null");
  }
  const lapi_vec_t target = narrow(*there);
  return vector_transfer(call, context, tgt, &target, here, counters, is_put);
}

int run(const char* call, Context& context, lapi_xfer_t& cmd) {
  switch (cmd.Xfer_type) {
    case LAPI_PUT_XFER: {
      const lapi_put_t& x = cmd.Put;
      return tell(call, context, x.tgt, x.shdlr, x.sinfo,
                  put(call, context, x.tgt, x.len, pointer_at(x.tgt_addr), x.org_addr,
                      {counter_at(x.tgt_cntr), x.org_cntr, x.cmpl_cntr}));
    }
    case LAPI_GET_XFER: {
      const lapi_get_t& x = cmd.Get;
      return tell_arrival(call, context, x.tgt, x.chndlr, x.cinfo,
                          get(call, context, x.tgt, x.len, pointer_at(x.tgt_addr), x.org_addr,
                              {counter_at(x.tgt_cntr), x.org_cntr, nullptr}));
    }
    case LAPI_PUTV_XFER: {
      const lapi_putv_t& x = cmd.Putv;
      return tell(call, context, x.tgt, x.shdlr, x.sinfo,
                  run_vector(call, context, x.tgt, x.tgt_vec, x.org_vec,
                             {counter_at(x.tgt_cntr), x.org_cntr, x.cmpl_cntr}, true));
    }
    case LAPI_GETV_XFER: {
      const lapi_getv_t& x = cmd.Getv;
      return tell_arrival(call, context, x.tgt, x.chndlr, x.cinfo,
                          run_vector(call, context, x.tgt, x.tgt_vec, x.org_vec,
                                     {counter_at(x.tgt_cntr), x.org_cntr, nullptr}, false));
    }
    case LAPI_AM_XFER:
    case LAPI_AM_LW_XFER: {
      const lapi_am_t& x = cmd.Am;
      return tell(call, context, x.tgt, x.shdlr, x.sinfo,
                  send(call, context,
                       {x.tgt, pointer_at(x.hdr_hdl), x.uhdr, x.uhdr_len, x.udata, x.udata_len},
                       {counter_at(x.tgt_cntr), x.org_cntr, x.cmpl_cntr}));
    }
    case LAPI_AMV_XFER: {
      const lapi_amv_t& x = cmd.Amv;
      return tell(
          call, context, x.tgt, x.shdlr, x.sinfo,
          send_vector(call, context, {x.tgt, pointer_at(x.hdr_hdl), x.uhdr, x.uhdr_len, nullptr, 0},
                      x.org_vec, {counter_at(x.tgt_cntr), x.org_cntr, x.cmpl_cntr}));
    }
    case LAPI_DGSP_XFER: {
      lapi_amdgsp_t& x = cmd.Dgsp;
      x.status = send_program(
          call, context, {x.tgt, pointer_at(x.hdr_hdl), x.uhdr, x.uhdr_len, x.udata, x.udata_len},
          x.dgsp, {counter_at(x.tgt_cntr), x.org_cntr, x.cmpl_cntr});
      return tell(call, context, x.tgt, x.shdlr, x.sinfo, x.status);
    }
    case LAPI_RMW_XFER: {
      const lapi_rmw_t& x = cmd.Rmw;
      return tell(call, context, x.tgt, x.shdlr, x.sinfo, run_rmw(call, context, x));
    }
    case LAPI_RDMA_XFER: {
      const lapi_hwxfer_t& x = cmd.HwXfer;
      return tell(call, context, x.tgt, x.shdlr, x.sinfo, rdma(call, context, x));
    }
    default:
      return fail(call, LAPI_ERR_XFER_CMD, "transfer type %d", static_cast<int>(cmd.Xfer_type));
  }
}

}  // namespace
}  // namespace lapi

extern "C" int PLAPI_Xfer(lapi_handle_t hndl, lapi_xfer_t* xfer_cmd) {
  constexpr const char* kCall = "LAPI_Xfer";
  lapi::Context* context = lapi::find_context(kCall, hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  if (xfer_cmd == nullptr) return lapi::fail(kCall, LAPI_ERR_XFER_CMD, "the command is null");
  return lapi::run(kCall, *context, *xfer_cmd);
}
LAPI_TWIN(Xfer)
