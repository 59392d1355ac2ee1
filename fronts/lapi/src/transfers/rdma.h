// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// RDMA between translated memory: LAPI_RDMA_XFER of LAPI_Xfer(), and the commands of LAPI_Util()
// that prepare it. Every address of a task is a target, so that a translation is the address.

#include <lapi.h>

#include <mutex>
#include <unordered_map>

namespace lapi {

struct Context;

// The counter and the function that this task registered for each tag of an RDMA transfer
// (LAPI_REGISTER_NOTIFICATION).
class RdmaNotices {
 public:
  void set(const lapi_rdma_notification_t& notice);
  // A notice that names neither a counter nor a function if nothing is registered for the tag.
  lapi_rdma_notification_t find(lapi_rdma_tag_t tag);
  void clear();

 private:
  std::mutex mutex_;
  std::unordered_map<lapi_rdma_tag_t, lapi_rdma_notification_t> by_tag_;
};

int give_remote_context(const char* call, const Context& context, lapi_remote_cxt_t& x);
int translate_address(const char* call, lapi_get_pvo_t& x);
int register_notice(const char* call, Context& context, const lapi_rdma_notification_t& x);

int rdma(const char* call, Context& context, const lapi_hwxfer_t& x);

// The header handler of transfers that notify their target (kRdmaHandler).
void* rdma_arrived(lapi_handle_t* hndl, void* uhdr, unsigned int* uhdr_len, unsigned long* msg_len,
                   compl_hndlr_t** comp_h, void** user_info);

}  // namespace lapi
