// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The transfers behind the calls, also for LAPI_Xfer().

#include <lapi.h>

namespace lapi {

struct Context;

// Each may be null. The target's is an address in the target.
struct Counters {
  lapi_cntr_t* target;
  lapi_cntr_t* origin;
  lapi_cntr_t* completion;
};

int put(const char* call, Context& context, unsigned tgt, unsigned long len, void* tgt_addr,
        const void* org_addr, const Counters& counters);
int get(const char* call, Context& context, unsigned tgt, unsigned long len, const void* tgt_addr,
        void* org_addr, const Counters& counters);
// A put if `is_put`, else a get.
int vector_transfer(const char* call, Context& context, unsigned tgt, const lapi_vec_t* tgt_vec,
                    const lapi_vec_t* org_vec, const Counters& counters, bool is_put);
// `bits` is 32 or 64; `in` points to one value, or to two for COMPARE_AND_SWAP.
int rmw(const char* call, Context& context, RMW_ops_t op, unsigned tgt, void* tgt_var,
        const void* in, void* previous, unsigned bits, lapi_cntr_t* origin);

// An active message, and the layout of its data at the origin.
struct Message {
  unsigned tgt;
  void* hdr_hdl;
  const void* uhdr;
  unsigned uhdr_len;
  const void* udata;
  unsigned long udata_len;
};
int send(const char* call, Context& context, const Message& message, const Counters& counters);
int send_vector(const char* call, Context& context, const Message& message,
                const lapi_vec_t* org_vec, const Counters& counters);
int send_program(const char* call, Context& context, const Message& message, void* dgsp,
                 const Counters& counters);

}  // namespace lapi
