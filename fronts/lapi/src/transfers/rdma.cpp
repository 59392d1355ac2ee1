// SPDX-License-Identifier: BSD-3-Clause
#include "transfers/rdma.h"

#include <cstdint>
#include <cstring>
#include <memory>

#include "context/context.h"
#include "synchronisation/counters.h"
#include "transfers/transfers.h"

namespace lapi {
namespace {

constexpr unsigned kNotices = LAPI_RCALLBACK | LAPI_RCNTR_UPDATE;

// The header of the message that notifies a target, and carries the data of a put.
struct Notice {
  uint64_t place;
  lapi_rdma_tag_t tag;
  lapi_rdma_op_t op;
  uint32_t unused;
};
static_assert(sizeof(Notice) == 16);

struct Arrived {
  Notice notice;
  unsigned source;
};

void* place_in(lapi_user_pvo_t translation, unsigned offset) {
  return reinterpret_cast<void*>(translation + offset);
}

lapi_user_cxt_t remote_context_of(unsigned task) { return task + 1; }

int check(const char* call, const Context& context, const lapi_hwxfer_t& x) {
  if (const int error = refuse_target(call, context, x.tgt)) return error;
  const unsigned way = x.op & (LAPI_RDMA_GET | LAPI_RDMA_PUT);
  if ((way != LAPI_RDMA_GET && way != LAPI_RDMA_PUT) || (x.op & ~(way | kNotices)) != 0) {
    return fail(call, LAPI_ERR_XFER_CMD, "RDMA operation %#x", unsigned{x.op});
  }
  if (x.remote_cxt != remote_context_of(x.tgt)) {
    return fail(call, LAPI_ERR_TGT_CONTEXT, "remote context %u is not one of task %u", x.remote_cxt,
                x.tgt);
  }
  if (x.src_pvo == 0) {
    return fail(call, LAPI_ERR_SRC_BUFHNDL, "the translation at the origin is 0");
  }
  if (x.tgt_pvo == 0) {
    return fail(call, LAPI_ERR_TGT_BUFHNDL, "the translation at the target is 0");
  }
  return LAPI_SUCCESS;
}

// Runs at the target when the data is in its place.
void notify(lapi_handle_t* hndl, void* user_info) {
  const std::unique_ptr<Arrived> arrived(static_cast<Arrived*>(user_info));
  Context& context = contexts[*hndl];
  const lapi_rdma_notification_t found = context.rdma_notices.find(arrived->notice.tag);
  if ((arrived->notice.op & LAPI_RCNTR_UPDATE) != 0) {
    if (found.cntr == nullptr) {
      report(context, LAPI_ERR_NO_CNTR_REG, INT_ERR, arrived->source,
             "a transfer's tag has no counter here");
    }
    count(found.cntr, arrived->source);
  }
  if ((arrived->notice.op & LAPI_RCALLBACK) == 0) return;
  if (found.callback == nullptr) {
    report(context, LAPI_ERR_NO_CALLBACK_REG, INT_ERR, arrived->source,
           "a transfer's tag has no function here");
    return;
  }
  int source = static_cast<int>(arrived->source);
  found.callback(hndl, found.sinfo, &source);
}

int send_notice(const char* call, Context& context, const lapi_hwxfer_t& x, const void* data,
                unsigned bytes, lapi_cntr_t* completion) {
  Notice notice = {reinterpret_cast<uint64_t>(place_in(x.tgt_pvo, x.tgt_offset)), x.rdma_tag, x.op,
                   0};
  return send(call, context,
              {x.tgt, reinterpret_cast<void*>(uintptr_t{kRdmaHandler}), &notice, sizeof notice,
               data, bytes},
              {nullptr, nullptr, completion});
}

int rdma_get(const char* call, Context& context, const lapi_hwxfer_t& x, void* here,
             const void* there) {
  const int result = get(call, context, x.tgt, x.len, there, here, {nullptr, x.org_cntr, nullptr});
  if (result != LAPI_SUCCESS || (x.op & kNotices) == 0) return result;
  if (const mob_status_t status = mob_flush_local(static_cast<mob_rank_t>(x.tgt))) {
    return fail_by_engine(call, context, x.tgt, status);
  }
  return send_notice(call, context, x, nullptr, 0, nullptr);
}

}  // namespace

void RdmaNotices::set(const lapi_rdma_notification_t& notice) {
  const std::lock_guard lock(mutex_);
  by_tag_[notice.rdma_tag] = notice;
}

lapi_rdma_notification_t RdmaNotices::find(lapi_rdma_tag_t tag) {
  const std::lock_guard lock(mutex_);
  const auto found = by_tag_.find(tag);
  return found != by_tag_.end() ? found->second : lapi_rdma_notification_t{};
}

void RdmaNotices::clear() {
  const std::lock_guard lock(mutex_);
  by_tag_.clear();
}

int give_remote_context(const char* call, const Context& context, lapi_remote_cxt_t& x) {
  const auto task = static_cast<unsigned>(x.dest);
  if (x.operation == LAPI_RDMA_ACQUIRE) {
    if (const int error = refuse_target(call, context, task)) return error;
    x.usr_rcxt = remote_context_of(task);
    return LAPI_SUCCESS;
  }
  if (x.operation != LAPI_RDMA_RELEASE) {
    return fail(call, LAPI_ERR_UTIL_CMD, "operation %d", static_cast<int>(x.operation));
  }
  if (task >= context.tasks || x.usr_rcxt != remote_context_of(task)) {
    return fail(call, LAPI_ERR_TGT_CONTEXT, "remote context %u is not one of task %d", x.usr_rcxt,
                x.dest);
  }
  return LAPI_SUCCESS;
}

int translate_address(const char* call, lapi_get_pvo_t& x) {
  if (x.operation == LAPI_RDMA_ACQUIRE) {
    if (x.address == nullptr || x.length == 0) {
      return fail(call, LAPI_ERR_XLATE_FAILED, "%u bytes at %p", x.length, x.address);
    }
    x.usr_pvo = reinterpret_cast<uintptr_t>(x.address);
    return LAPI_SUCCESS;
  }
  if (x.operation != LAPI_RDMA_RELEASE) {
    return fail(call, LAPI_ERR_UTIL_CMD, "operation %d", static_cast<int>(x.operation));
  }
  if (x.usr_pvo == 0) return fail(call, LAPI_ERR_XLATE_FAILED, "0 is no translation to release");
  return LAPI_SUCCESS;
}

int register_notice(const char* call, Context& context, const lapi_rdma_notification_t& x) {
  if ((x.flags & LAPI_RCNTR_UPDATE) != 0 && x.cntr == nullptr) {
    return fail(call, LAPI_ERR_CNTR_NULL, "tag %u is to count a null counter",
                unsigned{x.rdma_tag});
  }
  if ((x.flags & LAPI_RCALLBACK) != 0 && x.callback == nullptr) {
    return fail(call, LAPI_ERR_HDR_HNDLR_NULL, "tag %u is to run a null function",
                unsigned{x.rdma_tag});
  }
  lapi_rdma_notification_t kept = x;
  if ((x.flags & LAPI_RCNTR_UPDATE) == 0) kept.cntr = nullptr;
  if ((x.flags & LAPI_RCALLBACK) == 0) kept.callback = nullptr;
  context.rdma_notices.set(kept);
  return LAPI_SUCCESS;
}

int rdma(const char* call, Context& context, const lapi_hwxfer_t& x) {
  if (context.checks.load(std::memory_order_relaxed)) {
    if (const int error = check(call, context, x)) return error;
  }
  void* here = place_in(x.src_pvo, x.src_offset);
  void* there = place_in(x.tgt_pvo, x.tgt_offset);
  if ((x.op & LAPI_RDMA_GET) != 0) return rdma_get(call, context, x, here, there);
  if ((x.op & kNotices) != 0) return send_notice(call, context, x, here, x.len, x.org_cntr);
  return put(call, context, x.tgt, x.len, there, here, {nullptr, nullptr, x.org_cntr});
}

void* rdma_arrived(lapi_handle_t*, void* uhdr, unsigned int*, unsigned long* msg_len,
                   compl_hndlr_t** comp_h, void** user_info) {
  auto* info = reinterpret_cast<lapi_return_info_t*>(msg_len);
  auto arrived = std::make_unique<Arrived>();
  std::memcpy(&arrived->notice, uhdr, sizeof arrived->notice);
  arrived->source = info->src;
  // A counter is counted at once; a function may do everything, and so runs in a thread.
  if ((arrived->notice.op & LAPI_RCALLBACK) == 0) info->ret_flags = LAPI_SEND_REPLY;
  void* place = reinterpret_cast<void*>(arrived->notice.place);
  *comp_h = notify;
  *user_info = arrived.release();
  return place;
}

}  // namespace lapi
