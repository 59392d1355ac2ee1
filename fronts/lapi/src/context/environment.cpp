// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Qenv and LAPI_Senv.

#include <cstdio>
#include <vector>

#include "context/context.h"
#include "messages/messages.h"

namespace lapi {
namespace {

constexpr int kMinTimeout = 10;     // seconds
constexpr int kMaxTimeout = 86400;  // seconds
constexpr int kPacketBytes = 1024;  // payloads of up to this size always arrive with their header
constexpr int kMaxAtom = 1 << 20;

void copy(const Statistics& from, lapi_statistics_t* to) {
  *to = {};
  to->Tot_pkt_sent_cnt = from.sent.load(std::memory_order_relaxed);
  to->Tot_pkt_recv_cnt = from.received.load(std::memory_order_relaxed);
  to->Tot_data_sent = from.bytes_sent.load(std::memory_order_relaxed);
  to->Tot_data_recv = from.bytes_received.load(std::memory_order_relaxed);
}

void print(const Context& context, const char* way, const Statistics& statistics) {
  lapi_statistics_t all;
  copy(statistics, &all);
  std::fprintf(stderr,
               "task %u, handle %u, %s: %llu messages with %llu bytes sent, %llu with %llu "
               "received\n",
               context.task, context.handle, way, all.Tot_pkt_sent_cnt, all.Tot_data_sent,
               all.Tot_pkt_recv_cnt, all.Tot_data_recv);
}

// Answers queries whose answer is one integer; returns whether this is one of them.
bool integer_of(const Context& context, lapi_query_t query, int* value) {
  switch (query) {
    case TASK_ID:
      *value = static_cast<int>(context.task);
      return true;
    case NUM_TASKS:
      *value = static_cast<int>(context.tasks);
      return true;
    case MAX_UHDR_SZ:
      *value = static_cast<int>(kMostHeaderBytes);
      return true;
    case MAX_DATA_SZ:
      *value = INT32_MAX;  // LAPI_MAX_MSG_SZ, limited to an int
      return true;
    case ERROR_CHK:
      *value = context.checks ? 1 : 0;
      return true;
    case TIMEOUT:
      *value = context.timeout;
      return true;
    case MIN_TIMEOUT:
      *value = kMinTimeout;
      return true;
    case MAX_TIMEOUT:
      *value = kMaxTimeout;
      return true;
    case INTERRUPT_SET:
      *value = context.interrupts ? 1 : 0;
      return true;
    case MAX_PORTS:
      *value = static_cast<int>(kMostHandles);
      return true;
    case MAX_PKT_SZ:
    case BUF_CP_SIZE:
      *value = kPacketBytes;
      return true;
    case LOC_ADDRTBL_SZ:
      *value = kAddressTable;
      return true;
    case MAX_ATOM_SIZE:
      *value = kMaxAtom;
      return true;
    case ACK_THRESHOLD:
      *value = context.ack_threshold;
      return true;
    case QUERY_SHM_ENABLED:
      *value = mob_host_size() > 1 ? 1 : 0;
      return true;
    case QUERY_SHM_NUM_TASKS:
      *value = mob_host_size();
      return true;
    case NUM_REX_BUFS:
    case REX_BUF_SZ:
    case EPOCH_NUM:
    case USE_THRESH:
    case RCV_FIFO_SIZE:
    case MAX_PKTS_OUT:
    case BULK_XFER:
    case BULK_MIN_MSG_SIZE:
      *value = 0;
      return true;
    default:
      return false;
  }
}

void list_local_peers(const Context& context, int* positions) {
  for (unsigned i = 0; i < context.tasks; ++i) positions[i] = -1;
  for (mob_rank_t i = 0; i < mob_host_size(); ++i) {
    mob_rank_t rank = 0;
    if (mob_host_mate(i, &rank) == MOB_OK) positions[rank] = i;
  }
}

int set_interrupts(const char* call, Context& context, bool wanted) {
  if (context.interrupts.load() == wanted) return LAPI_SUCCESS;
  if (const int error = check_may_wait(call)) return error;
  if ((wanted ? allow_interrupts() : forbid_interrupts()) != LAPI_SUCCESS) {
    return fail(call, LAPI_ERR_IN_HANDLER, "%s", mob_last_error());
  }
  context.interrupts = wanted;
  return LAPI_SUCCESS;
}

int check_value(const char* call, lapi_query_t query, int value, int least, int most) {
  if (value >= least && value <= most) return LAPI_SUCCESS;
  return fail(call, LAPI_ERR_SET_VAL, "%d for query %d; it may be %d to %d", value,
              static_cast<int>(query), least, most);
}

}  // namespace
}  // namespace lapi

using lapi::Context;

extern "C" int PLAPI_Qenv(lapi_handle_t hndl, lapi_query_t query, int* ret_val) {
  constexpr const char* kCall = "LAPI_Qenv";
  Context* context = lapi::find_context(kCall, hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  if (static_cast<unsigned>(query) >= LAST_QUERY) {
    return lapi::fail(kCall, LAPI_ERR_QUERY_TYPE, "query %d", static_cast<int>(query));
  }
  if (ret_val == nullptr && query != PRINT_STATISTICS) {
    return lapi::fail(kCall, LAPI_ERR_RET_PTR_NULL, "the pointer to the answer is null");
  }
  int value = 0;
  if (lapi::integer_of(*context, query, &value)) {
    *ret_val = value;
    return LAPI_SUCCESS;
  }
  // The query defines the type of the answer (lapi.h).
  auto* statistics = static_cast<lapi_statistics_t*>(static_cast<void*>(ret_val));
  switch (query) {
    case QUERY_SHM_TASKS:
      lapi::list_local_peers(*context, ret_val);
      break;
    case QUERY_STATISTICS:
      lapi::copy(context->over_network, statistics);
      break;
    case QUERY_SHM_STATISTICS:
      lapi::copy(context->within_host, statistics);
      break;
    case QUERY_LOCAL_SEND_STATISTICS:
      lapi::copy(context->to_itself, statistics);
      break;
    default:
      lapi::print(*context, "over a network", context->over_network);
      lapi::print(*context, "within the host", context->within_host);
      break;
  }
  return LAPI_SUCCESS;
}
LAPI_TWIN(Qenv)

extern "C" int PLAPI_Senv(lapi_handle_t hndl, lapi_query_t query, int set_val) {
  constexpr const char* kCall = "LAPI_Senv";
  Context* context = lapi::find_context(kCall, hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  const auto check = [&](int least, int most) {
    return lapi::check_value(kCall, query, set_val, least, most);
  };
  switch (query) {
    case ERROR_CHK:
      context->checks = set_val != 0;
      return LAPI_SUCCESS;
    case INTERRUPT_SET:
      return lapi::set_interrupts(kCall, *context, set_val != 0);
    case TIMEOUT:
      if (const int error = check(lapi::kMinTimeout, lapi::kMaxTimeout)) return error;
      context->timeout = set_val;
      return LAPI_SUCCESS;
    case ACK_THRESHOLD:
      if (const int error = check(1, 31)) return error;
      context->ack_threshold = set_val;
      return LAPI_SUCCESS;
    default:
      return lapi::fail(kCall, LAPI_ERR_QUERY_TYPE,
                        "query %d cannot be set; only ERROR_CHK, INTERRUPT_SET, TIMEOUT and "
                        "ACK_THRESHOLD can",
                        static_cast<int>(query));
  }
}
LAPI_TWIN(Senv)
