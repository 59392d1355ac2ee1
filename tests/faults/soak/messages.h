// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The messages of the soak: a header that says what the payload must be.

#include <cstddef>
#include <cstdint>

namespace soak {

constexpr unsigned kMessage = 7;
constexpr unsigned kReply = 8;

struct MessageHeader {
  uint32_t writer;
  uint32_t number;  // of the messages from this writer to this target, from 1 on
  uint64_t seed;
  uint64_t wants_reply;
};

void fill_message(const MessageHeader& header, unsigned char* payload, size_t bytes);

}  // namespace soak
