// SPDX-License-Identifier: BSD-3-Clause
#include "transport/secure/secure.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mobius::transport::secure {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes of_hex(std::string_view text) {
  Bytes bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    bytes.push_back(
        static_cast<unsigned char>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

Bytes bytes_of(const Secret& secret) { return {secret.data(), secret.data() + Secret::size()}; }

Secret secret_of(unsigned char value) {
  Secret made;
  std::memset(made.data(), value, Secret::size());
  return made;
}

class Secure : public ::testing::Test {
 protected:
  void SetUp() override {
    if (load() != MOB_OK) GTEST_SKIP() << "SKIP: " << mob_last_error();
  }
};

TEST_F(Secure, KeysAreDerivedAsRfc5869Says) {
  Secret secret, derived;
  ASSERT_EQ(extract(of_hex("000102030405060708090a0b0c"), Bytes(22, 0x0b), &secret), MOB_OK);
  EXPECT_EQ(bytes_of(secret),
            of_hex("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5"));
  ASSERT_EQ(expand(secret, of_hex("f0f1f2f3f4f5f6f7f8f9"), &derived), MOB_OK);
  EXPECT_EQ(bytes_of(derived),
            of_hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"));
  EXPECT_EQ(expand(secret, Bytes(257, 1), &derived), MOB_ERR_ARGUMENT);
}

TEST_F(Secure, KeyPairsAgreeAsRfc7748Says) {
  Secret bob_private, shared;
  std::ranges::copy(of_hex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"),
                    bob_private.data());
  PublicKey alice, zero{};
  std::ranges::copy(of_hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"),
                    alice.begin());
  KeyPair bob;
  ASSERT_EQ(bob.make_of(bob_private), MOB_OK);
  EXPECT_EQ(Bytes(bob.public_key().begin(), bob.public_key().end()),
            of_hex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"));
  ASSERT_EQ(bob.agree(alice, &shared), MOB_OK);
  EXPECT_EQ(bytes_of(shared),
            of_hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"));
  EXPECT_EQ(bob.agree(zero, &shared), MOB_ERR_ARGUMENT);
}

TEST_F(Secure, FreshKeyPairsDifferAndAgree) {
  KeyPair left, right, other;
  for (KeyPair* pair : {&left, &right, &other}) ASSERT_EQ(pair->make(), MOB_OK);
  EXPECT_NE(left.public_key(), right.public_key());
  Secret lefts, rights, others;
  ASSERT_EQ(left.agree(right.public_key(), &lefts), MOB_OK);
  ASSERT_EQ(right.agree(left.public_key(), &rights), MOB_OK);
  ASSERT_EQ(other.agree(left.public_key(), &others), MOB_OK);
  EXPECT_EQ(bytes_of(lefts), bytes_of(rights));
  EXPECT_NE(bytes_of(lefts), bytes_of(others));
}

struct Sealed {
  uint64_t number = 0;
  Bytes message;
  unsigned char tag[kTagBytes];
};

class Sealing : public ::testing::TestWithParam<Cipher> {
 protected:
  void SetUp() override {
    if (load() != MOB_OK) GTEST_SKIP() << "SKIP: " << mob_last_error();
    sealer.open(GetParam(), secret_of(1));
    opener.open(GetParam(), secret_of(1));
  }
  Sealed seal(const Bytes& text, size_t piece = 1000) {
    Sealed made;
    made.number = sealer.next_number();
    made.message.resize(text.size());
    EXPECT_TRUE(sealer.begin(made.number, associated));
    for (size_t at = 0; at < text.size(); at += piece) {
      EXPECT_TRUE(sealer.add(made.message.data() + at, text.data() + at,
                             std::min(piece, text.size() - at)));
    }
    EXPECT_TRUE(sealer.end(made.tag));
    return made;
  }
  bool opens(Sealed sealed, const Bytes& text) {
    return opener.open_message(sealed.number, associated, sealed.tag, sealed.message) &&
           sealed.message == text;
  }
  Bytes associated = Bytes(24, 9);
  Sealer sealer;
  Opener opener;
};

TEST_P(Sealing, MessagesOfAllLengthsInAnyPiecesOpen) {
  for (const size_t bytes : {0, 1, 15, 16, 17, 48, 100, 1000, 4096, 65536, 70001}) {
    for (const size_t piece : {1, 7, 16, 64, 4096, 100000}) {
      if (bytes / piece > 10000) continue;
      Bytes text(bytes);
      for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<unsigned char>(i * 7 + bytes);
      const Sealed sealed = seal(text, piece);
      if (bytes > 16) {
        EXPECT_NE(sealed.message, text);
      }
      EXPECT_TRUE(opens(sealed, text)) << bytes << " bytes in pieces of " << piece;
    }
  }
}

TEST_P(Sealing, NoChangedBitOpens) {
  const Bytes text(40, 5);
  const Sealed good = seal(text);
  for (size_t bit = 0; bit < 8 * good.message.size(); ++bit) {
    Sealed bad = good;
    bad.message[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    EXPECT_FALSE(opens(bad, text)) << "bit " << bit << " of the message";
  }
  for (size_t bit = 0; bit < 8 * kTagBytes; ++bit) {
    Sealed bad = good;
    bad.tag[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    EXPECT_FALSE(opens(bad, text)) << "bit " << bit << " of the tag";
  }
  for (size_t bit = 0; bit < 64; ++bit) {
    Sealed bad = good;
    bad.number ^= uint64_t{1} << bit;
    EXPECT_FALSE(opens(bad, text)) << "bit " << bit << " of the number";
  }
  for (size_t bytes = 0; bytes < 60; ++bytes) {
    Sealed bad = good;
    bad.message.resize(bytes);
    if (bytes == good.message.size()) continue;
    EXPECT_FALSE(opens(bad, text)) << bytes << " bytes";
  }
  const Bytes before = associated;
  for (size_t bit = 0; bit < 8 * associated.size(); ++bit) {
    associated[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
    EXPECT_FALSE(opens(good, text)) << "bit " << bit << " of the header";
    associated = before;
  }
  Opener other;
  other.open(GetParam(), secret_of(2));
  Sealed copy = good;
  EXPECT_FALSE(other.open_message(copy.number, associated, copy.tag, copy.message));
  EXPECT_TRUE(opens(good, text));
}

TEST_P(Sealing, EqualMessagesLookDifferentEachTime) {
  std::set<Bytes> seen;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(seen.insert(seal(Bytes(32, 1)).message).second);
}

TEST_P(Sealing, GoesOnWithTheNextKeyAndOpensThoseOfTheOneBefore) {
  const Bytes text(100, 3);
  sealer.skip_to(kNumbersPerKey - 3);
  std::vector<Sealed> sealed;
  for (int i = 0; i < 6; ++i) sealed.push_back(seal(text));
  EXPECT_EQ(sealed[2].number, kNumbersPerKey);
  // Those of the next key overtake some of the first.
  for (const size_t i : {0, 3, 1, 4, 2, 5}) EXPECT_TRUE(opens(sealed[i], text)) << i;
  // A number far ahead is refused before any key is made for it, and so is one far back.
  sealer.skip_to(3 * kNumbersPerKey);
  EXPECT_FALSE(opens(seal(text), text));
  sealer.skip_to(2 * kNumbersPerKey);
  EXPECT_TRUE(opens(seal(text), text));
  EXPECT_FALSE(opens(sealed[0], text));
  // The same number and message under another key of the series.
  Sealed moved = sealed[0];
  moved.number += kNumbersPerKey;
  EXPECT_FALSE(opens(moved, text));
}

TEST_P(Sealing, NumbersEndAndDoNotBeginAgain) {
  sealer.skip_to(UINT64_MAX - 1);
  EXPECT_EQ(sealer.next_number(), UINT64_MAX);
  EXPECT_EQ(sealer.next_number(), 0u);
  EXPECT_EQ(sealer.next_number(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Ciphers, Sealing,
                         ::testing::Values(Cipher::kAes256Gcm, Cipher::kChaCha20Poly1305),
                         [](const auto& cipher) {
                           return cipher.param == Cipher::kAes256Gcm ? "Aes" : "ChaCha";
                         });

}  // namespace
}  // namespace mobius::transport::secure
