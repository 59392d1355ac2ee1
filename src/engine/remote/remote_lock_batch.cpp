// SPDX-License-Identifier: BSD-3-Clause
// Lock requests to other hosts that carry operations (remote_lock_batch.h).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "engine/common/peers.h"
#include "engine/message/message.h"
#include "engine/remote/remote_objects.h"
#include "engine/request/batch_server.h"
#include "engine/scheduler/scheduler.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

// Calls take(bytes, count) with the payload of a message, in memory of its own: at once, or when
// all of it has come. `bytes` is null if there is no memory for it.
template <typename Take>
void take_payload(const mob_message_t& message, mob_delivery_t* delivery, Take take) {
  struct Late {
    Take take;
    std::unique_ptr<unsigned char[]> bytes;
    size_t count;
  };
  const size_t count = message.payload_bytes;
  std::unique_ptr<unsigned char[]> bytes = make_batch_buffer(count);
  if (message.payload != nullptr || count == 0 || bytes == nullptr) {
    if (count != 0 && bytes != nullptr) std::memcpy(bytes.get(), message.payload, count);
    return take(std::move(bytes), count);
  }
  auto late = std::make_unique<Late>(Late{std::move(take), std::move(bytes), count});
  delivery->payload = late->bytes.get();
  delivery->handler = [](mob_token_t, void* argument) {
    const std::unique_ptr<Late> all(static_cast<Late*>(argument));
    all->take(std::move(all->bytes), all->count);
  };
  delivery->argument = late.release();
}

}  // namespace

void RemoteLocks::open() {
  services_.messages.register_internal(
      InternalHandler::kClaiming,
      [](const mob_message_t* message, void* self, mob_delivery_t* delivery) {
        ClaimingRequest request;
        if (message->header_bytes != sizeof request) return;
        std::memcpy(&request, message->header, sizeof request);
        auto& locks = *static_cast<RemoteLocks*>(self);
        take_payload(*message, delivery,
                     [&locks, request, source = message->source](auto pieces, size_t bytes) {
                       locks.serve_batch(source, request, std::move(pieces), bytes);
                     });
      },
      this);
  services_.messages.register_internal(
      InternalHandler::kClaimed,
      [](const mob_message_t* message, void* self, mob_delivery_t* delivery) {
        ClaimedReply reply{};
        std::memcpy(&reply, message->header, std::min(message->header_bytes, sizeof reply));
        reply.pack.text[sizeof reply.pack.text - 1] = 0;
        auto& locks = *static_cast<RemoteLocks*>(self);
        take_payload(*message, delivery,
                     [&locks, reply, source = message->source](auto data, size_t bytes) {
                       locks.take_reply(source, reply, data.get(), bytes);
                     });
      },
      this);
}

mob_status_t RemoteLocks::send(const RemoteLock& lock, ClaimMode mode, const RemoteLockBatch& batch,
                               uint64_t ticket) {
  ClaimingRequest request{.pack = batch.request,
                          .object = lock.object,
                          .index = lock.index,
                          .thread = services_.peers.lock_id(),
                          .mode = mode,
                          .ends = batch.ends ? 1u : 0u};
  request.pack.id = ticket;
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kClaiming);
  message.header = &request;
  message.header_bytes = sizeof request;
  message.payload = batch.pieces;
  message.payload_bytes = batch.piece_bytes;
  // Operations recorded for that target go first.
  services_.scheduler.issue(lock.rank);
  return services_.messages.post("a request", lock.rank, message);
}

void RemoteLocks::serve_batch(mob_rank_t origin, const ClaimingRequest& request,
                              std::unique_ptr<unsigned char[]> pieces, size_t bytes) {
  auto work = std::make_shared<RemoteLockBatchWork>();
  work->request = request.pack;
  work->ends = request.ends != 0;
  // Without memory for the pieces, make the request invalid: the answer then reports an error.
  if (pieces == nullptr) work->request.answer_bytes = UINT64_MAX;
  work->piece_bytes = pieces == nullptr ? 0 : bytes;
  work->pieces = std::move(pieces);
  const std::lock_guard lock(objects_.mutex_);
  serve(Claim{.rank = origin,
              .id = request.thread,
              .mode = request.mode,
              .waits = true,
              .object = request.object,
              .index = request.index,
              .ticket = request.pack.id,
              .work = std::move(work)});
}

// Needs RemoteObjects::mutex_, as all work for other processes. Nothing here waits.
void RemoteLocks::satisfy(const Claim& claim, RemoteObject& object) {
  const Answer acquired = claim.recovered ? Answer::kRecovered : Answer::kAcquired;
  if (claim.work == nullptr) return answer(claim, acquired);
  const RemoteLockBatchWork& work = *claim.work;
  const BatchServer::Done done = services_.batch_server.carry_out(
      claim.rank, work.request, work.pieces.get(), work.piece_bytes, false);
  if (work.ends) object.give_back(claim);
  reply(claim, acquired, done);
}

void RemoteLocks::reply(const Claim& claim, Answer answer, const BatchServer::Done& done) {
  ClaimedReply reply{.answer = answer, .pack = done.reply};
  reply.pack.id = claim.ticket;
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kClaimed);
  message.header = &reply;
  message.header_bytes = ClaimedReply::bytes(reply.pack.status);
  message.payload = done.data.get();
  message.payload_bytes = done.bytes;
  // If the origin is gone, nobody waits for the reply.
  static_cast<void>(services_.messages.post("an answer", claim.rank, message));
}

void RemoteLocks::take_reply(mob_rank_t source, const ClaimedReply& reply,
                             const unsigned char* data, size_t bytes) {
  const std::lock_guard guard(mutex_);
  const auto found = tickets_.find(reply.pack.id);
  if (found == tickets_.end() || found->second->batch == nullptr) return;
  Ticket& ticket = *found->second;
  RemoteLockBatch& batch = *ticket.batch;
  batch.status = reply.pack.status;
  if (batch.status != MOB_OK) {
    std::snprintf(batch.text, sizeof batch.text, "rank %d: %s", source, reply.pack.text);
  }
  if (data != nullptr && bytes == batch.request.answer_bytes) {
    for (const RemoteLockBatch::Place& place : batch.places) {
      transport::copy(place.to, data, place.bytes);
      data += place.bytes;
    }
  } else if (batch.status == MOB_OK && batch.request.answer_bytes != 0) {
    batch.status = MOB_ERR_SYSTEM;
    std::snprintf(batch.text, sizeof batch.text, "an answer of rank %d makes no sense", source);
  }
  ticket.answer.store(reply.answer, std::memory_order_release);
}

}  // namespace mobius::engine
