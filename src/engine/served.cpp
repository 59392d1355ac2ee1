// SPDX-License-Identifier: BSD-3-Clause
#include "engine/served.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "base/status.h"
#include "engine/engine.h"
#include "transport/shm/copy.h"
#include "transport/shm/element.h"
#include "transport/shm/move.h"

namespace mobius::engine {
namespace {

using base::fail;
using transport::Shape;

// Stages are not larger than this: a long transfer is packed and carried out at the same time.
constexpr size_t kStageBytes = size_t{1} << 20;

constexpr size_t kCounted = MOB_MAX_DIMENSIONS - 1;

// The strides of a box whose runs lie one after the other.
void pack_strides(const Shape& shape, ptrdiff_t* strides) {
  auto stride = static_cast<ptrdiff_t>(shape.run_bytes);
  for (int i = 0; i < shape.dimensions; ++i) {
    strides[i] = stride;
    stride *= static_cast<ptrdiff_t>(shape.counts[i]);
  }
}

// Whether the transfer has a local side to read: MOB_NO_OP has none (transport::normalise()).
bool reads_local(const mob_transfer_t& transfer) {
  return transfer.kind == MOB_PUT || (transfer.kind != MOB_GET && transfer.op != MOB_NO_OP);
}

mob_status_t refuse_in_handler(const char* call) {
  return fail(MOB_ERR_STATE,
              "%s: this needs its target's help, for which a message handler cannot wait; start it "
              "with mob_transfer_nbi()",
              call);
}

// What every part of a transfer says alike; a template, because requests are private.
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

}  // namespace

// What the target is asked to do, as it travels. The stage holds the list of spans, if that is the
// shape, then the data, then room for what is fetched.
struct Served::Request {
  uint64_t part;   // of the origin, for the reply
  uint64_t stage;  // place in the window
  uint64_t list_bytes;
  uint64_t data_bytes;
  mob_kind_t kind;
  mob_type_t type;
  mob_op_t op;
  int32_t compare_bytes;  // not 0: a compare-swap, of scale[0] with scale[1]
  int32_t has_scale;
  alignas(16) uint64_t scale[2];
  // The shape: spans, or a box (a contiguous one has no dimensions).
  int32_t is_spans;
  int32_t dimensions;
  char* remote;
  uint64_t run_bytes;
  uint64_t counts[kCounted];
  int64_t remote_strides[kCounted];
  // Who is told there, by the last part.
  mob_counter_t target_counter;
  uint64_t* signal;
  uint64_t signal_value;
  mob_signal_op_t signal_op;
};

struct Served::Reply {
  uint64_t part;
  mob_status_t status;
  char text[256];
};

// A transfer of the origin; lives until its last part is answered.
struct Served::Whole {
  Pending* pending = nullptr;
  bool completes_early = false;     // locally, as soon as everything is packed
  std::atomic<uint32_t> parts = 1;  // the one who sends them is one
  std::mutex mutex;                 // guards what follows
  mob_status_t status = MOB_OK;
  char text[512] = {};
};

// One request under way.
struct Served::Part {
  Whole* whole = nullptr;
  void* stage = nullptr;
  char* data = nullptr;     // in the stage
  char* fetched = nullptr;  // in the stage
  mob_kind_t kind = MOB_PUT;
  // Where a get puts its data: a box whose "remote" side is the stage, or spans.
  Shape box;
  std::vector<mob_span_t> spans;
  void* fetched_to = nullptr;
  size_t fetched_bytes = 0;
};

mob_status_t Served::require() {
  std::call_once(registered_, [this] {
    const auto serve_it = [](const mob_message_t* message, void* self, mob_delivery_t*) {
      static_cast<Served*>(self)->serve(*message);
    };
    const auto take_answer = [](const mob_message_t* message, void* self, mob_delivery_t*) {
      static_cast<Served*>(self)->answered(*message);
    };
    engine_.messages().register_internal(InternalHandler::kServe, serve_it, this);
    engine_.messages().register_internal(InternalHandler::kServed, take_answer, this);
  });
  return engine_.progress().require();
}

mob_status_t Served::run(const char* call, const mob_transfer_t& transfer, const Shape& shape,
                         Mode mode, uint64_t* handle) {
  if (mode == Mode::kBlocking && in_handler) {
    return refuse_in_handler(call);
  }
  if (const mob_status_t status = require()) return status;
  auto whole = std::make_unique<Whole>();
  uint64_t own_handle = 0;
  uint64_t* wanted = mode == Mode::kImplicit ? nullptr
                     : mode == Mode::kHandle ? handle
                                             : &own_handle;
  whole->pending = engine_.completion().start(transfer, wanted);
  if (whole->pending == nullptr) return MOB_ERR_MEMORY;
  whole->completes_early = transfer.kind == MOB_PUT || transfer.kind == MOB_ACCUMULATE;
  Whole& started = *whole.release();  // finish_part() deletes it
  const mob_status_t status = send_parts(call, transfer, shape, started);
  if (started.completes_early) {
    engine_.completion().complete_locally(*started.pending, status);
    finish_part(started, MOB_OK);  // the error has been told
  } else {
    finish_part(started, status);
  }
  return mode == Mode::kBlocking ? engine_.completion().wait(call, own_handle) : MOB_OK;
}

mob_status_t Served::send_parts(const char* call, const mob_transfer_t& transfer,
                                const Shape& shape, Whole& whole) {
  const bool is_box = shape.kind == MOB_CONTIGUOUS || shape.kind == MOB_STRIDED;
  if (is_box && shape.total_bytes <= kStageBytes) {
    return send_box(call, transfer, shape, whole, true);
  }
  // In stretches of runs that fill a stage; long runs are cut at whole elements.
  std::vector<mob_span_t> remote;
  std::vector<mob_span_t> local;
  size_t collected = 0;
  size_t left = shape.total_bytes;
  mob_transfer_t rest = transfer;
  const mob_status_t status =
      transport::for_each_run(shape, [&](char* there, char* here, size_t bytes) -> mob_status_t {
        while (bytes > 0) {
          const size_t now = std::min(bytes, kStageBytes - collected);
          remote.push_back({there, now});
          local.push_back({here, now});
          collected += now;
          left -= now;
          there += now;
          here += now;
          bytes -= now;
          if (collected < kStageBytes && remote.size() < kStageBytes / 64) continue;
          if (const mob_status_t failed = send_runs(call, rest, remote, local, whole, left == 0)) {
            return failed;
          }
          if (rest.fetched != nullptr) rest.fetched = static_cast<char*>(rest.fetched) + collected;
          collected = 0;
          remote.clear();
          local.clear();
        }
        return MOB_OK;
      });
  if (status != MOB_OK || remote.empty()) return status;
  return send_runs(call, rest, remote, local, whole, true);
}

mob_status_t Served::make_stage(Part& part, size_t list_bytes, size_t data_bytes,
                                size_t fetched_bytes) {
  if (const mob_status_t status = engine_.local_heap().allocate(
          std::max<size_t>(list_bytes + data_bytes + fetched_bytes, 1), 64, &part.stage)) {
    return status;
  }
  part.data = static_cast<char*>(part.stage) + list_bytes;
  part.fetched = part.data + data_bytes;
  part.fetched_bytes = fetched_bytes;
  return MOB_OK;
}

mob_status_t Served::send_box(const char* call, const mob_transfer_t& transfer, const Shape& shape,
                              Whole& whole, bool last) {
  auto part = std::make_unique<Part>();
  part->whole = &whole;
  part->kind = transfer.kind;
  const bool fetches = transfer.kind == MOB_FETCH_ACCUMULATE;
  part->fetched_to = transfer.fetched;
  if (const mob_status_t status =
          make_stage(*part, 0, shape.total_bytes, fetches ? shape.total_bytes : 0)) {
    return status;
  }
  part->box = shape;
  part->box.remote = part->data;
  pack_strides(shape, part->box.remote_strides);
  if (reads_local(transfer)) {
    transport::move(part->box, 0, true);
  }
  Request request{};
  describe(transfer, last, &request);
  request.stage = engine_.offset_of(part->stage);
  request.data_bytes = shape.total_bytes;
  request.dimensions = shape.dimensions;
  request.remote = shape.remote;
  request.run_bytes = shape.run_bytes;
  std::copy_n(shape.counts, kCounted, request.counts);
  std::copy_n(shape.remote_strides, kCounted, request.remote_strides);
  return send(call, transfer.rank, std::move(part), request);
}

mob_status_t Served::send_runs(const char* call, const mob_transfer_t& transfer,
                               const std::vector<mob_span_t>& remote,
                               const std::vector<mob_span_t>& local, Whole& whole, bool last) {
  auto part = std::make_unique<Part>();
  part->whole = &whole;
  part->kind = transfer.kind;
  part->spans = local;
  part->fetched_to = transfer.fetched;
  size_t bytes = 0;
  for (const mob_span_t& span : local) bytes += span.bytes;
  const bool fetches = transfer.kind == MOB_FETCH_ACCUMULATE;
  const size_t list_bytes = remote.size() * sizeof(mob_span_t);
  if (const mob_status_t status = make_stage(*part, list_bytes, bytes, fetches ? bytes : 0)) {
    return status;
  }
  std::memcpy(part->stage, remote.data(), list_bytes);
  if (reads_local(transfer)) {
    char* to = part->data;
    for (const mob_span_t& span : local) {
      transport::copy(to, span.address, span.bytes);
      to += span.bytes;
    }
  }
  Request request{};
  describe(transfer, last, &request);
  request.is_spans = 1;
  request.stage = engine_.offset_of(part->stage);
  request.list_bytes = list_bytes;
  request.data_bytes = bytes;
  return send(call, transfer.rank, std::move(part), request);
}

mob_status_t Served::compare_swap(const char* call, mob_rank_t rank, void* remote, size_t bytes,
                                  uint64_t expected, uint64_t desired, uint64_t* old) {
  if (in_handler) return refuse_in_handler(call);
  if (const mob_status_t status = require()) return status;
  mob_transfer_t transfer{};
  transfer.kind = MOB_FETCH_ACCUMULATE;
  transfer.rank = rank;
  transfer.fetched = old;
  uint64_t handle = 0;
  auto started = std::make_unique<Whole>();
  started->pending = engine_.completion().start(transfer, &handle);
  if (started->pending == nullptr) return MOB_ERR_MEMORY;
  Whole& whole = *started.release();  // finish_part() deletes it
  auto part = std::make_unique<Part>();
  part->whole = &whole;
  part->kind = MOB_FETCH_ACCUMULATE;
  part->fetched_to = old;
  mob_status_t status = make_stage(*part, 0, 0, bytes);
  if (status == MOB_OK) {
    Request request{};
    request.kind = MOB_FETCH_ACCUMULATE;
    request.compare_bytes = static_cast<int32_t>(bytes);
    request.scale[0] = expected;
    request.scale[1] = desired;
    request.stage = engine_.offset_of(part->stage);
    request.remote = static_cast<char*>(remote);
    request.run_bytes = bytes;
    status = send(call, rank, std::move(part), request);
  }
  finish_part(whole, status);
  return engine_.completion().wait(call, handle);
}

// Sends what was staged. The part belongs to its answer from here on.
mob_status_t Served::send(const char* call, mob_rank_t rank, std::unique_ptr<Part> part,
                          Request& request) {
  Whole& whole = *part->whole;
  request.part = reinterpret_cast<uintptr_t>(part.get());
  whole.parts.fetch_add(1, std::memory_order_relaxed);
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kServe);
  message.header = &request;
  message.header_bytes = sizeof request;
  const mob_status_t status = in_handler ? engine_.messages().post(call, rank, message)
                                         : engine_.messages().send(call, rank, message);
  if (status == MOB_OK) {
    part.release();
    return MOB_OK;
  }
  whole.parts.fetch_sub(1, std::memory_order_relaxed);
  release_stage(*part);
  return status;
}

void Served::release_stage(const Part& part) {
  // It is a block of this heap: this cannot fail.
  static_cast<void>(engine_.local_heap().release("the end of a transfer", part.stage));
}

// On a word of this process; `old` gets what it held.
void Served::compare_swap_here(const Request& request, void* old) {
  const auto swap = [&]<typename T>(T expected, T desired) {
    // The result is told by the old value.
    static_cast<void>(__atomic_compare_exchange_n(reinterpret_cast<T*>(request.remote), &expected,
                                                  desired, false, __ATOMIC_SEQ_CST,
                                                  __ATOMIC_SEQ_CST));
    std::memcpy(old, &expected, sizeof expected);
  };
  if (request.compare_bytes == 8) {
    swap(request.scale[0], request.scale[1]);
  } else {
    swap(static_cast<uint32_t>(request.scale[0]), static_cast<uint32_t>(request.scale[1]));
  }
}

// At the target: does it and answers. Runs in a message handler, so it never waits.
void Served::serve(const mob_message_t& message) {
  Request request;
  std::memcpy(&request, message.header, sizeof request);
  Reply reply{};
  reply.part = request.part;
  reply.status = carry_out(message.source, request);
  if (reply.status != MOB_OK) std::strncpy(reply.text, mob_last_error(), sizeof reply.text - 1);
  Outgoing answer;
  answer.id = static_cast<unsigned>(InternalHandler::kServed);
  answer.header = &reply;
  answer.header_bytes = reply.status == MOB_OK ? offsetof(Reply, text) : sizeof reply;
  // If the origin is gone, nobody is left to tell.
  static_cast<void>(engine_.messages().post("an answer", message.source, answer));
}

bool Served::is_own_memory(const void* address, size_t bytes) const {
  const mob_rank_t self = engine_.rank();
  const auto start = reinterpret_cast<uintptr_t>(address);
  return engine_.exposures().covers(self, start, bytes) ||
         engine_.find_here(self, start, bytes) != nullptr;
}

mob_status_t Served::check_remote(const Request& request, const Shape& shape) const {
  const mob_rank_t self = engine_.rank();
  const auto check_one = [&](const void* address, size_t bytes) {
    if (is_own_memory(address, bytes)) return MOB_OK;
    return fail(MOB_ERR_RANGE, "%zu bytes at %p of rank %d are not exposed any more", bytes,
                address, self);
  };
  if (request.is_spans == 0) {
    return check_one(reinterpret_cast<void*>(shape.lowest), shape.highest - shape.lowest);
  }
  for (size_t i = 0; i < shape.remote_span_count; ++i) {
    const mob_span_t& span = shape.remote_spans[i];
    if (const mob_status_t status = check_one(span.address, span.bytes)) return status;
  }
  return MOB_OK;
}

mob_status_t Served::carry_out(mob_rank_t origin, const Request& request) {
  const mob_rank_t index = Engine::host_index(origin);
  auto* stage =
      static_cast<char*>(engine_.find_here(origin, engine_.address_in(index, request.stage), 1));
  if (stage == nullptr) return fail(MOB_ERR_SYSTEM, "the origin's stage cannot be reached");
  char* data = stage + request.list_bytes;
  char* fetched = data + request.data_bytes;
  mob_transfer_t transfer{};
  transfer.kind = request.kind;
  transfer.type = request.type;
  transfer.op = request.op;
  transfer.rank = engine_.rank();
  transfer.scale = request.has_scale != 0 ? request.scale : nullptr;
  transfer.fetched = fetched;
  const mob_span_t packed{data, request.data_bytes};
  ptrdiff_t local_strides[kCounted];
  if (request.compare_bytes != 0) {
    if (!is_own_memory(request.remote, request.run_bytes)) {
      return fail(MOB_ERR_RANGE, "the word at %p of rank %d is not exposed any more",
                  static_cast<void*>(request.remote), engine_.rank());
    }
    compare_swap_here(request, fetched);
    return MOB_OK;
  }
  size_t counts[kCounted];
  ptrdiff_t remote_strides[kCounted];
  if (request.is_spans != 0) {
    transfer.shape = MOB_SPANS;
    transfer.remote_spans = reinterpret_cast<const mob_span_t*>(stage);
    transfer.remote_span_count = request.list_bytes / sizeof(mob_span_t);
    transfer.local_spans = &packed;
    transfer.local_span_count = 1;
  } else {
    transfer.shape = MOB_STRIDED;
    transfer.remote = request.remote;
    transfer.local = data;
    transfer.bytes = request.run_bytes;
    transfer.dimensions = request.dimensions;
    auto stride = static_cast<ptrdiff_t>(request.run_bytes);
    for (int i = 0; i < request.dimensions; ++i) {
      counts[i] = request.counts[i];
      remote_strides[i] = request.remote_strides[i];
      local_strides[i] = stride;
      stride *= static_cast<ptrdiff_t>(counts[i]);
    }
    transfer.counts = counts;
    transfer.remote_strides = remote_strides;
    transfer.local_strides = local_strides;
  }
  transfer.target_counter = request.target_counter;
  transfer.signal = request.signal;
  transfer.signal_value = request.signal_value;
  transfer.signal_op = request.signal_op;
  Shape shape;
  if (const mob_status_t status = transport::normalise("a served transfer", transfer, &shape)) {
    return status;
  }
  if (const mob_status_t status = check_remote(request, shape)) return status;
  return engine_.transfers().run_on_own_memory(transfer, shape);
}

// At the origin: what came back goes where it belongs.
void Served::answered(const mob_message_t& message) {
  Reply reply{};
  std::memcpy(&reply, message.header, std::min(message.header_bytes, sizeof reply));
  const std::unique_ptr<Part> part(reinterpret_cast<Part*>(reply.part));
  mob_status_t status = reply.status;
  if (status != MOB_OK) {
    fail(status, "rank %d: %s", message.source, reply.text);
  } else if (part->kind == MOB_GET && part->spans.empty()) {
    transport::move(part->box, 0, false);
  } else if (part->kind == MOB_GET) {
    const char* from = part->data;
    for (const mob_span_t& span : part->spans) {
      transport::copy(span.address, from, span.bytes);
      from += span.bytes;
    }
  } else if (part->kind == MOB_FETCH_ACCUMULATE) {
    transport::copy(part->fetched_to, part->fetched, part->fetched_bytes);
  }
  release_stage(*part);
  finish_part(*part->whole, status);
}

// The last of a transfer's parts to come to its end completes it. After a first error the others
// still come.
void Served::finish_part(Whole& whole, mob_status_t status) {
  if (status != MOB_OK) {
    const std::lock_guard lock(whole.mutex);
    if (whole.status == MOB_OK) {
      whole.status = status;
      std::strncpy(whole.text, mob_last_error(), sizeof whole.text - 1);
    }
  }
  // Both: who is last sees what the others recorded.
  if (whole.parts.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::unique_ptr<Whole> ended(&whole);
  if (ended->status != MOB_OK) fail(ended->status, "%s", ended->text);
  Completion& completion = engine_.completion();
  if (!ended->completes_early) completion.complete_locally(*ended->pending, ended->status);
  completion.complete_remotely(*ended->pending, ended->completes_early ? ended->status : MOB_OK);
}

}  // namespace mobius::engine
