// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/proof.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace mobius::job {
namespace {

std::string hmac(const std::string& key, const std::string& text) {
  const auto bytes = [](const std::string& from) {
    return std::span(reinterpret_cast<const unsigned char*>(from.data()), from.size());
  };
  const std::array<unsigned char, 32> code = hmac_sha256(bytes(key), bytes(text));
  std::array<unsigned char, 16> half;
  std::string digits;
  for (int part = 0; part < 2; ++part) {
    std::copy_n(code.begin() + 16 * part, 16, half.begin());
    digits += to_hex(half);
  }
  return digits;
}

// Test cases 1, 2, 4 and 6 of RFC 4231.
TEST(Proof, CodesAreThoseOfTheStandard) {
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  std::string key;
  for (char c = 1; c <= 25; ++c) key += c;
  EXPECT_EQ(hmac(key, std::string(50, '\xcd')),
            "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(
      hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

struct Text {
  int32_t number = 0;
  Proof proof{};
};

TEST(Proof, HoldsForOneMessageOneSecretAndOneNonce) {
  Secret secret;
  ASSERT_EQ(make_secret(&secret), MOB_OK);
  Nonces nonces;
  ASSERT_EQ(nonces.open(), MOB_OK);
  const Nonce nonce = nonces.next();
  Text text{7, {}};
  seal(text, secret, nonce);
  EXPECT_TRUE(is_proven(text, secret, nonce));
  EXPECT_FALSE(is_proven(text, secret, nonces.next()));
  Secret other = secret;
  other[15] ^= 1;
  EXPECT_FALSE(is_proven(text, other, nonce));
  for (size_t i = 0; i < text.proof.size(); ++i) {
    Text changed = text;
    changed.proof[i] ^= 0x80;
    EXPECT_FALSE(is_proven(changed, secret, nonce));
  }
  text.number = 8;
  EXPECT_FALSE(is_proven(text, secret, nonce));
}

TEST(Proof, NoncesDiffer) {
  Nonces nonces;
  ASSERT_EQ(nonces.open(), MOB_OK);
  std::set<Nonce> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(nonces.next()).second);
}

TEST(Proof, HexadecimalDigits) {
  Secret secret;
  ASSERT_EQ(make_secret(&secret), MOB_OK);
  Secret read{};
  ASSERT_TRUE(from_hex(to_hex(secret), &read));
  EXPECT_EQ(read, secret);
  EXPECT_FALSE(from_hex(std::string(31, '0'), &read));
  EXPECT_FALSE(from_hex(std::string(33, '0'), &read));
  EXPECT_FALSE(from_hex(std::string(31, '0') + 'g', &read));
  EXPECT_FALSE(from_hex(std::string(31, '0') + 'A', &read));
}

}  // namespace
}  // namespace mobius::job
