// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The header in front of each message of an endpoint, and the only code that reads it. Nothing that
// arrives is trusted before open_message() has checked it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "transport/ofi/siphash.h"

namespace mobius::transport::ofi {

// Its size keeps the message behind it aligned. Both hosts have the same byte order: the address
// contains it.
struct MessageHeader {
  uint64_t code;    // authenticates the other fields, and the receiver
  uint64_t sender;  // random name of the sending endpoint
  // Number of the message from this sender to this receiver, from 1; 0: a greeting.
  uint64_t sequence;
  uint64_t bytes;  // of the message, without the header
};
static_assert(sizeof(MessageHeader) == 32);

inline uint64_t message_code(const SipKey& key, const MessageHeader& header, uint64_t receiver) {
  return siphash(key, {header.sender, header.sequence, header.bytes, receiver});
}

inline MessageHeader make_header(const SipKey& key, uint64_t sender, uint64_t receiver,
                                 uint64_t sequence, uint64_t bytes) {
  MessageHeader header{0, sender, sequence, bytes};
  header.code = message_code(key, header, receiver);
  return header;
}

// The content of messages before any other (introduction.cpp). Greetings are not in the sequence:
// one may be lost with a connection, and is then repeated.
struct Greeting {
  enum Says : uint64_t { kAsks = 1, kAnswers = 2 };  // may be combined
  uint64_t card;                                     // Options::card of its sender
  uint64_t says;
};

// The code covers the greeting too. A later copy of it changes nothing.
inline MessageHeader make_greeting_header(const SipKey& key, uint64_t sender, uint64_t receiver,
                                          const Greeting& greeting) {
  MessageHeader header{0, sender, 0, sizeof greeting};
  header.code = siphash(key, {sender, 0, header.bytes, receiver, greeting.card, greeting.says});
  return header;
}

enum class Verdict {
  kGood,      // the next message of its sender
  kGreeting,  // a Greeting
  kEarly,     // good, but earlier messages of its sender are missing: see due()
  kStranger,  // malformed, or not made with the key of the job
  kReplayed   // a copy of an earlier message
};

struct Opened {
  uint64_t sender = 0;
  uint64_t sequence = 0;
  std::span<const unsigned char> message;
};

// The senders that an endpoint has heard of. Only those that know the key are remembered.
class Senders {
 public:
  Senders(const SipKey& key, uint64_t receiver) : key_(key), receiver_(receiver) {}

  // Checks arrived bytes. `opened` is set for kGood, kGreeting and kEarly.
  Verdict open_message(std::span<const unsigned char> arrived, Opened* opened);

  // Whether a message that was early is the next one now. If so, it counts as received.
  bool due(const Opened& opened);

 private:
  Verdict open_greeting(const MessageHeader& header, std::span<const unsigned char> message,
                        Opened* opened) const;

  SipKey key_;
  uint64_t receiver_;
  std::unordered_map<uint64_t, uint64_t> last_;  // number of the last message, by sender
};

}  // namespace mobius::transport::ofi
