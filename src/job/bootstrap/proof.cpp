// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/proof.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <vector>

#include "base/status.h"

namespace mobius::job {
namespace {

using Digest = std::array<unsigned char, 32>;

constexpr size_t kBlockBytes = 64;

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4).
constexpr uint32_t kRoundConstants[] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void add_block(std::array<uint32_t, 8>& state, const unsigned char* block) {
  uint32_t words[64];
  for (size_t i = 0; i < 16; ++i) {
    words[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
               uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t before = words[i - 15];
    const uint32_t last = words[i - 2];
    words[i] = words[i - 16] + words[i - 7] +
               (std::rotr(before, 7) ^ std::rotr(before, 18) ^ before >> 3) +
               (std::rotr(last, 17) ^ std::rotr(last, 19) ^ last >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                           ((e & f) ^ (~e & g)) + kRoundConstants[i] + words[i];
    const uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<uint32_t, 8> changes{a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state.size(); ++i) state[i] += changes[i];
}

// The texts here are short, so a copy that is padded to whole blocks costs nothing.
Digest sha256(std::vector<unsigned char> text) {
  const uint64_t bits = uint64_t{text.size()} * 8;
  text.push_back(0x80);
  while (text.size() % kBlockBytes != kBlockBytes - sizeof bits) text.push_back(0);
  for (int shift = 56; shift >= 0; shift -= 8) {
    text.push_back(static_cast<unsigned char>(bits >> shift));
  }
  std::array<uint32_t, 8> state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  for (size_t at = 0; at < text.size(); at += kBlockBytes) add_block(state, text.data() + at);
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<unsigned char>(state[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

std::array<unsigned char, 16> first_half(const Digest& digest) {
  std::array<unsigned char, 16> half;
  std::copy_n(digest.begin(), half.size(), half.begin());
  return half;
}

}  // namespace

mob_status_t make_random(std::span<unsigned char> bytes) {
  if (getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())) return MOB_OK;
  return base::fail_errno(MOB_ERR_SYSTEM, errno, "no random number for the job's key");
}

Digest hmac_sha256(std::span<const unsigned char> key, std::span<const unsigned char> text) {
  std::vector<unsigned char> block(key.begin(), key.end());
  if (block.size() > kBlockBytes) {
    const Digest digest = sha256(block);
    block.assign(digest.begin(), digest.end());
  }
  block.resize(kBlockBytes);
  std::vector<unsigned char> inner = block;
  for (unsigned char& byte : inner) byte ^= 0x36;
  inner.insert(inner.end(), text.begin(), text.end());
  const Digest digest = sha256(std::move(inner));
  for (unsigned char& byte : block) byte ^= 0x5c;
  block.insert(block.end(), digest.begin(), digest.end());
  return sha256(std::move(block));
}

std::array<unsigned char, 16> derive(const Secret& secret, std::string_view purpose) {
  const auto* text = reinterpret_cast<const unsigned char*>(purpose.data());
  return first_half(hmac_sha256(secret, {text, purpose.size()}));
}

std::string to_hex(const std::array<unsigned char, 16>& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool from_hex(std::string_view text, std::array<unsigned char, 16>* bytes) {
  if (text.size() != 2 * bytes->size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return false;
    const int value = is_digit ? c - '0' : c - 'a' + 10;
    unsigned char& byte = (*bytes)[i / 2];
    byte = static_cast<unsigned char>(i % 2 == 0 ? value << 4 : byte | value);
  }
  return true;
}

Proof prove(const Secret& secret, std::span<const unsigned char> message, const Nonce& others) {
  std::vector<unsigned char> text(message.begin(), message.end());
  text.insert(text.end(), others.begin(), others.end());
  return first_half(hmac_sha256(secret, text));
}

}  // namespace mobius::job
