// SPDX-License-Identifier: BSD-3-Clause

// Sending messages: injected if short, from a buffer, or in place.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "transport/ofi/state.h"
#include "transport/shm/copy.h"

namespace mobius::transport::ofi {
namespace {

constexpr size_t kMostInjected = 512;  // kept on the stack

void gather(unsigned char* to, const MessageHeader& header, std::span<const Piece> pieces) {
  std::memcpy(to, &header, sizeof header);
  to += sizeof header;
  for (const Piece& piece : pieces) {
    if (piece.count == 0) continue;
    copy(to, piece.bytes, piece.count);
    to += piece.count;
  }
}

}  // namespace

// Under `issue`.
bool Endpoint::State::check_message(PeerId peer, size_t bytes, const char* call) {
  if (bytes <= options.message_bytes) return check_peer(peer, call);
  base::fail(MOB_ERR_RANGE, "%s: a message of %zu bytes; the largest possible has %zu", call, bytes,
             options.message_bytes);
  return false;
}

// libfabric copies short messages, but we ask for their completion: nothing else tells how many of
// them it still holds.
int64_t Endpoint::State::inject(const Record& record, unsigned char* packed, size_t bytes) {
  iovec all_of_it = {packed, bytes};
  fi_msg message = {};
  message.msg_iov = &all_of_it;
  message.iov_count = 1;
  message.addr = peers[record.peer].address;
  message.context = const_cast<fi_context2*>(&record.context);
  return fi_sendmsg(endpoint.get(), &message, FI_INJECT | FI_COMPLETION);
}

bool Endpoint::State::is_short(size_t bytes) const {
  return bytes <= std::min(inject_bytes, kMostInjected);
}

int64_t Endpoint::State::post(Record& record, const MessageHeader& header,
                              std::span<const Piece> pieces, bool in_place) {
  const fi_addr_t address = peers[record.peer].address;
  const size_t all = sizeof header + header.bytes;
  if (record.scarce == kShort) {
    unsigned char packed[kMostInjected];
    gather(packed, header, pieces);
    return inject(record, packed, all);
  }
  if (in_place && !local_registration && info->tx_attr->iov_limit > 1) {
    const std::span<const Piece> copied = pieces.first(pieces.size() - 1);
    gather(record.buffer.start, header, copied);
    iovec list[] = {{record.buffer.start, all - pieces.back().count},
                    {const_cast<void*>(pieces.back().bytes), pieces.back().count}};
    fi_msg message = {};
    message.msg_iov = list;
    message.iov_count = 2;
    message.addr = address;
    message.context = &record.context;
    return fi_sendmsg(endpoint.get(), &message, FI_COMPLETION);
  }
  gather(record.buffer.start, header, pieces);
  return fi_send(endpoint.get(), record.buffer.start, all, record.buffer.descriptor, address,
                 &record.context);
}

// Encrypts the pieces where they would be copied to otherwise: on the stack if libfabric copies the
// message, else in a buffer. Under `issue`.
Posted Endpoint::State::send_sealed(PeerId peer_id, std::span<const Piece> pieces, size_t bytes,
                                    uint64_t operation, const char* call) {
  Peer& peer = peers[peer_id];
  const size_t all = header_bytes + bytes;
  const Scarce scarce = is_short(all) ? kShort : kBuffers;
  Record* record = take_record(Kind::kSend, scarce, peer_id, operation);
  if (record == nullptr) return Posted::kAgain;
  unsigned char packed[kMostInjected];
  unsigned char* const start = scarce == kShort ? packed : record->buffer.start;
  if (!seal_message(peer.channel->sealer, name, peer.sequence + 1, pieces, bytes, start)) {
    give_back(record);
    fail_peer(peer_id, "a message to it could not be encrypted");
    base::fail(MOB_ERR_PEER, "%s: %s", call, peer.text.c_str());
    return Posted::kFailed;
  }
  const int64_t result = scarce == kShort
                             ? inject(*record, start, all)
                             : fi_send(endpoint.get(), start, all, record->buffer.descriptor,
                                       peer.address, &record->context);
  if (result == 0) {
    ++peer.sequence;
    return Posted::kDone;
  }
  give_back(record);
  return posted(result, peer_id, call);
}

Posted Endpoint::State::send(PeerId peer_id, std::span<const Piece> pieces, bool in_place,
                             uint64_t operation) {
  const char* call = in_place ? "send_in_place" : "send";
  size_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.count;
  const std::lock_guard lock(issue);
  if (!check_message(peer_id, bytes, call)) return Posted::kFailed;
  Peer& peer = peers[peer_id];
  if (!peer.met) return meet(peer_id, call);
  if (peer.channel != nullptr) return send_sealed(peer_id, pieces, bytes, operation, call);
  const MessageHeader header =
      make_header(keys.code_key(), name, peer.name, peer.sequence + 1, bytes);
  const Scarce scarce = !in_place && is_short(sizeof header + bytes) ? kShort : kBuffers;
  Record* record = take_record(Kind::kSend, scarce, peer_id, operation);
  if (record == nullptr) return Posted::kAgain;
  const int64_t result = post(*record, header, pieces, in_place);
  if (result == 0) {
    ++peer.sequence;
    return Posted::kDone;
  }
  give_back(record);
  return posted(result, peer_id, call);
}

// Sends the caller's buffer itself, and gives the caller the buffer that the record would have been
// copied to.
Posted Endpoint::State::send_buffer(PeerId peer_id, size_t bytes, MessageBuffer* buffer) {
  constexpr const char* kCall = "send_buffer";
  const std::lock_guard lock(issue);
  if (!check_message(peer_id, bytes, kCall)) return Posted::kFailed;
  Peer& peer = peers[peer_id];
  if (!peer.met) return meet(peer_id, kCall);
  if (peer.channel != nullptr) {
    // The caller keeps its buffer: if there is no room, it sends the same bytes, or more, later.
    const Piece all_of_it{buffer->message, bytes};
    return send_sealed(peer_id, {&all_of_it, 1}, bytes, 0, kCall);
  }
  const MessageHeader header =
      make_header(keys.code_key(), name, peer.name, peer.sequence + 1, bytes);
  const size_t all = sizeof header + bytes;
  const Scarce scarce = is_short(all) ? kShort : kBuffers;
  Record* record = take_record(Kind::kSend, scarce, peer_id, 0);
  if (record == nullptr) return Posted::kAgain;
  unsigned char* const start = buffer->message - sizeof header;
  std::memcpy(start, &header, sizeof header);
  const int64_t result = scarce == kShort ? inject(*record, start, all)
                                          : fi_send(endpoint.get(), start, all, buffer->descriptor,
                                                    peer.address, &record->context);
  if (result != 0) {
    give_back(record);
    return posted(result, peer_id, kCall);
  }
  ++peer.sequence;
  if (scarce == kShort) return Posted::kDone;
  const Buffer another = std::exchange(record->buffer, {start, buffer->descriptor});
  *buffer = {another.start + sizeof header, another.descriptor};
  return Posted::kDone;
}

mob_status_t Endpoint::State::make_buffer(MessageBuffer* buffer) {
  const std::lock_guard lock(issue);
  if (const mob_status_t status = add_arena(buffer_bytes)) return status;
  *buffer = {arenas.back().start + sizeof(MessageHeader), arenas.back().descriptor()};
  return MOB_OK;
}

}  // namespace mobius::transport::ofi
