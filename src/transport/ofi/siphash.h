// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// SipHash-2-4 of whole words (Aumasson, Bernstein 2012): the authentication code of a short message
// under a secret key. Not the byte-string function: the length is fixed, so no padding word is
// needed.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace mobius::transport::ofi {

struct SipKey {
  uint64_t words[2] = {};
};

template <size_t Count>
constexpr uint64_t siphash(const SipKey& key, const uint64_t (&words)[Count]) {
  uint64_t v0 = key.words[0] ^ 0x736f6d6570736575;
  uint64_t v1 = key.words[1] ^ 0x646f72616e646f6d;
  uint64_t v2 = key.words[0] ^ 0x6c7967656e657261;
  uint64_t v3 = key.words[1] ^ 0x7465646279746573;
  const auto round = [&] {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  };
  for (const uint64_t word : words) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
  const uint64_t last = uint64_t{Count * 8 % 256} << 56;
  v3 ^= last;
  round();
  round();
  v0 ^= last;
  v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) round();
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace mobius::transport::ofi
