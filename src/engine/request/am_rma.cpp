// SPDX-License-Identifier: BSD-3-Clause

// The origin's side: packing and sending requests, and receiving answers.

#include "engine/request/am_rma.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "base/status.h"
#include "engine/common/instrumentation.h"
#include "engine/message/message.h"
#include "engine/network/network.h"
#include "engine/progress/peer_watch.h"
#include "engine/progress/progress.h"
#include "engine/progress/waiter.h"
#include "engine/request/am_rma_parts.h"
#include "engine/request/am_rma_wire.h"
#include "engine/request/link_observer.h"
#include "engine/request/span_wire.h"
#include "engine/rma/local_access.h"
#include "engine/segment/window/local_heap.h"
#include "os/sync/futex.h"
#include "transport/shm/copy.h"
#include "transport/shm/move.h"

namespace mobius::engine {
namespace {

using base::fail;
using transport::Shape;

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

mob_status_t has_no_memory(const char* call) {
  return fail(MOB_ERR_MEMORY, "%s: this process has no memory left", call);
}

// Copies between spans and the packed bytes at `packed`. `even_bytes` as in Runs.
void move_packed(char* packed, std::span<const mob_span_t> spans, size_t even_bytes, size_t bytes,
                 bool to_packed) {
  const mob_span_t whole{packed, bytes};
  Shape shape;
  shape.kind = MOB_SPANS;
  shape.total_bytes = bytes;
  shape.run_bytes = even_bytes;
  shape.remote_spans = &whole;
  shape.remote_span_count = 1;
  shape.local_spans = spans.data();
  shape.local_span_count = spans.size();
  transport::move(shape, 0, to_packed);
}

}  // namespace

mob_status_t AmRma::require() {
  std::call_once(registered_, [this] {
    const auto serve_it = [](const mob_message_t* message, void* self, mob_delivery_t* delivery) {
      static_cast<AmRma*>(self)->serve(*message, delivery);
    };
    const auto take_answer = [](const mob_message_t* message, void* self,
                                mob_delivery_t* delivery) {
      static_cast<AmRma*>(self)->answered(*message, delivery);
    };
    services_.messages.register_internal(InternalHandler::kServe, serve_it, this);
    services_.messages.register_internal(InternalHandler::kServed, take_answer, this);
  });
  return services_.progress.require();
}

mob_status_t AmRma::run(const char* call, const mob_transfer_t& transfer, const Shape& shape,
                        Mode mode, uint64_t* handle) {
  // A transfer that is locally complete as soon as it is packed or queued does not wait.
  const bool goes_in_bulk =
      is_bulk(transfer, shape, mode) && !(mode == Mode::kBlocking && in_handler);
  const bool completes_early =
      !goes_in_bulk && (transfer.kind == MOB_PUT || transfer.kind == MOB_ACCUMULATE);
  if (mode == Mode::kBlocking && in_handler && !completes_early) return refuse_in_handler(call);
  if (const mob_status_t status = check_local(call, transfer, shape)) return status;
  if (const mob_status_t status = require()) return status;
  if (const mob_status_t status = await_room(call, transfer.rank, goes_in_bulk)) return status;
  auto whole = std::make_unique<Whole>();
  Completion& completion = services_.completion;
  Pending* const pending =
      mode == Mode::kBlocking
          ? completion.start_awaited(transfer, goes_in_bulk)
          : completion.start(transfer, mode == Mode::kHandle ? handle : nullptr, goes_in_bulk);
  if (pending == nullptr) return MOB_ERR_MEMORY;
  whole->pending = pending;
  whole->completes_early = completes_early;
  whole->is_bulk = goes_in_bulk;
  whole->show(services_, transfer, shape);
  if (mode == Mode::kBlocking && !services_.peers.is_here(transfer.rank)) {
    NetworkRma& bulk = services_.network.rma();
    whole->tried = bulk.extent_of(transfer.kind, shape);
    if (bulk.is_tried_out(whole->tried)) whole->tried_ns = os::now_ns();
  }
  Whole& started = *whole.release();  // finish_part() deletes it
  // From here on completion must be reported, even if memory runs out before anything is sent.
  mob_status_t status = MOB_OK;
  try {
    status = goes_in_bulk ? send_bulk(call, transfer, shape, started)
                          : send_parts(call, transfer, shape, started);
  } catch (const std::bad_alloc&) {
    status = has_no_memory(call);
  }
  if (started.completes_early) {
    completion.complete_locally(*pending, status);
    finish_part(started, MOB_OK);  // the error was reported
  } else {
    finish_part(started, status);
  }
  return mode == Mode::kBlocking ? completion.await(call, *pending) : MOB_OK;
}

// Memory that the caller may not access: the network, or the thread that polls, would find out too
// late.
mob_status_t AmRma::check_local(const char* call, const mob_transfer_t& transfer,
                                const Shape& shape) const {
  if (services_.peers.is_here(transfer.rank)) return MOB_OK;
  if (transfer.kind == MOB_FETCH_ACCUMULATE) {
    LocalAccess fetched(services_.segment, true);
    if (!fetched.allows(transfer.fetched, shape.total_bytes)) {
      return fetched.refuse(call, transfer.fetched);
    }
  }
  if (transfer.kind != MOB_GET && !reads_local(transfer)) return MOB_OK;
  LocalAccess access(services_.segment, transfer.kind == MOB_GET);
  return transport::for_each_run(shape, [&](char*, char* local, size_t bytes) {
    return access.allows(local, bytes) ? MOB_OK : access.refuse(call, local);
  });
}

// Flow control before a transfer starts. An error if the rank is known to be lost.
mob_status_t AmRma::await_room(const char* call, mob_rank_t rank, bool in_bulk) {
  if (services_.peers.is_here(rank)) return MOB_OK;
  const Link* const link = services_.network.find(rank);
  if (link != nullptr && link->has_failed()) {
    return fail(MOB_ERR_PEER, "%s: rank %d %s", call, rank, services_.network.fate(rank).c_str());
  }
  NetworkRma& bulk = services_.network.rma();
  if (!in_bulk || in_handler || bulk.has_room_for_more(rank)) return MOB_OK;
  PeerWatch watch(services_.peers, call, rank);
  return services_.waiter.wait_until([&] { return bulk.has_room_for_more(rank); }, &watch);
}

void AmRma::start(const char* call, const mob_transfer_t& transfer, const Shape& shape,
                  Pending& pending) {
  // Deleted by finish_part().
  auto* const whole = new (std::nothrow) Whole;
  if (whole == nullptr) {
    services_.links.alone_ended(pending.target);
    services_.completion.complete(pending, has_no_memory(call));
    return;
  }
  whole->pending = &pending;
  whole->never_waits = true;
  whole->show(services_, transfer, shape);
  mob_status_t status = check_local(call, transfer, shape);
  if (status == MOB_OK) status = require();
  try {
    // In pieces of a stage's size, as in send_parts().
    for (size_t done = 0; status == MOB_OK && done < shape.total_bytes; done += kStageBytes) {
      Shape part = shape;
      part.remote += done;
      part.local += done;
      part.run_bytes = part.total_bytes = std::min(kStageBytes, shape.total_bytes - done);
      status = send_box(call, transfer, part, *whole, done + part.total_bytes == shape.total_bytes);
    }
  } catch (const std::bad_alloc&) {
    status = has_no_memory(call);
  }
  finish_part(*whole, status);
}

void AmRma::start_bulk(const mob_transfer_t& transfer, Pending& pending) {
  const char* call = transfer.kind == MOB_PUT ? "mob_put_nbi" : "mob_get_nbi";
  Shape shape;
  mob_status_t status =
      transport::normalise(call, transfer, &shape);  // cannot fail: it was checked
  // Deleted by finish_part().
  auto* const whole = new (std::nothrow) Whole;
  if (whole == nullptr) return services_.completion.complete(pending, has_no_memory(call));
  whole->pending = &pending;
  whole->never_waits = true;
  whole->is_bulk = true;
  whole->show(services_, transfer, shape);
  if (status == MOB_OK) status = check_local(call, transfer, shape);
  if (status == MOB_OK) status = require();
  try {
    if (status == MOB_OK) status = send_bulk(call, transfer, shape, *whole);
  } catch (const std::bad_alloc&) {
    status = has_no_memory(call);
  }
  finish_part(*whole, status);
}

mob_status_t AmRma::send_parts(const char* call, const mob_transfer_t& transfer, const Shape& shape,
                               Whole& whole) {
  const bool is_box = shape.kind == MOB_CONTIGUOUS || shape.kind == MOB_STRIDED;
  // A transfer without data may still notify.
  if (shape.total_bytes == 0 || (is_box && shape.total_bytes <= kStageBytes)) {
    return send_box(call, transfer, shape, whole, true);
  }
  // Both lists are the same sequence of bytes, and may be cut differently.
  if (shape.kind == MOB_SPANS && shape.total_bytes <= kStageBytes &&
      shape.remote_span_count <= kMostSpansSent) {
    const bool has_even_locals = shape.is_paired || shape.remote_span_count == 1;
    return send_runs(call, transfer,
                     {{shape.remote_spans, shape.remote_span_count},
                      {shape.local_spans, shape.local_span_count},
                      shape.total_bytes,
                      has_even_locals ? shape.run_bytes : 0},
                     whole, true);
  }
  // Collects runs until a stage is full; long runs are cut at whole elements.
  std::vector<mob_span_t> remote;
  std::vector<mob_span_t> local;
  const size_t listed =
      std::max({shape.piece_count, shape.remote_span_count, shape.local_span_count});
  remote.reserve(std::min(listed, kMostSpansSent));
  local.reserve(std::min(listed, kMostSpansSent));
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
          if (collected < kStageBytes && remote.size() < kMostSpansSent) continue;
          if (const mob_status_t failed =
                  send_runs(call, rest, {remote, local, collected, 0}, whole, left == 0)) {
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
  return send_runs(call, rest, {remote, local, collected, 0}, whole, true);
}

mob_status_t AmRma::make_stage(Part& part, size_t list_bytes, size_t data_bytes,
                               size_t fetched_bytes) {
  if (const mob_status_t status = services_.local_heap.allocate(
          std::max<size_t>(list_bytes + data_bytes + fetched_bytes, 1), 64, &part.stage)) {
    return status;
  }
  part.data = static_cast<char*>(part.stage) + list_bytes;
  part.fetched = part.data + data_bytes;
  part.fetched_bytes = fetched_bytes;
  return MOB_OK;
}

// Allocates the payload by malloc(), so that it is aligned for every element.
mob_status_t AmRma::make_buffer(Part& part, size_t list_bytes, size_t data_bytes) {
  part.buffer.reset(new (std::nothrow) char[std::max<size_t>(list_bytes + data_bytes, 1)]);
  if (part.buffer == nullptr) {
    return fail(MOB_ERR_MEMORY, "no memory for %zu bytes of a transfer", list_bytes + data_bytes);
  }
  part.data = part.buffer.get() + list_bytes;
  return MOB_OK;
}

mob_status_t AmRma::send_box(const char* call, const mob_transfer_t& transfer, const Shape& shape,
                             Whole& whole, bool last) {
  auto part = std::make_unique<Part>();
  part->whole = &whole;
  part->kind = transfer.kind;
  const bool fetches = transfer.kind == MOB_FETCH_ACCUMULATE;
  part->fetched_to = transfer.fetched;
  part->fetched_bytes = fetches ? shape.total_bytes : 0;
  part->box = shape;
  Request request{};
  describe(transfer, last, &request);
  part->wants_key = can_be_bare(transfer, shape);
  request.wants_key = part->wants_key ? 1 : 0;
  request.data_bytes = shape.total_bytes;
  request.dimensions = shape.dimensions;
  request.remote = shape.remote;
  request.run_bytes = shape.run_bytes;
  for (int i = 0; i < shape.dimensions; ++i) {
    request.box[i] = {shape.counts[i], shape.remote_strides[i]};
  }
  transport::pack_strides(shape, part->box.remote_strides);
  const bool remote = !services_.peers.is_here(transfer.rank);
  const void* payload = nullptr;
  mob_status_t status = MOB_OK;
  if (remote && shape.dimensions == 0) {
    payload = shape.local;  // sent from, or received into, the user's memory
  } else if (remote && reads_local(transfer)) {
    status = make_buffer(*part, 0, shape.total_bytes);
    payload = part->data;
  } else if (!remote) {
    status = make_stage(*part, 0, shape.total_bytes, part->fetched_bytes);
  }
  if (status != MOB_OK) return status;
  part->box.remote = part->data;
  if (reads_local(transfer) && payload != shape.local) transport::move(part->box, 0, true);
  request.stage = remote ? kInPayload : services_.segment.offset_of(part->stage);
  return send(call, transfer.rank, std::move(part), request, payload,
              remote && reads_local(transfer) ? shape.total_bytes : 0);
}

mob_status_t AmRma::send_runs(const char* call, const mob_transfer_t& transfer, const Runs& runs,
                              Whole& whole, bool last) {
  auto part = std::make_unique<Part>();
  part->whole = &whole;
  part->kind = transfer.kind;
  part->fetched_to = transfer.fetched;
  if (transfer.kind == MOB_GET) {
    part->spans.assign(runs.local.begin(), runs.local.end());
    part->even_bytes = runs.even_bytes;
  }
  part->fetched_bytes = transfer.kind == MOB_FETCH_ACCUMULATE ? runs.bytes : 0;
  const bool is_remote = !services_.peers.is_here(transfer.rank);
  std::optional<SpanWire> wire;
  if (is_remote) wire.emplace(runs.remote.data(), runs.remote.size());
  const size_t list_bytes = wire ? wire->bytes() : runs.remote.size_bytes();
  const size_t sent_bytes = reads_local(transfer) ? runs.bytes : 0;
  const mob_status_t status = is_remote
                                  ? make_buffer(*part, list_bytes, sent_bytes)
                                  : make_stage(*part, list_bytes, runs.bytes, part->fetched_bytes);
  if (status != MOB_OK) return status;
  if (wire) {
    wire->write(reinterpret_cast<unsigned char*>(part->buffer.get()));
  } else {
    std::memcpy(part->data - list_bytes, runs.remote.data(), list_bytes);
  }
  if (reads_local(transfer)) move_packed(part->data, runs.local, runs.even_bytes, runs.bytes, true);
  Request request{};
  describe(transfer, last, &request);
  request.is_spans = 1;
  request.stage = is_remote ? kInPayload : services_.segment.offset_of(part->stage);
  request.list_bytes = list_bytes;
  request.data_bytes = runs.bytes;
  const void* payload = part->buffer.get();
  return send(call, transfer.rank, std::move(part), request, payload,
              is_remote ? list_bytes + sent_bytes : 0);
}

mob_status_t AmRma::compare_swap(const char* call, mob_rank_t rank, void* remote, size_t bytes,
                                 uint64_t expected, uint64_t desired, uint64_t* old) {
  if (in_handler) return refuse_in_handler(call);
  if (const mob_status_t status = require()) return status;
  mob_transfer_t transfer{};
  transfer.kind = MOB_FETCH_ACCUMULATE;
  transfer.rank = rank;
  transfer.fetched = old;
  auto started = std::make_unique<Whole>();
  Pending* const pending = services_.completion.start_awaited(transfer);
  if (pending == nullptr) return MOB_ERR_MEMORY;
  started->pending = pending;
  Whole& whole = *started.release();  // finish_part() deletes it
  Request request{};
  request.kind = MOB_FETCH_ACCUMULATE;
  request.compare_bytes = static_cast<int32_t>(bytes);
  request.scale[0] = expected;
  request.scale[1] = desired;
  request.remote = static_cast<char*>(remote);
  request.run_bytes = bytes;
  // From here on completion must be reported, even if memory runs out before anything is sent.
  mob_status_t status = MOB_OK;
  try {
    status = send_word(call, rank, request, old, whole);
  } catch (const std::bad_alloc&) {
    status = has_no_memory(call);
  }
  finish_part(whole, status);
  return services_.completion.await(call, *pending);
}

mob_status_t AmRma::send_word(const char* call, mob_rank_t rank, Request& request, uint64_t* old,
                              Whole& whole) {
  auto part = std::make_unique<Part>();
  part->whole = &whole;
  part->kind = MOB_FETCH_ACCUMULATE;
  part->fetched_to = old;
  part->fetched_bytes = request.run_bytes;
  request.stage = kInPayload;
  if (services_.peers.is_here(rank)) {
    if (const mob_status_t status = make_stage(*part, 0, 0, request.run_bytes)) return status;
    request.stage = services_.segment.offset_of(part->stage);
  }
  return send(call, rank, std::move(part), request, nullptr, 0);
}

// Sends a packed part. From here on the thread that handles its answer owns the part.
mob_status_t AmRma::send(const char* call, mob_rank_t rank, std::unique_ptr<Part> part,
                         Request& request, const void* payload, size_t payload_bytes) {
  Whole& whole = *part->whole;
  part->target = rank;
  const void* const held = part->buffer.get();
  if (!services_.peers.is_here(rank) && part->tells_of_link()) part->asked_ns = os::now_ns();
  {
    const std::lock_guard lock(mutex_);
    request.part = ++last_id_;
    try {
      if (part->note != 0) noted_.emplace(part->note, request.part);
      unanswered_.emplace(request.part, part.get());
    } catch (const std::bad_alloc&) {
      noted_.erase(part->note);
      release_stage(*part);
      throw;
    }
    part.release();
    // Counted before give_up() can end the part, and only if there was memory for it.
    whole.parts.fetch_add(1, std::memory_order_relaxed);
  }
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kServe);
  message.header = &request;
  message.header_bytes = request.bytes();
  message.payload = payload;
  message.payload_bytes = payload_bytes;
  // The payload stays valid until the answer if it is the part's own buffer, or the user's memory
  // in a transfer that the answer completes.
  message.stays = whole.never_waits || payload == held;
  mob_status_t status = MOB_OK;
  try {
    status = whole.never_waits ? services_.messages.start(call, rank, message, nullptr)
             : in_handler      ? services_.messages.post(call, rank, message)
                               : services_.messages.send(call, rank, message);
  } catch (const std::bad_alloc&) {
    status = has_no_memory(call);
  }
  if (status == MOB_OK) return MOB_OK;
  part = take_unanswered(request.part);
  if (part == nullptr) return MOB_OK;  // its end has been reported
  whole.parts.fetch_sub(1, std::memory_order_relaxed);
  release_stage(*part);
  return status;
}

// Takes a part out of the unanswered ones; null if it has ended already.
std::unique_ptr<AmRma::Part> AmRma::take_unanswered(uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = unanswered_.find(id);
  if (found == unanswered_.end()) return nullptr;
  std::unique_ptr<Part> part(found->second);
  unanswered_.erase(found);
  noted_.erase(part->note);
  return part;
}

void AmRma::noted(uint64_t note) {
  uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = noted_.find(note);
    if (found != noted_.end()) id = found->second;
  }
  std::unique_ptr<Part> part = take_unanswered(id);
  if (part == nullptr) return;  // give_up() ended it
  services_.network.note_heard(part->target);
  take_answer(std::move(part), nullptr);
}

void AmRma::give_up(mob_rank_t rank) {
  // First prevent late data from being written to memory that the user may reuse.
  services_.network.give_up(rank);
  services_.rkeys.give_up(rank);
  std::vector<std::unique_ptr<Part>> parts;
  {
    const std::lock_guard lock(mutex_);
    const auto take = [&](Part* part) {
      if (part->target != rank) return false;
      parts.emplace_back(part);
      noted_.erase(part->note);
      return true;
    };
    std::erase_if(unanswered_, [&](const auto& asked) { return take(asked.second); });
    std::erase_if(arriving_, take);
  }
  for (const std::unique_ptr<Part>& part : parts) {
    const mob_status_t status = fail(MOB_ERR_PEER, "rank %d %s; it has not answered", rank,
                                     services_.network.fate(rank).c_str());
    release_stage(*part);
    finish_part(*part->whole, status);
  }
}

void AmRma::release_stage(Part& part) {
  NetworkRma& bulk = services_.network.rma();
  for (transport::ofi::Registration& offered : part.offered) bulk.withdraw(offered);
  const size_t runs = std::exchange(part.offered_runs, 0);
  if (runs != 0) bulk.note_withdrawn(part.target, runs);
  if (part.stage == nullptr) return;
  // The stage is a block of this heap, so this cannot fail.
  static_cast<void>(services_.local_heap.release("the end of a transfer", part.stage));
}

// Handles an answer: data go to their destination.
void AmRma::answered(const mob_message_t& message, mob_delivery_t* delivery) {
  Reply reply{};
  std::memcpy(&reply, message.header, std::min(message.header_bytes, sizeof reply));
  reply.text[sizeof reply.text - 1] = '\0';
  std::unique_ptr<Part> part = take_unanswered(reply.part);
  if (part == nullptr) return;  // give_up() ended it
  const bool remote = !services_.peers.is_here(message.source);
  if (remote && reply.status == MOB_OK &&
      (message.source != part->target || message.payload_bytes != part->answer_bytes())) {
    reply.status = MOB_ERR_SYSTEM;
    std::strncpy(reply.text, "its answer makes no sense", sizeof reply.text - 1);
  }
  if (reply.status != MOB_OK) {
    fail(reply.status, "rank %d: %s", message.source, reply.text);
    release_stage(*part);
    finish_part(*part->whole, reply.status);
    return;
  }
  if (reply.has_key != 0 && part->wants_key && message.header_bytes == reply.bytes()) {
    services_.rkeys.keep(message.source, reply.key);
  }
  if (!remote || message.payload_bytes == 0 || message.payload != nullptr) {
    const char* data = part->data;
    if (remote) {
      data = message.payload_bytes == 0 ? nullptr : static_cast<const char*>(message.payload);
    }
    take_answer(std::move(part), data);
    return;
  }
  const bool contiguous = part->spans.empty() && part->box.dimensions == 0;
  if (part->kind == MOB_FETCH_ACCUMULATE) {
    delivery->payload = part->fetched_to;
  } else if (contiguous) {
    delivery->payload = part->box.local;
  } else {
    part->buffer = std::make_unique_for_overwrite<char[]>(message.payload_bytes);
    delivery->payload = part->buffer.get();
  }
  part->self = this;
  delivery->handler = [](mob_token_t, void* argument) {
    std::unique_ptr<Part> whole(static_cast<Part*>(argument));
    {
      const std::lock_guard lock(whole->self->mutex_);
      whole->self->arriving_.erase(whole.get());
    }
    const char* data = whole->buffer.get();
    whole->self->take_answer(std::move(whole), data);
  };
  const std::lock_guard lock(mutex_);
  arriving_.insert(part.get());
  delivery->argument = part.release();
}

// `data` is the payload; null if it arrived at its destination already.
void AmRma::take_answer(std::unique_ptr<Part> part, const char* data) {
  const bool is_in_place = part->self != nullptr && data == nullptr;
  if (part->kind == MOB_GET && !is_in_place && part->spans.empty()) {
    part->box.remote = const_cast<char*>(data);
    transport::move(part->box, 0, false);
  } else if (part->kind == MOB_GET && !is_in_place) {
    size_t bytes = 0;
    for (const mob_span_t& span : part->spans) bytes += span.bytes;
    move_packed(const_cast<char*>(data), part->spans, part->even_bytes, bytes, false);
  } else if (part->kind == MOB_FETCH_ACCUMULATE && part->self == nullptr) {
    transport::copy(part->fetched_to, part->stage != nullptr ? part->fetched : data,
                    part->fetched_bytes);
  }
  if (part->asked_ns != 0) {
    const bool puts = part->kind == MOB_PUT;
    const size_t bytes = part->box.total_bytes;
    services_.links.moved(part->target, puts ? bytes : 0, puts ? 0 : bytes,
                          os::now_ns() - part->asked_ns);
  }
  release_stage(*part);
  finish_part(*part->whole, MOB_OK);
}

// The last part of a transfer to end completes it. After a first error the other parts still
// arrive.
void AmRma::finish_part(Whole& whole, mob_status_t status) {
  if (status != MOB_OK) {
    const std::lock_guard lock(whole.mutex);
    whole.error.keep(status);
  }
  // Acquire and release: the last thread sees the errors that others recorded.
  if (whole.parts.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::unique_ptr<Whole> ended(&whole);
  ended->show_end(services_);
  const mob_status_t first = ended->error.tell();
  if (first == MOB_OK && ended->tried_ns != 0) {
    services_.network.rma().note(ended->tried, ended->is_bulk, os::now_ns() - ended->tried_ns);
  }
  if (ended->never_waits && !ended->is_bulk) {
    services_.links.alone_ended(ended->pending->target);
  }
  Completion& completion = services_.completion;
  if (ended->completes_early) {
    completion.complete_remotely(*ended->pending, first);
  } else {
    completion.complete(*ended->pending, first);
  }
}

}  // namespace mobius::engine
