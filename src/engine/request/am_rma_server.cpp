// SPDX-License-Identifier: BSD-3-Clause

// The target's side: checks requests whose data are in a stage or a payload, carries them out, and
// answers.

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/common/instrumentation.h"
#include "engine/message/message.h"
#include "engine/network/network.h"
#include "engine/progress/progress.h"
#include "engine/progress/waiter.h"
#include "engine/request/am_rma.h"
#include "engine/request/am_rma_wire.h"
#include "engine/request/span_wire.h"
#include "engine/rma/exposed/exposures.h"
#include "engine/rma/local_execute.h"
#include "engine/segment/segment.h"
#include "os/memory/pages.h"
#include "transport/shm/copy.h"
#include "transport/shm/shape.h"

namespace mobius::engine {
namespace {

using base::fail;
using transport::Shape;

mob_status_t refuse_nonsense() {
  return fail(MOB_ERR_SYSTEM, "a request for a transfer makes no sense");
}

mob_status_t read_list(const char* list, size_t bytes, std::vector<mob_span_t>* spans) {
  try {
    const auto* from = reinterpret_cast<const unsigned char*>(list);
    if (SpanWire::read(from, bytes, kMostSpansSent, spans)) return MOB_OK;
    return refuse_nonsense();
  } catch (const std::bad_alloc&) {
    return fail(MOB_ERR_MEMORY, "no memory for a list of spans");
  }
}

// Whether the request has no effect that others could observe. A template, because requests are
// private.
template <typename Request>
bool only_reads(const Request& request) {
  return request.kind == MOB_GET && request.target_counter == nullptr && request.signal == nullptr;
}

// Whether a request with `compare_bytes` is one that an origin sends. The payload was expected to
// be empty, so no list may be read from it.
template <typename Request>
bool is_atomic_update(const Request& request) {
  return request.kind == MOB_FETCH_ACCUMULATE && request.list_bytes == 0 &&
         (request.compare_bytes == 4 || request.compare_bytes == 8);
}

}  // namespace

// A request whose payload arrives in several records.
struct AmRma::Arrival {
  AmRma* self;
  mob_rank_t origin;
  Request request;
  bool is_direct;  // into the user's memory
  char* payload;
  std::unique_ptr<char[]> kept;  // the payload, if it is not in a record
};

// Compare-swap of a word of this process; `old` receives the former value.
void AmRma::compare_swap_here(const Request& request, void* old) {
  services_.segment.accumulate_locks().admit_word(services_.peers.host().index(),
                                                  reinterpret_cast<uintptr_t>(request.remote));
  const auto swap = [&]<typename T>(T expected, T desired) {
    // The old value tells the result.
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

// Serves a request at the target. Runs in a message handler, so it never waits.
void AmRma::serve(const mob_message_t& message, mob_delivery_t* delivery) {
  Request request{};
  if (message.header_bytes < offsetof(Request, box) || message.header_bytes > sizeof request) {
    return;
  }
  std::memcpy(&request, message.header, message.header_bytes);
  if (!only_reads(request)) services_.messages.read_late(message.source);
  if (request.stage == kInPayload) {
    serve_payload(message, request, delivery);
  } else if (request.stage == kMovedByTarget) {
    serve_bulk(message, request, delivery);
  } else if (services_.peers.is_here(message.source)) {
    serve_staged(message.source, request);
  }
}

void AmRma::serve_staged(mob_rank_t origin, const Request& request) {
  const mob_rank_t index = services_.peers.host_index(origin);
  auto* stage = static_cast<char*>(
      services_.segment.find_here(origin, services_.segment.address_in(index, request.stage), 1));
  mob_status_t status = MOB_OK;
  if (stage == nullptr) {
    status = fail(MOB_ERR_SYSTEM, "the origin's stage cannot be reached");
  } else {
    char* data = stage + request.list_bytes;
    status = carry_out(request, stage, data, data + request.data_bytes);
  }
  answer(origin, request, status);
}

void AmRma::serve_payload(const mob_message_t& message, const Request& request,
                          mob_delivery_t* delivery) {
  const bool sends_data =
      request.kind == MOB_PUT || (request.kind != MOB_GET && request.op != MOB_NO_OP);
  const size_t expected =
      request.compare_bytes != 0 ? 0 : request.list_bytes + (sends_data ? request.data_bytes : 0);
  // The sum may have wrapped, but not if each of its terms is at most the sum.
  if (message.payload_bytes != expected || request.data_bytes > kStageBytes ||
      (request.compare_bytes == 0 && request.list_bytes > expected) ||
      request.list_bytes % sizeof(mob_span_t) != 0 || request.dimensions < 0 ||
      request.dimensions > static_cast<int32_t>(kCounted) ||
      message.header_bytes != request.bytes() ||
      (request.compare_bytes != 0 && !is_atomic_update(request))) {
    answer(message.source, request, refuse_nonsense());
    return;
  }
  if (expected == 0 || message.payload != nullptr) {
    // Handlers may change the payload; nothing else reads it.
    auto* payload = const_cast<char*>(static_cast<const char*>(message.payload));
    Arrival arrival{this, message.source, request, false, payload, nullptr};
    return serve_arrival(arrival);
  }
  std::unique_ptr<Arrival> arrival(
      new (std::nothrow) Arrival{this, message.source, request, false, nullptr, nullptr});
  if (arrival == nullptr) {
    return answer(message.source, request, fail(MOB_ERR_MEMORY, "it has no memory left"));
  }
  const bool contiguous = request.is_spans == 0 && request.dimensions == 0;
  arrival->is_direct = request.kind == MOB_PUT && contiguous &&
                       check_own(request.remote, request.data_bytes, true) == MOB_OK;
  if (arrival->is_direct) {
    delivery->payload = request.remote;
  } else {
    arrival->kept.reset(new (std::nothrow) char[expected]);
    arrival->payload = arrival->kept.get();
    delivery->payload = arrival->payload;
    if (arrival->payload == nullptr) {
      answer(message.source, request, fail(MOB_ERR_MEMORY, "it has no memory left"));
      return;
    }
  }
  delivery->handler = [](mob_token_t, void* argument) {
    const std::unique_ptr<Arrival> whole(static_cast<Arrival*>(argument));
    whole->self->serve_arrival(*whole);
  };
  delivery->argument = arrival.release();
}

// Receives the list of runs that this process is to move itself.
void AmRma::serve_bulk(const mob_message_t& message, const Request& request,
                       mob_delivery_t* delivery) {
  const mob_rank_t origin = message.source;
  const size_t runs = message.payload_bytes / sizeof(NetworkRma::Run);
  if (services_.peers.is_here(origin) || runs == 0 || runs > NetworkRma::kMostRuns ||
      message.payload_bytes != runs * sizeof(NetworkRma::Run) ||
      message.payload_bytes != request.list_bytes || request.is_spans != 0 ||
      request.dimensions != 0 || message.header_bytes != request.bytes() ||
      (request.kind != MOB_PUT && request.kind != MOB_GET)) {
    return answer(origin, request, refuse_nonsense());
  }
  std::unique_ptr<char[]> list(new (std::nothrow) char[message.payload_bytes]);
  std::unique_ptr<Arrival> arrival(new (std::nothrow)
                                       Arrival{this, origin, request, false, list.get(), nullptr});
  if (list == nullptr || arrival == nullptr) {
    return answer(origin, request, fail(MOB_ERR_MEMORY, "it has no memory left"));
  }
  arrival->kept = std::move(list);
  if (message.payload != nullptr) {
    std::memcpy(arrival->payload, message.payload, message.payload_bytes);
    return move_runs(*arrival);
  }
  delivery->payload = arrival->payload;
  delivery->handler = [](mob_token_t, void* argument) {
    const std::unique_ptr<Arrival> whole(static_cast<Arrival*>(argument));
    whole->self->move_runs(*whole);
  };
  delivery->argument = arrival.release();
}

// Checks all runs before it moves any. The thread that polls when the last bytes arrive answers.
void AmRma::move_runs(const Arrival& arrival) {
  const Request& request = arrival.request;
  const std::span runs(reinterpret_cast<const NetworkRma::Run*>(arrival.payload),
                       request.list_bytes / sizeof(NetworkRma::Run));
  size_t left = request.data_bytes;
  mob_status_t status = MOB_OK;
  for (const NetworkRma::Run& run : runs) {
    if (run.bytes == 0 || run.bytes > left) status = refuse_nonsense();
    if (status == MOB_OK) {
      status = check_own(reinterpret_cast<void*>(run.mover), run.bytes, request.kind == MOB_PUT);
    }
    if (status != MOB_OK) break;
    left -= run.bytes;
  }
  if (status == MOB_OK && left != 0) status = refuse_nonsense();
  if (status != MOB_OK) return answer(arrival.origin, request, status);
  Rkeys::Key key{};
  const bool is_given = give_key(arrival.origin, request, reinterpret_cast<void*>(runs[0].mover),
                                 runs[0].bytes, &key) != nullptr;
  // If the transfer notifies at the target, the receiver may change the bytes: then they must have
  // left before done() notifies it.
  const bool ahead = only_reads(request);
  NetworkRma& bulk = services_.network.rma();
  const bool is_noted =
      request.wants_note != 0 && ahead && runs.size() == 1 && bulk.can_note(request.data_bytes);
  const auto done = [this, origin = arrival.origin, request, is_given, key,
                     is_noted](mob_status_t moved) {
    if (is_noted && moved == MOB_OK) return;
    Answer whole{};
    if (is_given) whole.key = &key;
    answer(origin, request, moved == MOB_OK ? tell(request) : moved, whole);
  };
  bulk.move(arrival.origin, request.kind, runs, ahead, is_noted, done);
}

// Called when the whole request of another host has arrived.
void AmRma::serve_arrival(Arrival& arrival) {
  const Request& request = arrival.request;
  Rkeys::Key key{};
  Answer whole{};
  const auto end = [&](mob_status_t status) {
    whole.key = status == MOB_OK
                    ? give_key(arrival.origin, request, request.remote, request.data_bytes, &key)
                    : nullptr;
    answer(arrival.origin, request, status, whole);
  };
  if (arrival.is_direct) return end(tell(request));
  // Not for a get with a notification: its receiver may change the data.
  if (only_reads(request)) return serve_get(arrival);
  char* const list = arrival.payload;
  char* data = list + request.list_bytes;
  std::unique_ptr<char[]> result;
  size_t result_bytes = 0;
  if (request.compare_bytes != 0) {
    result_bytes = static_cast<size_t>(request.compare_bytes);
  } else if (request.kind == MOB_GET || request.kind == MOB_FETCH_ACCUMULATE) {
    result_bytes = request.data_bytes;
  }
  if (result_bytes != 0) {
    result.reset(new (std::nothrow) char[result_bytes]);
    if (result == nullptr) {
      answer(arrival.origin, request, fail(MOB_ERR_MEMORY, "it has no memory left"));
      return;
    }
  }
  if (request.kind == MOB_GET) data = result.get();
  const mob_status_t status = carry_out(request, list, data, result.get());
  whole.payload = result.get();
  whole.payload_bytes = result_bytes;
  end(status);
}

// Gives the origin a key of the allocation that holds the bytes, if it wants one; else null. Called
// by the polling thread: registering memory in another thread would wait for it.
const Rkeys::Key* AmRma::give_key(mob_rank_t origin, const Request& request, const void* first,
                                  size_t bytes, Rkeys::Key* key) {
  const bool is_given =
      request.wants_key != 0 &&
      services_.rkeys.give(origin, reinterpret_cast<uintptr_t>(first), bytes, key);
  return is_given ? key : nullptr;
}

// Sends the answer from the data's own memory if it needs no packing. If there is no room for it
// yet, the data are read when there is.
void AmRma::serve_get(const Arrival& arrival) {
  const Request& request = arrival.request;
  Answer whole{request.remote, request.data_bytes, &kOwnMemory, 0, nullptr};
  if (request.is_spans == 0 && request.dimensions == 0) {
    const mob_status_t status = check_late(request.remote, request.data_bytes);
    Rkeys::Key key{};
    if (status == MOB_OK)
      whole.key = give_key(arrival.origin, request, request.remote, request.data_bytes, &key);
    return answer(arrival.origin, request, status, whole);
  }
  whole.described_bytes = sizeof request + request.list_bytes;
  const std::unique_ptr<char[]> description(new (std::nothrow) char[whole.described_bytes]);
  if (description == nullptr) {
    return answer(arrival.origin, request, fail(MOB_ERR_MEMORY, "it has no memory left"));
  }
  std::memcpy(description.get(), &request, sizeof request);
  if (request.list_bytes != 0) {
    std::memcpy(description.get() + sizeof request, arrival.payload, request.list_bytes);
  }
  whole.payload = description.get();
  whole.late = &kOwnShape;
  answer(arrival.origin, request, MOB_OK, whole);
}

mob_status_t AmRma::check_late(const void* payload, size_t bytes) const {
  return bytes == 0 ? MOB_OK : check_own(payload, bytes, false);
}

// The memory may have been freed or reused meanwhile, so it is checked again.
mob_status_t AmRma::read_late(void* owner, const void* payload, size_t bytes, void* to) {
  const mob_status_t status = static_cast<AmRma*>(owner)->check_late(payload, bytes);
  if (status == MOB_OK) transport::copy(to, payload, bytes);
  return status;
}

mob_status_t AmRma::read_shape(void* owner, const void* payload, size_t /*bytes*/, void* to) {
  Request request{};
  std::memcpy(&request, payload, sizeof request);
  const char* const list = static_cast<const char*>(payload) + sizeof request;
  return static_cast<AmRma*>(owner)->carry_out(request, list, static_cast<char*>(to), nullptr);
}

size_t AmRma::refuse_late(void* header, mob_status_t status) {
  Reply reply{};
  std::memcpy(&reply, header, offsetof(Reply, text));
  reply.status = status;
  std::strncpy(reply.text, mob_last_error(), sizeof reply.text - 1);
  std::memcpy(header, &reply, sizeof reply);
  return sizeof reply;
}

constinit const LatePayload AmRma::kOwnMemory{read_late, refuse_late, sizeof(Reply)};
constinit const LatePayload AmRma::kOwnShape{read_shape, refuse_late, sizeof(Reply)};

// Notifies the counter and signal that a transfer names at the target, when its data are in place.
mob_status_t AmRma::tell(const Request& request) {
  if (request.target_counter == nullptr && request.signal == nullptr) return MOB_OK;
  if (request.signal != nullptr) {
    if (const mob_status_t status = check_own(request.signal, sizeof(uint64_t), true)) {
      return status;
    }
  }
  mob_transfer_t nothing{};
  nothing.kind = MOB_PUT;
  nothing.rank = services_.peers.rank();
  nothing.target_counter = request.target_counter;
  nothing.signal = request.signal;
  nothing.signal_value = request.signal_value;
  nothing.signal_op = request.signal_op;
  return services_.executor.serve(nothing, Shape{});
}

void AmRma::answer(mob_rank_t origin, const Request& request, mob_status_t status,
                   const Answer& whole) {
  Reply reply{};
  reply.part = request.part;
  reply.status = status;
  if (status != MOB_OK) {
    std::strncpy(reply.text, mob_last_error(), sizeof reply.text - 1);
  } else if (whole.key != nullptr) {
    reply.has_key = 1;
    reply.key = *whole.key;
  }
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kServed);
  message.header = &reply;
  message.header_bytes = reply.bytes();
  if (status == MOB_OK) {
    message.payload = whole.payload;
    message.payload_bytes = whole.payload_bytes;
    message.late = whole.late;
    message.late_owner = this;
    message.described_bytes = whole.described_bytes;
  }
  // If the origin is lost, nobody needs the answer.
  static_cast<void>(services_.messages.post("an answer", origin, message));
}

// The program may have unmapped exposed memory; touching it would crash this process.
mob_status_t AmRma::check_own(const void* address, size_t bytes, bool write) const {
  const mob_rank_t self = services_.peers.rank();
  const auto start = reinterpret_cast<uintptr_t>(address);
  if (services_.segment.find_here(self, start, bytes) != nullptr) return MOB_OK;
  if (!services_.exposures.covers(self, start, bytes)) {
    return fail(MOB_ERR_RANGE, "%zu bytes at %p are not in one of its allocations, or exposed",
                bytes, address);
  }
  if (os::is_accessible(start, bytes, write)) return MOB_OK;
  return fail(MOB_ERR_RANGE, "it exposed memory at %p, but that is not mapped, or may not be %s",
              address, write ? "written" : "read");
}

mob_status_t AmRma::check_remote(const Request& request, const Shape& shape) const {
  if (request.signal != nullptr) {
    if (const mob_status_t status = check_own(request.signal, sizeof(uint64_t), true)) {
      return status;
    }
  }
  if (shape.total_bytes == 0) return MOB_OK;  // only notifies, and names no memory
  const bool writes = request.kind != MOB_GET;
  // One check for the whole range, unless it is exposed memory with runs far apart: then gaps are
  // not checked. The gaps of a list may be unmapped.
  const size_t hull = shape.highest - shape.lowest;
  if (shape.highest != 0) {
    if (services_.segment.find_here(services_.peers.rank(), shape.lowest, hull) != nullptr)
      return MOB_OK;
    constexpr size_t kSmall = size_t{64} << 10;
    if (hull <= kSmall || hull / 2 <= shape.total_bytes) {
      const mob_status_t status = check_own(reinterpret_cast<void*>(shape.lowest), hull, writes);
      if (status == MOB_OK || request.is_spans == 0) return status;
    }
  }
  return transport::for_each_run(shape, [&](char* remote, const char*, size_t bytes) {
    return check_own(remote, bytes, writes);
  });
}

mob_status_t AmRma::carry_out(const Request& request, const char* list, char* data, char* fetched) {
  try {
    return carry_out_with_memory(request, list, data, fetched);
  } catch (const std::bad_alloc&) {
    return fail(MOB_ERR_MEMORY, "it has no memory left");
  }
}

mob_status_t AmRma::carry_out_with_memory(const Request& request, const char* list, char* data,
                                          char* fetched) {
  mob_transfer_t transfer{};
  transfer.kind = request.kind;
  transfer.type = request.type;
  transfer.op = request.op;
  transfer.rank = services_.peers.rank();
  transfer.scale = request.has_scale != 0 ? request.scale : nullptr;
  transfer.fetched = fetched;
  const mob_span_t packed{data, request.data_bytes};
  ptrdiff_t local_strides[kCounted];
  if (request.compare_bytes != 0) {
    const auto bytes = static_cast<size_t>(request.compare_bytes);
    if (const mob_status_t status = check_own(request.remote, bytes, true)) return status;
    if (reinterpret_cast<uintptr_t>(request.remote) % bytes != 0) {
      return fail(MOB_ERR_SYSTEM, "a request for an atomic update makes no sense");
    }
    compare_swap_here(request, fetched);
    return MOB_OK;
  }
  size_t counts[kCounted];
  ptrdiff_t remote_strides[kCounted];
  std::vector<mob_span_t> spans;
  if (request.is_spans != 0) {
    transfer.shape = MOB_SPANS;
    transfer.remote_spans = reinterpret_cast<const mob_span_t*>(list);
    transfer.remote_span_count = request.list_bytes / sizeof(mob_span_t);
    if (request.stage == kInPayload) {
      if (const mob_status_t status = read_list(list, request.list_bytes, &spans)) return status;
      transfer.remote_spans = spans.data();
      transfer.remote_span_count = spans.size();
    }
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
      counts[i] = request.box[i].count;
      remote_strides[i] = request.box[i].remote_stride;
      local_strides[i] = stride;
      // A frame may name any count, also one that nobody can have.
      if (__builtin_mul_overflow(stride, request.box[i].count, &stride)) return refuse_nonsense();
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
  if (shape.total_bytes != request.data_bytes) {
    return refuse_nonsense();
  }
  if (const mob_status_t status = check_remote(request, shape)) return status;
  return services_.executor.serve(transfer, shape);
}

}  // namespace mobius::engine
