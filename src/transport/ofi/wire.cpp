// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ofi/wire.h"

#include <cstring>

namespace mobius::transport::ofi {

Verdict Senders::open_message(std::span<const unsigned char> arrived, Opened* opened) {
  MessageHeader header;
  if (arrived.size() < sizeof header) return Verdict::kStranger;
  std::memcpy(&header, arrived.data(), sizeof header);
  if (header.sequence == 0) return open_greeting(header, arrived.subspan(sizeof header), opened);
  if (header.bytes != arrived.size() - sizeof header ||
      header.code != message_code(key_, header, receiver_)) {
    return Verdict::kStranger;
  }
  if (header.sequence <= last_[header.sender]) return Verdict::kReplayed;
  *opened = {header.sender, header.sequence, arrived.subspan(sizeof header)};
  return due(*opened) ? Verdict::kGood : Verdict::kEarly;
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
  *opened = {header.sender, 0, message};
  return Verdict::kGreeting;
}

bool Senders::due(const Opened& opened) {
  uint64_t& last = last_[opened.sender];
  if (opened.sequence != last + 1) return false;
  ++last;
  return true;
}

}  // namespace mobius::transport::ofi
