// SPDX-License-Identifier: BSD-3-Clause
#include "transfers/vectors.h"

#include <algorithm>

#include "context/context.h"
#include "synchronisation/counters.h"
#include "transfers/transfers.h"

namespace lapi {
namespace {

struct Codes {
  int null, type, address, length, base, stride, extent;
  const char* name;
};
constexpr Codes kCodes[] = {
    {LAPI_ERR_ORG_VEC_NULL, LAPI_ERR_ORG_VEC_TYPE, LAPI_ERR_ORG_VEC_ADDR, LAPI_ERR_ORG_VEC_LEN,
     LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL, LAPI_ERR_ORG_STRIDE, LAPI_ERR_ORG_EXTENT, "origin"},
    {LAPI_ERR_TGT_VEC_NULL, LAPI_ERR_TGT_VEC_TYPE, LAPI_ERR_TGT_VEC_ADDR, LAPI_ERR_TGT_VEC_LEN,
     LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL, LAPI_ERR_TGT_STRIDE, LAPI_ERR_TGT_EXTENT, "target"}};

struct Strided {
  char* base;
  unsigned long block;
  unsigned long stride;
};

Strided strided(const lapi_vec_t& vector) {
  return {static_cast<char*>(vector.info[0]), reinterpret_cast<unsigned long>(vector.info[1]),
          reinterpret_cast<unsigned long>(vector.info[2])};
}

int check_strided(const char* call, const lapi_vec_t& vector, const Codes& codes) {
  if (vector.info == nullptr || vector.info[0] == nullptr) {
    return fail(call, codes.base, "the %s's base address is null", codes.name);
  }
  const Strided shape = strided(vector);
  if (shape.stride < shape.block) {
    return fail(call, codes.stride, "the %s's blocks of %lu bytes have a stride of %lu", codes.name,
                shape.block, shape.stride);
  }
  if (vector.num_vecs != 0 && shape.stride > LAPI_MAX_MSG_SZ / vector.num_vecs) {
    return fail(call, codes.extent, "%u strides of %lu bytes at the %s", vector.num_vecs,
                shape.stride, codes.name);
  }
  return LAPI_SUCCESS;
}

}  // namespace

int check_vector(const char* call, const lapi_vec_t* vector, Side side) {
  const Codes& codes = kCodes[static_cast<int>(side)];
  if (vector == nullptr) return fail(call, codes.null, "the %s vector is null", codes.name);
  if (static_cast<unsigned>(vector->vec_type) > LAPI_GEN_STRIDED_XFER) {
    return fail(call, codes.type, "the %s vector has type %d", codes.name,
                static_cast<int>(vector->vec_type));
  }
  if (vector->vec_type == LAPI_GEN_STRIDED_XFER) return check_strided(call, *vector, codes);
  if (vector->num_vecs == 0) return LAPI_SUCCESS;
  if (vector->len == nullptr) {
    return fail(call, codes.length, "the lengths of the %s vector are null", codes.name);
  }
  unsigned long left = LAPI_MAX_MSG_SZ;
  for (unsigned i = 0; i < vector->num_vecs; ++i) {
    if (vector->len[i] > left) {
      return fail(call, codes.length, "the %s vector has more than %lu bytes", codes.name,
                  LAPI_MAX_MSG_SZ);
    }
    left -= vector->len[i];
    if (vector->len[i] != 0 && (vector->info == nullptr || vector->info[i] == nullptr)) {
      return fail(call, codes.address, "address %u of the %s vector is null, but has %lu bytes", i,
                  codes.name, vector->len[i]);
    }
  }
  return LAPI_SUCCESS;
}

int check_vectors(const char* call, const lapi_vec_t* tgt_vec, const lapi_vec_t* org_vec) {
  if (const int error = check_vector(call, org_vec, Side::kOrigin)) return error;
  if (const int error = check_vector(call, tgt_vec, Side::kTarget)) return error;
  if (tgt_vec->vec_type != org_vec->vec_type) {
    return fail(call, LAPI_ERR_VEC_TYPE_DIFF, "the target's is of type %d, the origin's of %d",
                static_cast<int>(tgt_vec->vec_type), static_cast<int>(org_vec->vec_type));
  }
  if (tgt_vec->vec_type == LAPI_GEN_GENERIC) {
    if (total_bytes(*tgt_vec) >= total_bytes(*org_vec)) return LAPI_SUCCESS;
    return fail(call, LAPI_ERR_VEC_LEN_DIFF, "%lu bytes at the target for %lu of the origin",
                total_bytes(*tgt_vec), total_bytes(*org_vec));
  }
  if (tgt_vec->num_vecs != org_vec->num_vecs) {
    return fail(call, LAPI_ERR_VEC_NUM_DIFF, "%u vectors at the target, %u at the origin",
                tgt_vec->num_vecs, org_vec->num_vecs);
  }
  if (tgt_vec->vec_type == LAPI_GEN_STRIDED_XFER) {
    if (strided(*tgt_vec).block == strided(*org_vec).block) return LAPI_SUCCESS;
    return fail(call, LAPI_ERR_VEC_LEN_DIFF, "blocks of %lu bytes at the target, %lu at the origin",
                strided(*tgt_vec).block, strided(*org_vec).block);
  }
  for (unsigned i = 0; i < tgt_vec->num_vecs; ++i) {
    if (tgt_vec->len[i] >= org_vec->len[i]) continue;
    return fail(call, LAPI_ERR_VEC_LEN_DIFF,
                "vector %u has %lu bytes at the target, %lu at the origin", i, tgt_vec->len[i],
                org_vec->len[i]);
  }
  return LAPI_SUCCESS;
}

unsigned long total_bytes(const lapi_vec_t& vector) {
  if (vector.vec_type == LAPI_GEN_STRIDED_XFER) return vector.num_vecs * strided(vector).block;
  unsigned long total = 0;
  for (unsigned i = 0; i < vector.num_vecs; ++i) total += vector.len[i];
  return total;
}

std::vector<mob_span_t> spans_of(const lapi_vec_t& vector) {
  std::vector<mob_span_t> spans;
  spans.reserve(vector.num_vecs);
  for (unsigned i = 0; i < vector.num_vecs; ++i) {
    if (vector.vec_type == LAPI_GEN_STRIDED_XFER) {
      const Strided shape = strided(vector);
      if (shape.block != 0) spans.push_back({shape.base + i * shape.stride, shape.block});
    } else if (vector.len[i] != 0) {
      spans.push_back({vector.info[i], vector.len[i]});
    }
  }
  return spans;
}

namespace {

// Keeps the first `bytes` bytes of a list.
void shorten(std::vector<mob_span_t>& spans, unsigned long bytes) {
  size_t kept = 0;
  for (; kept < spans.size() && bytes > 0; ++kept) {
    spans[kept].bytes = std::min<size_t>(spans[kept].bytes, bytes);
    bytes -= spans[kept].bytes;
  }
  spans.resize(kept);
}

mob_status_t transfer_strided(mob_transfer_t& transfer, const lapi_vec_t& tgt_vec,
                              const lapi_vec_t& org_vec) {
  const Strided there = strided(tgt_vec);
  const Strided here = strided(org_vec);
  const size_t count = org_vec.num_vecs;
  const auto there_stride = static_cast<ptrdiff_t>(there.stride);
  const auto here_stride = static_cast<ptrdiff_t>(here.stride);
  transfer.shape = MOB_STRIDED;
  transfer.remote = there.base;
  transfer.local = here.base;
  transfer.bytes = here.block;
  transfer.dimensions = 1;
  transfer.counts = &count;
  transfer.remote_strides = &there_stride;
  transfer.local_strides = &here_stride;
  return mob_transfer_nbi(&transfer);
}

mob_status_t transfer_spans(mob_transfer_t& transfer, const lapi_vec_t& tgt_vec,
                            const lapi_vec_t& org_vec) {
  std::vector<mob_span_t> there = spans_of(tgt_vec);
  const std::vector<mob_span_t> here = spans_of(org_vec);
  if (tgt_vec.vec_type == LAPI_GEN_IOVECTOR) {
    there.clear();
    for (unsigned i = 0; i < org_vec.num_vecs; ++i) {
      if (org_vec.len[i] != 0) there.push_back({tgt_vec.info[i], org_vec.len[i]});
    }
  } else {
    shorten(there, total_bytes(org_vec));
  }
  transfer.shape = MOB_SPANS;
  transfer.remote_spans = there.data();
  transfer.remote_span_count = there.size();
  transfer.local_spans = here.data();
  transfer.local_span_count = here.size();
  return mob_transfer_nbi(&transfer);
}

}  // namespace

int vector_transfer(const char* call, Context& context, unsigned tgt, const lapi_vec_t* tgt_vec,
                    const lapi_vec_t* org_vec, const Counters& counters, bool is_put) {
  if (const int error = check_target(call, context, tgt)) return error;
  if (context.checks.load(std::memory_order_relaxed)) {
    if (const int error = check_vectors(call, tgt_vec, org_vec)) return error;
  }
  if (total_bytes(*org_vec) == 0) {
    return is_put ? put(call, context, tgt, 0, nullptr, nullptr, counters)
                  : get(call, context, tgt, 0, nullptr, nullptr, counters);
  }
  mob_transfer_t transfer{};
  transfer.kind = is_put ? MOB_PUT : MOB_GET;
  transfer.rank = static_cast<mob_rank_t>(tgt);
  transfer.signal = word_of(counters.target);
  transfer.signal_value = 1;
  transfer.signal_op = MOB_SIGNAL_ADD;
  transfer.origin_word = word_of(counters.origin);
  transfer.completion_word = word_of(counters.completion);
  const mob_status_t status = org_vec->vec_type == LAPI_GEN_STRIDED_XFER
                                  ? transfer_strided(transfer, *tgt_vec, *org_vec)
                                  : transfer_spans(transfer, *tgt_vec, *org_vec);
  if (status != MOB_OK) return fail_by_engine(call, context, tgt, status);
  context.push(tgt);
  return LAPI_SUCCESS;
}

}  // namespace lapi

using lapi::Context;

extern "C" int PLAPI_Putv(lapi_handle_t hndl, unsigned int tgt, lapi_vec_t* tgt_vec,
                          lapi_vec_t* org_vec, lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr,
                          lapi_cntr_t* cmpl_cntr) {
  Context* context = lapi::find_context("LAPI_Putv", hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  return lapi::vector_transfer("LAPI_Putv", *context, tgt, tgt_vec, org_vec,
                               {tgt_cntr, org_cntr, cmpl_cntr}, true);
}
LAPI_TWIN(Putv)

extern "C" int PLAPI_Getv(lapi_handle_t hndl, unsigned int tgt, lapi_vec_t* tgt_vec,
                          lapi_vec_t* org_vec, lapi_cntr_t* tgt_cntr, lapi_cntr_t* org_cntr) {
  Context* context = lapi::find_context("LAPI_Getv", hndl);
  if (context == nullptr) return LAPI_ERR_HNDL_INVALID;
  return lapi::vector_transfer("LAPI_Getv", *context, tgt, tgt_vec, org_vec,
                               {tgt_cntr, org_cntr, nullptr}, false);
}
LAPI_TWIN(Getv)
