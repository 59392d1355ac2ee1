// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Amsend and LAPI_Amsendv at the origin.

#include <cstring>
#include <memory>
#include <new>

#include "context/context.h"
#include "messages/messages.h"
#include "messages/programs.h"
#include "synchronisation/counters.h"
#include "transfers/transfers.h"
#include "transfers/vectors.h"

namespace lapi {
namespace {

int check(const char* call, const Context& context, const Message& message) {
  if (const int error = refuse_target(call, context, message.tgt)) return error;
  if (message.hdr_hdl == nullptr) {
    return fail(call, LAPI_ERR_HDR_HNDLR_NULL, "the header handler is null");
  }
  if (message.uhdr_len > kMostHeaderBytes || message.uhdr_len % 4 != 0) {
    return fail(call, LAPI_ERR_UHDR_LEN, "a user header of %u bytes; at most %u, in fours",
                message.uhdr_len, kMostHeaderBytes);
  }
  if (message.uhdr == nullptr && message.uhdr_len != 0) {
    return fail(call, LAPI_ERR_UHDR_NULL, "the user header is null, but has %u bytes",
                message.uhdr_len);
  }
  if (message.udata_len > LAPI_MAX_MSG_SZ) {
    return fail(call, LAPI_ERR_DATA_LEN, "%lu bytes; at most %lu", message.udata_len,
                LAPI_MAX_MSG_SZ);
  }
  if (message.udata == nullptr && message.udata_len != 0) {
    return fail(call, LAPI_ERR_ORG_ADDR_NULL, "the data is null, but has %lu bytes",
                message.udata_len);
  }
  return LAPI_SUCCESS;
}

int check_if_asked(const char* call, const Context& context, const Message& message) {
  if (context.checks.load(std::memory_order_relaxed)) return check(call, context, message);
  if (const int error = check_target(call, context, message.tgt)) return error;
  // A header that would overrun a buffer of this library is refused even without argument checks.
  if (message.uhdr_len > kMostHeaderBytes) {
    return fail(call, LAPI_ERR_UHDR_LEN, "a user header of %u bytes", message.uhdr_len);
  }
  return LAPI_SUCCESS;
}

int send_packed(const char* call, Context& context, const Message& message, Form form,
                uint32_t vectors, const Counters& counters) {
  alignas(8) char out[sizeof(Wire) + sizeof(WireCounters) + kMostHeaderBytes];
  const bool has_counters = counters.target != nullptr || counters.completion != nullptr;
  const Wire wire(reinterpret_cast<uint64_t>(message.hdr_hdl),
                  {form, static_cast<uint8_t>(context.handle), has_counters,
                   static_cast<uint16_t>(message.uhdr_len), vectors});
  std::memcpy(out, &wire, sizeof wire);
  size_t at = sizeof wire;
  if (has_counters) {
    const WireCounters words = {reinterpret_cast<uint64_t>(counters.target),
                                reinterpret_cast<uint64_t>(counters.completion)};
    std::memcpy(out + at, &words, sizeof words);
    at += sizeof words;
  }
  if (message.uhdr_len != 0) std::memcpy(out + at, message.uhdr, message.uhdr_len);
  const mob_status_t status =
      mob_message_send(static_cast<mob_rank_t>(message.tgt), kMessageId, out, at + message.uhdr_len,
                       message.udata, message.udata_len, nullptr);
  if (status != MOB_OK) [[unlikely]] {
    return fail_by_engine(call, context, message.tgt, status);
  }
  Statistics& statistics = context.statistics_of(message.tgt);
  Statistics::add(statistics.sent, 1);
  Statistics::add(statistics.bytes_sent, message.udata_len);
  count(counters.origin, message.tgt);
  return LAPI_SUCCESS;
}

}  // namespace

int send(const char* call, Context& context, const Message& message, const Counters& counters) {
  if (const int error = check_if_asked(call, context, message)) return error;
  return send_packed(call, context, message, Form::kPlain, 0, counters);
}

int send_vector(const char* call, Context& context, const Message& message,
                const lapi_vec_t* org_vec, const Counters& counters) {
  if (const int error = check_if_asked(call, context, message)) return error;
  if (context.checks.load(std::memory_order_relaxed)) {
    if (const int error = check_vector(call, org_vec, Side::kOrigin)) return error;
  }
  const unsigned vectors = org_vec->num_vecs;
  const unsigned long bytes = vectors * sizeof(unsigned long) + total_bytes(*org_vec);
  const std::unique_ptr<char[]> packed(new (std::nothrow) char[bytes + 1]);
  if (packed == nullptr) {
    return fail(call, LAPI_ERR_MEMORY_EXHAUSTED, "%lu bytes to pack the vectors into", bytes);
  }
  char* to = packed.get();
  for (unsigned i = 0; i < vectors; ++i, to += sizeof(unsigned long)) {
    const unsigned long length = org_vec->vec_type == LAPI_GEN_STRIDED_XFER
                                     ? reinterpret_cast<unsigned long>(org_vec->info[1])
                                     : org_vec->len[i];
    std::memcpy(to, &length, sizeof length);
  }
  for (const mob_span_t& span : spans_of(*org_vec)) {
    std::memcpy(to, span.address, span.bytes);
    to += span.bytes;
  }
  Message whole = message;
  whole.udata = packed.get();
  whole.udata_len = bytes;
  return send_packed(call, context, whole, Form::kVector, vectors, counters);
}

int send_program(const char* call, Context& context, const Message& message, void* dgsp,
                 const Counters& counters) {
  if (const int error = check_if_asked(call, context, message)) return error;
  if (!is_program(dgsp)) return fail(call, LAPI_ERR_DGSP, "%p is not a registered program", dgsp);
  const std::unique_ptr<char[]> packed(new (std::nothrow) char[message.udata_len + 1]);
  if (packed == nullptr) {
    return fail(call, LAPI_ERR_MEMORY_EXHAUSTED, "%lu bytes to pack into", message.udata_len);
  }
  gather(dgsp, message.udata, message.udata_len, 0, packed.get());
  Message whole = message;
  whole.udata = packed.get();
  return send_packed(call, context, whole, Form::kPlain, 0, counters);
}

}  // namespace lapi

using lapi::Context;

extern "C" int PLAPI_Amsend(lapi_handle_t hndl, unsigned int tgt, void* hdr_hdl, void* uhdr,
                            unsigned int uhdr_len, void* udata, unsigned long udata_len,
                            lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr, lapi_cntr_t* cmpl_cntr) {
  Context* context = lapi::find_context("LAPI_Amsend", hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  return lapi::send("LAPI_Amsend", *context, {tgt, hdr_hdl, uhdr, uhdr_len, udata, udata_len},
                    {tgt_cntr, org_cntr, cmpl_cntr});
}
LAPI_TWIN(Amsend)

extern "C" int PLAPI_Amsendv(lapi_handle_t hndl, unsigned int tgt, void* hdr_hdl, void* uhdr,
                             unsigned int uhdr_len, lapi_vec_t* org_vec, lapi_cntr_t* tgt_cntr,
                             lapi_cntr_t* org_cntr, lapi_cntr_t* cmpl_cntr) {
  Context* context = lapi::find_context("LAPI_Amsendv", hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  return lapi::send_vector("LAPI_Amsendv", *context, {tgt, hdr_hdl, uhdr, uhdr_len, nullptr, 0},
                           org_vec, {tgt_cntr, org_cntr, cmpl_cntr});
}
LAPI_TWIN(Amsendv)
