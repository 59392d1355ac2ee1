// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Util.

#include "context/context.h"
#include "messages/programs.h"

namespace lapi {
namespace {

template <int (HandleLock::*call)()>
int on_lock(lapi_handle_t hndl) {
  Context* context = find_context("LAPI_Util", hndl);
  return context != nullptr ? (context->lock.*call)() : LAPI_ERR_HNDL_INVALID;
}

int get_owner(lapi_handle_t hndl, pthread_t* tid) {
  Context* context = find_context("LAPI_Util", hndl);
  return context != nullptr ? context->lock.owner(tid) : LAPI_ERR_HNDL_INVALID;
}

int timed_wait(lapi_handle_t hndl, lapi_cond_t* cond, timespec* timeout) {
  Context* context = find_context("LAPI_Util", hndl);
  return context != nullptr ? context->lock.wait(cond, timeout) : LAPI_ERR_HNDL_INVALID;
}

int wait(lapi_handle_t hndl, lapi_cond_t* cond) { return timed_wait(hndl, cond, nullptr); }

int on_condition(lapi_handle_t hndl, lapi_cond_t* cond, int (*call)(lapi_cond_t*)) {
  if (find_context("LAPI_Util", hndl) == nullptr) return LAPI_ERR_HNDL_INVALID;
  if (cond == nullptr) return fail("LAPI_Util", LAPI_ERR_RET_PTR_NULL, "the condition is null");
  return call(cond);
}

void give_functions(lapi_thread_func_t* functions) {
  functions->mutex_lock = on_lock<&HandleLock::lock>;
  functions->mutex_unlock = on_lock<&HandleLock::unlock>;
  functions->mutex_trylock = on_lock<&HandleLock::try_lock>;
  functions->mutex_getowner = get_owner;
  functions->cond_wait = wait;
  functions->cond_timedwait = timed_wait;
  functions->cond_signal = [](lapi_handle_t hndl, lapi_cond_t* cond) {
    return on_condition(hndl, cond, pthread_cond_broadcast);
  };
  functions->cond_init = [](lapi_handle_t hndl, lapi_cond_t* cond) {
    return on_condition(hndl, cond,
                        [](lapi_cond_t* each) { return pthread_cond_init(each, nullptr); });
  };
  functions->cond_destroy = [](lapi_handle_t hndl, lapi_cond_t* cond) {
    return on_condition(hndl, cond, pthread_cond_destroy);
  };
}

int pack(const char* call, lapi_pack_dgsp_t& x) {
  if (!is_program(x.dgsp_handle)) {
    return fail(call, LAPI_ERR_DGSP, "%p is not a registered program", x.dgsp_handle);
  }
  if (x.in_buf == nullptr || x.out_buf == nullptr) {
    return fail(call, LAPI_ERR_ORG_ADDR_NULL, "a buffer is null");
  }
  if (x.position > x.out_size || x.bytes > x.out_size - x.position) {
    return fail(call, LAPI_ERR_PACK_SZ, "%lu bytes at %lu of %lu", x.bytes, x.position, x.out_size);
  }
  gather(x.dgsp_handle, x.in_buf, x.bytes, 0, static_cast<char*>(x.out_buf) + x.position);
  x.position += x.bytes;
  return LAPI_SUCCESS;
}

int unpack(const char* call, lapi_unpack_dgsp_t& x) {
  if (!is_program(x.dgsp_handle)) {
    return fail(call, LAPI_ERR_DGSP, "%p is not a registered program", x.dgsp_handle);
  }
  if (x.buf == nullptr || x.out_buf == nullptr) {
    return fail(call, LAPI_ERR_ORG_ADDR_NULL, "a buffer is null");
  }
  if (x.position > x.in_size || x.bytes > x.in_size - x.position) {
    return fail(call, LAPI_ERR_UNPACK_SZ, "%lu bytes at %lu of %lu", x.bytes, x.position,
                x.in_size);
  }
  scatter(x.dgsp_handle, static_cast<const char*>(x.buf) + x.position, x.bytes, 0, x.out_buf);
  x.position += x.bytes;
  return LAPI_SUCCESS;
}

}  // namespace
}  // namespace lapi

// These commands need no handle.
extern "C" int PLAPI_Util(lapi_handle_t hndl, lapi_util_t* util_cmd) {
  constexpr const char* kCall = "LAPI_Util";
  if (util_cmd == nullptr) return lapi::fail(kCall, LAPI_ERR_UTIL_CMD, "the command is null");
  switch (util_cmd->Util_type) {
    case LAPI_REGISTER_DGSP:
      return util_cmd->RegDgsp.status = lapi::register_program(kCall, util_cmd->RegDgsp.idgsp,
                                                               &util_cmd->RegDgsp.dgsp_handle);
    case LAPI_RESERVE_DGSP:
      return util_cmd->ResvDgsp.status =
                 lapi::reserve_program(kCall, util_cmd->ResvDgsp.dgsp_handle);
    case LAPI_UNRESERVE_DGSP:
      return util_cmd->DrefDgsp.status =
                 lapi::release_program(kCall, util_cmd->DrefDgsp.dgsp_handle);
    default:
      break;
  }
  lapi::Context* context = lapi::find_context(kCall, hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  switch (util_cmd->Util_type) {
    case LAPI_REG_DDM_FUNC:
      return util_cmd->DdmFunc.status = LAPI_SUCCESS;
    case LAPI_ADD_UDP_DEST_PORT:
      return lapi::fail(kCall, LAPI_ERR_NO_UDP_HNDLR, "tasks need no UDP ports");
    case LAPI_DGSP_PACK:
      return util_cmd->PackDgsp.status = lapi::pack(kCall, util_cmd->PackDgsp);
    case LAPI_DGSP_UNPACK:
      return util_cmd->UnpackDgsp.status = lapi::unpack(kCall, util_cmd->UnpackDgsp);
    case LAPI_GET_THREAD_FUNC:
      lapi::give_functions(&util_cmd->ThreadFunc);
      return LAPI_SUCCESS;
    case LAPI_REMOTE_RCXT:
      return lapi::give_remote_context(kCall, *context, util_cmd->Rcxt);
    case LAPI_XLATE_ADDRESS:
      return lapi::translate_address(kCall, util_cmd->Pvo);
    case LAPI_REGISTER_NOTIFICATION:
      return lapi::register_notice(kCall, *context, util_cmd->RdmaNotify);
    default:
      return lapi::fail(kCall, LAPI_ERR_UTIL_CMD, "command %d",
                        static_cast<int>(util_cmd->Util_type));
  }
}
LAPI_TWIN(Util)
