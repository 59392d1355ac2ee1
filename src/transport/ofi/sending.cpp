// SPDX-License-Identifier: BSD-3-Clause

// Messages on their way out: injected when short, from a buffer of the pool, or from where they
// are.

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "transport/ofi/state.h"
#include "transport/shm/copy.h"

namespace mobius::transport::ofi {
namespace {

constexpr size_t kMostInjected = 512;  // on the stack
constexpr size_t kMostPieces = 8;      // in place, with the header

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

Posted Endpoint::State::send(PeerId peer_id, std::span<const Piece> pieces, bool in_place,
                             uint64_t operation) {
  const char* call = in_place ? "send_in_place" : "send";
  size_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.count;
  if (bytes > options.message_bytes) {
    base::fail(MOB_ERR_RANGE, "%s: a message of %zu bytes; %zu are possible", call, bytes,
               options.message_bytes);
    return Posted::kFailed;
  }
  const std::lock_guard lock(issue);
  if (!check_peer(peer_id, call)) return Posted::kFailed;
  Peer& peer = peers[peer_id];
  const MessageHeader header = make_header(key, name, peer.name, peer.sequence + 1, bytes);
  const size_t all = sizeof header + bytes;

  // Short messages are copied by libfabric, but their completion is asked for: nothing else would
  // tell us how many of them it still holds.
  const bool is_short = !in_place && all <= std::min(inject_bytes, kMostInjected);
  Record* record = take_record(Kind::kSend, is_short ? kShort : kBuffers, peer_id, operation);
  if (record == nullptr) return Posted::kAgain;
  int64_t result = 0;
  const size_t most = std::min(kMostPieces, info->tx_attr->iov_limit);
  if (is_short) {
    unsigned char packed[kMostInjected];
    gather(packed, header, pieces);
    iovec all_of_it = {packed, all};
    fi_msg message = {};
    message.msg_iov = &all_of_it;
    message.iov_count = 1;
    message.addr = peer.address;
    message.context = &record->context;
    result = fi_sendmsg(endpoint.get(), &message, FI_INJECT | FI_COMPLETION);
  } else if (in_place && !local_registration && pieces.size() + 1 <= most) {
    iovec list[kMostPieces];
    size_t count = 0;
    // The header needs a place as long as the pieces do: the start of a buffer.
    std::memcpy(record->buffer.start, &header, sizeof header);
    list[count++] = {record->buffer.start, sizeof header};
    for (const Piece& piece : pieces) {
      if (piece.count != 0) list[count++] = {const_cast<void*>(piece.bytes), piece.count};
    }
    fi_msg message = {};
    message.msg_iov = list;
    message.iov_count = count;
    message.addr = peer.address;
    message.context = &record->context;
    result = fi_sendmsg(endpoint.get(), &message, FI_COMPLETION);
  } else {
    gather(record->buffer.start, header, pieces);
    result = fi_send(endpoint.get(), record->buffer.start, all, record->buffer.descriptor,
                     peer.address, &record->context);
  }
  if (result == 0) {
    ++peer.sequence;
    return Posted::kDone;
  }
  give_back(record);
  return posted(result, peer_id, call);
}

}  // namespace mobius::transport::ofi
