// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ofi/wire.h"

#include <cstring>

#include "transport/secure/secure.h"

namespace mobius::transport::ofi {

static_assert(sizeof(SealedHeader::tag) == secure::kTagBytes);
static_assert(offsetof(SealedHeader, sequence) == offsetof(MessageHeader, sequence));

bool seal_message(secure::Sealer& sealer, uint64_t sender, uint64_t sequence,
                  std::span<const Piece> pieces, uint64_t bytes, unsigned char* to) {
  SealedHeader header{sealer.next_number(), sender, sequence, bytes, {}};
  if (header.number == 0 ||
      !sealer.begin(header.number,
                    {reinterpret_cast<const unsigned char*>(&header), kAuthenticatedBytes})) {
    return false;
  }
  unsigned char* at = to + sizeof header;
  for (const Piece& piece : pieces) {
    if (!sealer.add(at, piece.bytes, piece.count)) return false;
    at += piece.count;
  }
  if (!sealer.end(header.tag)) return false;
  std::memcpy(to, &header, sizeof header);
  return true;
}

Verdict Senders::open_message(std::span<unsigned char> arrived, Opened* opened) {
  MessageHeader header;
  if (arrived.size() < sizeof header) return Verdict::kStranger;
  std::memcpy(&header, arrived.data(), sizeof header);
  const auto message = arrived.subspan(sizeof header);
  if (header.sequence == 0) return open_greeting(header, message, opened);
  return sealed_ ? open_sealed(arrived, opened) : open_coded(header, message, opened);
}

Verdict Senders::open_greeting(const MessageHeader& header, std::span<const unsigned char> message,
                               Opened* opened) const {
  Greeting greeting;
  if (message.size() != sizeof greeting || header.bytes != sizeof greeting) {
    return Verdict::kStranger;
  }
  std::memcpy(&greeting, message.data(), sizeof greeting);
  if (header.code != make_greeting_header(key_, header.sender, receiver_, greeting).code) {
    return Verdict::kStranger;
  }
  *opened = {header.sender, 0, message, kNobody};
  return Verdict::kGreeting;
}

Verdict Senders::open_coded(const MessageHeader& header, std::span<const unsigned char> message,
                            Opened* opened) {
  if (header.bytes != message.size() || header.code != message_code(key_, header, receiver_)) {
    return Verdict::kStranger;
  }
  Sender& sender = senders_[header.sender];
  if (sender.known.peer == kNobody) sender.known = find_(header.sender);
  *opened = {header.sender, header.sequence, message, sender.known.peer};
  return in_sequence(sender, *opened);
}

// Opens a message before it believes anything that its header says.
Verdict Senders::open_sealed(std::span<unsigned char> arrived, Opened* opened) {
  SealedHeader header;
  if (arrived.size() < sizeof header) return Verdict::kStranger;
  std::memcpy(&header, arrived.data(), sizeof header);
  auto found = senders_.find(header.sender);
  if (found == senders_.end()) {
    const Known known = find_(header.sender);
    if (known.opener == nullptr) return Verdict::kStranger;
    found = senders_.emplace(header.sender, Sender{0, known}).first;
  }
  const Sender& sender = found->second;
  const auto message = arrived.subspan(sizeof header);
  opened->peer = sender.known.peer;
  if (header.bytes != message.size() ||
      !sender.known.opener->open_message(header.number, arrived.first(kAuthenticatedBytes),
                                         header.tag, message)) {
    return Verdict::kForged;
  }
  *opened = {header.sender, header.sequence, message, sender.known.peer};
  return in_sequence(sender, *opened);
}

Verdict Senders::in_sequence(const Sender& sender, const Opened& opened) {
  if (opened.sequence <= sender.last) return Verdict::kReplayed;
  return due(opened) ? Verdict::kGood : Verdict::kEarly;
}

bool Senders::due(const Opened& opened) {
  uint64_t& last = senders_[opened.sender].last;
  if (opened.sequence != last + 1) return false;
  ++last;
  return true;
}

}  // namespace mobius::transport::ofi
