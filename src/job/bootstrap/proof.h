// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How the two ends of a connection prove to each other that they know the job's secret, without
// sending it. The kernel says which user the other end runs as, but not every such answer can be
// trusted: all users that a user namespace does not map look alike.
//
// Each end sends a number that was never used before (a nonce) and seals its messages with a code
// made from the secret, the message and the other end's nonce (HMAC, RFC 2104, with SHA-256). A
// message that was recorded elsewhere has the wrong nonce.

#include <mobius/status.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mobius::job {

using Secret = std::array<unsigned char, 16>;
using Nonce = std::array<unsigned char, 16>;
using Proof = std::array<unsigned char, 16>;

mob_status_t make_random(std::span<unsigned char> bytes);
inline mob_status_t make_secret(Secret* secret) { return make_random(*secret); }

std::array<unsigned char, 32> hmac_sha256(std::span<const unsigned char> key,
                                          std::span<const unsigned char> text);

// A value that is the same wherever it is derived, and from which the secret cannot be found.
std::array<unsigned char, 16> derive(const Secret& secret, std::string_view purpose);

// 32 hexadecimal digits.
std::string to_hex(const std::array<unsigned char, 16>& bytes);
bool from_hex(std::string_view text, std::array<unsigned char, 16>* bytes);

// Nonces of one process. Not thread-safe.
class Nonces {
 public:
  mob_status_t open() { return make_random(first_); }
  Nonce next() {
    ++used_;
    Nonce nonce = first_;
    for (size_t i = 0; i < sizeof used_; ++i) {
      nonce[i] = static_cast<unsigned char>(nonce[i] ^ (used_ >> (8 * i)));
    }
    return nonce;
  }

 private:
  Nonce first_{};
  uint64_t used_ = 0;
};

Proof prove(const Secret& secret, std::span<const unsigned char> message, const Nonce& others);

// `message` has a member `proof`, and no padding. `others` is the nonce that the receiver sent.
template <typename Message>
void seal(Message& message, const Secret& secret, const Nonce& others) {
  static_assert(std::has_unique_object_representations_v<Message>);
  message.proof = {};
  message.proof =
      prove(secret, {reinterpret_cast<const unsigned char*>(&message), sizeof message}, others);
}

// Takes the same time wherever the first difference is.
inline bool is_same(const Proof& a, const Proof& b) {
  unsigned differences = 0;
  for (size_t i = 0; i < a.size(); ++i) differences |= static_cast<unsigned>(a[i] ^ b[i]);
  return differences == 0;
}

// Whether the sender of `message` knows the secret and has answered the nonce `own`.
template <typename Message>
bool is_proven(Message message, const Secret& secret, const Nonce& own) {
  const Proof proof = message.proof;
  seal(message, secret, own);
  return is_same(proof, message.proof);
}

}  // namespace mobius::job
