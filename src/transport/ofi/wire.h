// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The header in front of each message of an endpoint, and the only code that reads it. Nothing that
// arrives is trusted before open_message() has checked it.
//
// Messages are sealed (MOBIUS_SECURITY=messages or full) or carry a code that covers their header
// alone (off). All endpoints of a job do the same.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>

#include "transport/ofi/endpoint.h"
#include "transport/ofi/siphash.h"

namespace mobius::transport::secure {
class Opener;
class Sealer;
}  // namespace mobius::transport::secure

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

// The header of a sealed message. The message is encrypted; its tag authenticates it and the header
// before the tag. The key stands for sender and receiver.
struct SealedHeader {
  uint64_t number;  // its nonce: counts every message that was sealed, sent or not
  uint64_t sender;
  uint64_t sequence;  // as in a MessageHeader, and never 0
  uint64_t bytes;
  unsigned char tag[16];
};
static_assert(sizeof(SealedHeader) == 48);
inline constexpr size_t kAuthenticatedBytes = offsetof(SealedHeader, tag);

inline uint64_t message_code(const SipKey& key, const MessageHeader& header, uint64_t receiver) {
  return siphash(key, {header.sender, header.sequence, header.bytes, receiver});
}

inline MessageHeader make_header(const SipKey& key, uint64_t sender, uint64_t receiver,
                                 uint64_t sequence, uint64_t bytes) {
  MessageHeader header{0, sender, sequence, bytes};
  header.code = message_code(key, header, receiver);
  return header;
}

// Writes header and sealed message to `to`; copies and encrypts the pieces in one pass. False if
// that is impossible, for good: the numbers have run out, or libcrypto refuses.
bool seal_message(secure::Sealer& sealer, uint64_t sender, uint64_t sequence,
                  std::span<const Piece> pieces, uint64_t bytes, unsigned char* to);

// The content of messages before any other (introduction.cpp). Greetings are not in the sequence:
// one may be lost with a connection, and is then repeated.
struct Greeting {
  enum Says : uint64_t { kAsks = 1, kAnswers = 2 };  // may be combined
  uint64_t card;                                     // Options::card of its sender
  uint64_t says;
  uint64_t proof[2];  // Channel::prove(); 0 without sealing
};

// The code covers the greeting too. A later copy of it changes nothing.
inline MessageHeader make_greeting_header(const SipKey& key, uint64_t sender, uint64_t receiver,
                                          const Greeting& greeting) {
  MessageHeader header{0, sender, 0, sizeof greeting};
  header.code = siphash(key, {sender, 0, header.bytes, receiver, greeting.card, greeting.says,
                              greeting.proof[0], greeting.proof[1]});
  return header;
}

enum class Verdict {
  kGood,      // the next message of its sender
  kGreeting,  // a Greeting
  kEarly,     // good, but earlier messages of its sender are missing: see due()
  kStranger,  // malformed, or not made with the key of the job
  kForged,    // names a peer as its sender, but is not what that peer has sealed
  kReplayed   // a copy of an earlier message
};

struct Opened {
  uint64_t sender = 0;
  uint64_t sequence = 0;
  std::span<const unsigned char> message;
  PeerId peer = kNobody;  // the sender, if it has been added
};

// The senders that an endpoint has heard of. Only those that know the key are remembered.
class Senders {
 public:
  struct Known {
    PeerId peer = kNobody;
    secure::Opener* opener = nullptr;  // null: messages of this sender are not sealed
  };
  // Finds the peer with a name.
  using Find = std::function<Known(uint64_t sender)>;

  Senders(const SipKey& key, uint64_t receiver, bool sealed, Find find)
      : key_(key), receiver_(receiver), sealed_(sealed), find_(std::move(find)) {}

  // Checks arrived bytes, and decrypts a sealed message in place. `opened` is set for kGood,
  // kGreeting, kEarly and kReplayed; for kForged its peer is set.
  Verdict open_message(std::span<unsigned char> arrived, Opened* opened);

  // Whether a message that was early is the next one now. If so, it counts as received.
  bool due(const Opened& opened);

 private:
  struct Sender {
    uint64_t last = 0;  // number of the last message
    Known known;
  };
  Verdict open_greeting(const MessageHeader& header, std::span<const unsigned char> message,
                        Opened* opened) const;
  Verdict open_coded(const MessageHeader& header, std::span<const unsigned char> message,
                     Opened* opened);
  Verdict open_sealed(std::span<unsigned char> arrived, Opened* opened);
  Verdict in_sequence(const Sender& sender, const Opened& opened);

  SipKey key_;
  uint64_t receiver_;
  bool sealed_;
  Find find_;
  std::unordered_map<uint64_t, Sender> senders_;  // by name
};

}  // namespace mobius::transport::ofi
