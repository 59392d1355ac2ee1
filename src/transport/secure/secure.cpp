// SPDX-License-Identifier: BSD-3-Clause
#include "transport/secure/secure.h"

#include <dlfcn.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/status.h"

namespace mobius::transport::secure {
namespace {

using base::fail;

constexpr const char* kInstall =
    "install OpenSSL 3 on every host (Debian 12, Ubuntu 22.04: apt-get install libssl3; newer "
    "ones: "
    "libssl3t64; Fedora: dnf install openssl-libs), or set MOBIUS_SECURITY=off";

// Most bytes that one call of libcrypto takes: it counts them in an int.
constexpr size_t kMostAtOnce = size_t{1} << 30;
constexpr size_t kMostInfoBytes = 256;
constexpr size_t kIvBytes = 12;

struct Library {
  decltype(&EVP_CIPHER_CTX_new) context_new = nullptr;
  decltype(&EVP_CIPHER_CTX_free) context_free = nullptr;
  decltype(&EVP_CIPHER_CTX_ctrl) context_control = nullptr;
  decltype(&EVP_CipherInit_ex) init = nullptr;
  decltype(&EVP_CipherUpdate) update = nullptr;
  decltype(&EVP_CipherFinal_ex) final = nullptr;
  decltype(&EVP_aes_256_gcm) aes = nullptr;
  decltype(&EVP_chacha20_poly1305) chacha = nullptr;
  decltype(&EVP_sha256) sha256 = nullptr;
  decltype(&HMAC) hmac = nullptr;
  decltype(&EVP_PKEY_new_raw_private_key) private_key = nullptr;
  decltype(&EVP_PKEY_new_raw_public_key) public_key = nullptr;
  decltype(&EVP_PKEY_get_raw_public_key) raw_public_key = nullptr;
  decltype(&EVP_PKEY_free) key_free = nullptr;
  decltype(&EVP_PKEY_CTX_new) agreement_new = nullptr;
  decltype(&EVP_PKEY_CTX_free) agreement_free = nullptr;
  decltype(&EVP_PKEY_derive_init) derive_init = nullptr;
  decltype(&EVP_PKEY_derive_set_peer) derive_set_peer = nullptr;
  decltype(&EVP_PKEY_derive) derive = nullptr;
  decltype(&OpenSSL_version) version = nullptr;
};
Library library;

template <typename Function>
bool find(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

mob_status_t load_library() {
  void* handle = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return fail(MOB_ERR_SYSTEM,
                "encryption between hosts needs OpenSSL's libcrypto.so.3, which did not load (%s): "
                "%s",
                reason != nullptr ? reason : "no reason given", kInstall);
  }
  Library& all = library;
  if (!find(handle, "EVP_CIPHER_CTX_new", &all.context_new) ||
      !find(handle, "EVP_CIPHER_CTX_free", &all.context_free) ||
      !find(handle, "EVP_CIPHER_CTX_ctrl", &all.context_control) ||
      !find(handle, "EVP_CipherInit_ex", &all.init) ||
      !find(handle, "EVP_CipherUpdate", &all.update) ||
      !find(handle, "EVP_CipherFinal_ex", &all.final) ||
      !find(handle, "EVP_aes_256_gcm", &all.aes) ||
      !find(handle, "EVP_chacha20_poly1305", &all.chacha) ||
      !find(handle, "EVP_sha256", &all.sha256) || !find(handle, "HMAC", &all.hmac) ||
      !find(handle, "EVP_PKEY_new_raw_private_key", &all.private_key) ||
      !find(handle, "EVP_PKEY_new_raw_public_key", &all.public_key) ||
      !find(handle, "EVP_PKEY_get_raw_public_key", &all.raw_public_key) ||
      !find(handle, "EVP_PKEY_free", &all.key_free) ||
      !find(handle, "EVP_PKEY_CTX_new", &all.agreement_new) ||
      !find(handle, "EVP_PKEY_CTX_free", &all.agreement_free) ||
      !find(handle, "EVP_PKEY_derive_init", &all.derive_init) ||
      !find(handle, "EVP_PKEY_derive_set_peer", &all.derive_set_peer) ||
      !find(handle, "EVP_PKEY_derive", &all.derive) ||
      !find(handle, "OpenSSL_version", &all.version)) {
    return fail(MOB_ERR_SYSTEM, "libcrypto.so.3 is not OpenSSL 3: %s; %s", dlerror(), kInstall);
  }
  return MOB_OK;
}

mob_status_t refused(const char* what) {
  return fail(MOB_ERR_SYSTEM, "%s refused %s (is it restricted to algorithms without it?)",
              library_text().c_str(), what);
}

const EVP_CIPHER* cipher_of(Cipher cipher) {
  return cipher == Cipher::kAes256Gcm ? library.aes() : library.chacha();
}

}  // namespace

const char* name_of(Cipher cipher) {
  return cipher == Cipher::kAes256Gcm ? "AES-256-GCM" : "ChaCha20-Poly1305";
}

Cipher preferred_cipher() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul")) return Cipher::kAes256Gcm;
#endif
  return Cipher::kChaCha20Poly1305;
}

Secret::~Secret() { explicit_bzero(bytes_.data(), bytes_.size()); }

mob_status_t load() {
  static std::mutex mutex;
  static bool done = false;
  const std::lock_guard lock(mutex);
  if (!done) {
    if (const mob_status_t status = load_library()) return status;
    done = true;
  }
  return MOB_OK;
}

std::string library_text() {
  // "OpenSSL 3.0.19 27 Jan 2026"
  const std::string_view text = library.version(OPENSSL_VERSION);
  const size_t name_end = text.find(' ');
  return std::string(text.substr(0, text.find(' ', name_end == text.npos ? 0 : name_end + 1)));
}

mob_status_t hmac(std::span<const unsigned char> key, std::span<const unsigned char> text,
                  std::array<unsigned char, 32>* code) {
  unsigned bytes = 0;
  if (library.hmac(library.sha256(), key.data(), static_cast<int>(key.size()), text.data(),
                   text.size(), code->data(), &bytes) == nullptr ||
      bytes != code->size()) {
    return refused("HMAC-SHA256");
  }
  return MOB_OK;
}

mob_status_t extract(std::span<const unsigned char> salt, std::span<const unsigned char> material,
                     Secret* secret) {
  std::array<unsigned char, 32> code;
  const mob_status_t status = hmac(salt, material, &code);
  std::memcpy(secret->data(), code.data(), code.size());
  explicit_bzero(code.data(), code.size());
  return status;
}

// One block of HKDF-Expand, which is all that 32 bytes need.
mob_status_t expand(const Secret& secret, std::span<const unsigned char> info, Secret* derived) {
  std::array<unsigned char, kMostInfoBytes + 1> text;
  if (info.size() > kMostInfoBytes) {
    return fail(MOB_ERR_ARGUMENT, "%zu bytes of information for a key; there is room for %zu",
                info.size(), kMostInfoBytes);
  }
  *std::ranges::copy(info, text.begin()).out = 1;
  return extract(secret.bytes(), {text.data(), info.size() + 1}, derived);
}

KeyPair::~KeyPair() {
  if (pair_ != nullptr) library.key_free(pair_);
}

mob_status_t KeyPair::make() {
  Secret random;
  if (getrandom(random.data(), Secret::size(), 0) != static_cast<ssize_t>(Secret::size())) {
    return base::fail_errno(MOB_ERR_SYSTEM, errno, "getrandom for a key");
  }
  return make_of(random);
}

mob_status_t KeyPair::make_of(const Secret& private_key) {
  pair_ = library.private_key(EVP_PKEY_X25519, nullptr, private_key.data(), Secret::size());
  size_t bytes = public_key_.size();
  if (pair_ == nullptr || library.raw_public_key(pair_, public_key_.data(), &bytes) != 1 ||
      bytes != public_key_.size()) {
    return refused("an X25519 key");
  }
  return MOB_OK;
}

mob_status_t KeyPair::agree(const PublicKey& other, Secret* shared) const {
  EVP_PKEY* theirs = library.public_key(EVP_PKEY_X25519, nullptr, other.data(), other.size());
  EVP_PKEY_CTX* agreement = library.agreement_new(pair_, nullptr);
  size_t bytes = Secret::size();
  // libcrypto refuses keys whose secret would be zero.
  const bool done =
      theirs != nullptr && agreement != nullptr && library.derive_init(agreement) == 1 &&
      library.derive_set_peer(agreement, theirs) == 1 &&
      library.derive(agreement, shared->data(), &bytes) == 1 && bytes == Secret::size();
  library.agreement_free(agreement);
  library.key_free(theirs);
  return done ? MOB_OK : fail(MOB_ERR_ARGUMENT, "the public key of a peer is not valid");
}

KeyedCipher::~KeyedCipher() {
  if (context_ != nullptr) library.context_free(context_);
}

bool KeyedCipher::begin(Cipher cipher, const Secret& secret, uint64_t number, bool encrypts,
                        std::span<const unsigned char> associated) {
  if (context_ == nullptr && (context_ = library.context_new()) == nullptr) return false;
  if (!has_key_for(number)) {
    has_key_ = false;
    epoch_ = number / kNumbersPerKey;
    unsigned char info[sizeof epoch_];
    std::memcpy(info, &epoch_, sizeof info);
    Secret key;
    if (expand(secret, info, &key) != MOB_OK ||
        library.init(context_, cipher_of(cipher), nullptr, key.data(), nullptr, encrypts ? 1 : 0) !=
            1) {
      return false;
    }
    has_key_ = true;
  }
  unsigned char iv[kIvBytes] = {};
  std::memcpy(iv + kIvBytes - sizeof number, &number, sizeof number);
  int count = 0;
  return library.init(context_, nullptr, nullptr, nullptr, iv, encrypts ? 1 : 0) == 1 &&
         library.update(context_, nullptr, &count, associated.data(),
                        static_cast<int>(associated.size())) == 1;
}

bool KeyedCipher::add(unsigned char* to, const void* from, size_t count) {
  const auto* bytes = static_cast<const unsigned char*>(from);
  while (count != 0) {
    const size_t now = std::min(count, kMostAtOnce);
    int done = 0;
    if (library.update(context_, to, &done, bytes, static_cast<int>(now)) != 1 ||
        static_cast<size_t>(done) != now) {
      return false;
    }
    to += now;
    bytes += now;
    count -= now;
  }
  return true;
}

bool KeyedCipher::end_sealing(unsigned char* tag) {
  int count = 0;
  unsigned char nothing[16];
  return library.final(context_, nothing, &count) == 1 &&
         library.context_control(context_, EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag) == 1;
}

bool KeyedCipher::end_opening(const unsigned char* tag) {
  int count = 0;
  unsigned char nothing[16];
  unsigned char expected[kTagBytes];
  std::memcpy(expected, tag, sizeof expected);
  return library.context_control(context_, EVP_CTRL_AEAD_SET_TAG, sizeof expected, expected) == 1 &&
         library.final(context_, nothing, &count) == 1;
}

bool Opener::open_message(uint64_t number, std::span<const unsigned char> associated,
                          const unsigned char* tag, std::span<unsigned char> message) {
  const uint64_t epoch = number / kNumbersPerKey;
  if (epoch + 1 < newest_epoch_ || epoch > newest_epoch_ + 1) return false;
  KeyedCipher& keyed = keyed_[epoch % 2];
  if (!keyed.begin(cipher_, secret_, number, false, associated) ||
      !keyed.add(message.data(), message.data(), message.size()) || !keyed.end_opening(tag)) {
    return false;
  }
  newest_epoch_ = std::max(newest_epoch_, epoch);
  return true;
}

}  // namespace mobius::transport::secure
