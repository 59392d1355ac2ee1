// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Authenticated encryption of messages between two processes, and the keys for it, by OpenSSL's
// libcrypto. Knows no peers and no network: transport/ofi decides what is sealed.
//
// Each process makes a key pair (X25519, RFC 7748) when it opens its endpoint. Two processes agree
// on a secret from their key pairs and the secret of the job (extract(), expand(): HKDF with
// SHA-256, RFC 5869). So a process that knows the job's secret, but neither private key, cannot
// read or forge what the two send each other. Each direction has its own secret.
//
// Every message has a number, which is its nonce and is used once. After kNumbersPerKey numbers a
// direction goes on with the next key, made of its secret. This keeps the data under one key far
// below the limits of AES-GCM (RFC 8446, 5.5), however much two processes send.
//
// libcrypto is loaded when it is first needed, never unloaded, and may be missing.

#include <mobius/status.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_cipher_ctx_st;
struct evp_pkey_st;

namespace mobius::transport::secure {

enum class Cipher : uint8_t { kAes256Gcm, kChaCha20Poly1305 };
const char* name_of(Cipher cipher);
// The faster one on this processor: AES, where there are instructions for it.
Cipher preferred_cipher();

inline constexpr size_t kTagBytes = 16;
inline constexpr uint64_t kNumbersPerKey = uint64_t{1} << 20;

// 32 bytes that are cleared when they are no longer needed.
class Secret {
 public:
  Secret() = default;
  ~Secret();
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  unsigned char* data() { return bytes_.data(); }
  const unsigned char* data() const { return bytes_.data(); }
  static constexpr size_t size() { return 32; }
  std::span<const unsigned char> bytes() const { return bytes_; }

 private:
  std::array<unsigned char, 32> bytes_{};
};
using PublicKey = std::array<unsigned char, 32>;

// MOB_ERR_SYSTEM if libcrypto cannot be loaded or this build has no support for it; the text says
// what to install. All functions below need a load() that has succeeded.
mob_status_t load();
std::string library_text();  // "OpenSSL 3.0.19"

// HMAC-SHA256, and the two steps of HKDF made of it. `info` has at most 256 bytes.
mob_status_t hmac(std::span<const unsigned char> key, std::span<const unsigned char> text,
                  std::array<unsigned char, 32>* code);
mob_status_t extract(std::span<const unsigned char> salt, std::span<const unsigned char> material,
                     Secret* secret);
mob_status_t expand(const Secret& secret, std::span<const unsigned char> info, Secret* derived);

// An X25519 key pair.
class KeyPair {
 public:
  KeyPair() = default;
  ~KeyPair();
  KeyPair(const KeyPair&) = delete;
  KeyPair& operator=(const KeyPair&) = delete;

  mob_status_t make();                              // of random bytes
  mob_status_t make_of(const Secret& private_key);  // for tests
  const PublicKey& public_key() const { return public_key_; }
  // MOB_ERR_ARGUMENT if `other` is no public key. Any thread.
  mob_status_t agree(const PublicKey& other, Secret* shared) const;

 private:
  evp_pkey_st* pair_ = nullptr;
  PublicKey public_key_{};
};

// The cipher under the key of one range of numbers. Internal to Sealer and Opener.
class KeyedCipher {
 public:
  KeyedCipher() = default;
  ~KeyedCipher();
  KeyedCipher(const KeyedCipher&) = delete;
  KeyedCipher& operator=(const KeyedCipher&) = delete;

  // Takes the key for `number`, and begins a message.
  bool begin(Cipher cipher, const Secret& secret, uint64_t number, bool encrypts,
             std::span<const unsigned char> associated);
  bool add(unsigned char* to, const void* from, size_t count);
  bool end_sealing(unsigned char* tag);
  bool end_opening(const unsigned char* tag);
  bool has_key_for(uint64_t number) const { return has_key_ && epoch_ == number / kNumbersPerKey; }

 private:
  evp_cipher_ctx_st* context_ = nullptr;
  bool has_key_ = false;
  uint64_t epoch_ = 0;
};

// Seals the messages of one direction. One thread at a time.
class Sealer {
 public:
  void open(Cipher cipher, const Secret& secret) {
    cipher_ = cipher;
    secret_ = secret;
  }
  // The number of the next message; 0: all have been used, and nothing can be sent any more.
  uint64_t next_number() { return number_ == UINT64_MAX ? 0 : ++number_; }
  void skip_to(uint64_t number) { number_ = number; }  // for tests

  // Begins a message with a number from next_number(); `associated` is authenticated and not
  // encrypted. False, here and below, if libcrypto refuses: the message must not be sent.
  bool begin(uint64_t number, std::span<const unsigned char> associated) {
    return keyed_.begin(cipher_, secret_, number, true, associated);
  }
  // Encrypts the next piece of it to `to`, which may be `from`.
  bool add(unsigned char* to, const void* from, size_t count) {
    return keyed_.add(to, from, count);
  }
  bool end(unsigned char* tag) { return keyed_.end_sealing(tag); }

 private:
  Cipher cipher_ = Cipher::kAes256Gcm;
  Secret secret_;
  uint64_t number_ = 0;
  KeyedCipher keyed_;
};

// Opens the messages of one direction. One thread at a time.
class Opener {
 public:
  void open(Cipher cipher, const Secret& secret) {
    cipher_ = cipher;
    secret_ = secret;
  }
  // Checks and decrypts a message in place. False if it is not what the Sealer of this direction
  // made; `message` has undefined contents then. Does not know which numbers came before, but takes
  // no number that is further away from those that came than one key.
  bool open_message(uint64_t number, std::span<const unsigned char> associated,
                    const unsigned char* tag, std::span<unsigned char> message);

 private:
  Cipher cipher_ = Cipher::kAes256Gcm;
  Secret secret_;
  uint64_t newest_epoch_ = 0;  // of messages that were genuine
  KeyedCipher keyed_[2];       // a message of one key may come after the first of the next key
};

}  // namespace mobius::transport::secure
