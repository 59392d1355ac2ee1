// SPDX-License-Identifier: BSD-3-Clause

// A build without OpenSSL's headers. load() fails with a reason.

#include <cstdlib>

#include "base/status.h"
#include "transport/secure/secure.h"

namespace mobius::transport::secure {

mob_status_t load() {
  return base::fail(
      MOB_ERR_SYSTEM,
      "this build of Möbius cannot encrypt: it was configured where OpenSSL's headers were missing "
      "(Debian: apt-get install libssl-dev, then build again); without encryption a job needs "
      "MOBIUS_SECURITY=off");
}

const char* name_of(Cipher cipher) {
  return cipher == Cipher::kAes256Gcm ? "AES-256-GCM" : "ChaCha20-Poly1305";
}
Cipher preferred_cipher() { return Cipher::kAes256Gcm; }

// Nothing below is reached, because load() never succeeds; only the destructors have nothing to do.
Secret::~Secret() = default;
KeyPair::~KeyPair() = default;
KeyedCipher::~KeyedCipher() = default;
std::string library_text() { std::abort(); }
mob_status_t hmac(std::span<const unsigned char>, std::span<const unsigned char>,
                  std::array<unsigned char, 32>*) {
  std::abort();
}
mob_status_t extract(std::span<const unsigned char>, std::span<const unsigned char>, Secret*) {
  std::abort();
}
mob_status_t expand(const Secret&, std::span<const unsigned char>, Secret*) { std::abort(); }
mob_status_t KeyPair::make() { std::abort(); }
mob_status_t KeyPair::make_of(const Secret&) { std::abort(); }
mob_status_t KeyPair::agree(const PublicKey&, Secret*) const { std::abort(); }
bool KeyedCipher::begin(Cipher, const Secret&, uint64_t, bool, std::span<const unsigned char>) {
  std::abort();
}
bool KeyedCipher::add(unsigned char*, const void*, size_t) { std::abort(); }
bool KeyedCipher::end_sealing(unsigned char*) { std::abort(); }
bool KeyedCipher::end_opening(const unsigned char*) { std::abort(); }
bool Opener::open_message(uint64_t, std::span<const unsigned char>, const unsigned char*,
                          std::span<unsigned char>) {
  std::abort();
}

}  // namespace mobius::transport::secure
