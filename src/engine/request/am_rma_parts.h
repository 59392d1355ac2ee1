// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The origin's state of transfers that the target carries out; for am_rma.cpp and
// am_rma_network.cpp alone.

#include <mobius/transfer.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/common/first_error.h"
#include "engine/common/instrumentation.h"
#include "engine/common/peers.h"
#include "engine/network/network_rma.h"
#include "engine/request/am_rma_wire.h"
#include "engine/request/request_services.h"
#include "schedule/link_meter.h"
#include "transport/shm/element.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

// Fills in the fields that are the same in every part of a transfer. A template, because requests
// are private.
template <typename Request>
void describe(const mob_transfer_t& transfer, bool last, Request* request) {
  request->kind = transfer.kind;
  request->type = transfer.type;
  request->op = transfer.op;
  const bool accumulates = transfer.kind == MOB_ACCUMULATE || transfer.kind == MOB_FETCH_ACCUMULATE;
  if (accumulates && transfer.scale != nullptr) {
    request->has_scale = 1;
    std::memcpy(request->scale, transfer.scale, transport::element_bytes(transfer.type));
  }
  if (!last) return;
  request->target_counter = transfer.target_counter;
  request->signal = transfer.signal;
  request->signal_value = transfer.signal_value;
  request->signal_op = transfer.signal_op;
}

// A transfer at its origin; exists until its last part is answered.
struct AmRma::Whole {
  Pending* pending = nullptr;
  bool completes_early = false;  // locally, as soon as everything is packed
  bool never_waits = false;      // the payload is sent later, from the user's memory
  bool is_bulk = false;
  bool is_unasked = false;
  uint64_t tried_ns = 0;     // start time, if the transfer is measured
  NetworkRma::Extent tried;  // … and its extent
  mob_rank_t target = 0;
  size_t bytes = 0;
  uint64_t shown_ns = 0;            // start time for the timeline, if to another host
  std::atomic<uint32_t> parts = 1;  // the sending thread counts as one
  std::mutex mutex;                 // guards the members below
  FirstError error;

  // Called before anything is sent.
  void show(const RequestServices& services, const mob_transfer_t& transfer,
            const transport::Shape& shape) {
    target = transfer.rank;
    bytes = shape.total_bytes;
    const bool is_shown =
        services.instrumentation.timeline() != nullptr && !services.peers.is_here(target);
    if (is_shown) shown_ns = Timeline::now();
  }

  const char* path() const {
    if (is_unasked) return "remote memory, unasked";
    return is_bulk ? "remote memory" : "alone";
  }

  // Called before completion.
  void show_end(const RequestServices& services) const {
    Timeline* const timeline = services.instrumentation.timeline();
    if (shown_ns == 0 || timeline == nullptr) return;
    char arguments[128];
    std::snprintf(arguments, sizeof arguments, R"("target":%d,"bytes":%zu,"path":"%s","status":%d)",
                  target, bytes, path(), error.status());
    timeline->add("issued", "schedule", shown_ns, arguments);
  }
};

// One pending request.
struct AmRma::Part {
  Whole* whole = nullptr;
  AmRma* self = nullptr;  // set once an answer of several records arrives
  void* stage = nullptr;
  std::unique_ptr<char[]> buffer;  // between hosts, instead of the stage
  char* data = nullptr;            // in the stage
  char* fetched = nullptr;         // in the stage
  mob_kind_t kind = MOB_PUT;
  // Destination of a get: a box whose "remote" side is the stage, or spans.
  transport::Shape box;
  std::vector<mob_span_t> spans;
  size_t even_bytes = 0;  // of each span, where all are alike
  void* fetched_to = nullptr;
  size_t fetched_bytes = 0;
  // Memory that the target reads or writes itself, and the runs in it that the request lists.
  std::vector<transport::ofi::Registration> offered;
  std::vector<NetworkRma::Run> runs;
  size_t offered_runs = 0;  // runs that count as offered to the target
  mob_rank_t target = 0;
  bool wants_key = false;  // of the target's memory
  uint64_t note = 0;       // the note that answers the request; 0: none
  uint64_t asked_ns = 0;   // start time, if the transfer measures the link to another host

  bool tells_of_link() const {
    return (kind == MOB_PUT || kind == MOB_GET) && spans.empty() && box.dimensions == 0 &&
           box.total_bytes >= schedule::LinkMeter::kLargeBytes;
  }

  // Size of the payload in the answer from another host.
  size_t answer_bytes() const {
    if (!offered.empty() || kind == MOB_PUT || kind == MOB_ACCUMULATE) return 0;
    if (kind == MOB_FETCH_ACCUMULATE) return fetched_bytes;
    size_t bytes = spans.empty() ? box.total_bytes : 0;
    for (const mob_span_t& span : spans) bytes += span.bytes;
    return bytes;
  }
};

}  // namespace mobius::engine
