// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ofi/wire.h"

#include <cstring>

namespace mobius::transport::ofi {

Verdict Senders::open_message(std::span<const unsigned char> arrived, Opened* opened) {
  MessageHeader header;
  if (arrived.size() < sizeof header) return Verdict::kStranger;
  std::memcpy(&header, arrived.data(), sizeof header);
  if (header.bytes != arrived.size() - sizeof header ||
      header.code != message_code(key_, header, receiver_)) {
    return Verdict::kStranger;
  }
  if (header.sequence <= last_[header.sender]) return Verdict::kReplayed;
  *opened = {header.sender, header.sequence, arrived.subspan(sizeof header)};
  return due(*opened) ? Verdict::kGood : Verdict::kEarly;
}

bool Senders::due(const Opened& opened) {
  uint64_t& last = last_[opened.sender];
  if (opened.sequence != last + 1) return false;
  ++last;
  return true;
}

}  // namespace mobius::transport::ofi
