// SPDX-License-Identifier: BSD-3-Clause
#include "transport/ofi/channel.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace mobius::transport::ofi {
namespace {

using base::Security;
using secure::Cipher;
using secure::Secret;

// What a derived secret is for, and everything that both ends must agree on to have the same one.
struct KeyInfo {
  char purpose[16];  // padded with zeros
  uint64_t sender;
  uint64_t receiver;
  secure::PublicKey sender_key;
  secure::PublicKey receiver_key;
  uint8_t security;
  uint8_t cipher;
};

mob_status_t derive(const Secret& root, std::string_view purpose, const KeyInfo& common,
                    Secret* secret) {
  KeyInfo info = common;
  purpose.copy(info.purpose, sizeof info.purpose);
  std::array<unsigned char, 98> bytes;
  static_assert(sizeof bytes == 16 + 2 * 8 + 2 * 32 + 2);
  unsigned char* to = bytes.data();
  const auto append = [&to](const void* from, size_t count) {
    std::memcpy(to, from, count);
    to += count;
  };
  append(info.purpose, sizeof info.purpose);
  append(&info.sender, sizeof info.sender);
  append(&info.receiver, sizeof info.receiver);
  append(info.sender_key.data(), info.sender_key.size());
  append(info.receiver_key.data(), info.receiver_key.size());
  append(&info.security, 1);
  append(&info.cipher, 1);
  return secure::expand(root, bytes, secret);
}

}  // namespace

mob_status_t Keys::open(Security security, std::span<const unsigned char> job_secret) {
  security_ = security;
  own_.security = static_cast<uint8_t>(security);
  std::memcpy(code_key_.words, job_secret.data(), sizeof code_key_.words);
  if (!is_on()) return MOB_OK;
  if (const mob_status_t status = secure::load()) return status;
  job_bytes_ = std::min(job_secret.size(), Secret::size());
  std::memcpy(job_.data(), job_secret.data(), job_bytes_);
  // One key for one use: the codes get a key of their own.
  constexpr std::string_view kPurpose = "mobius codes";
  Secret codes;
  if (const mob_status_t status = secure::expand(
          job_, {reinterpret_cast<const unsigned char*>(kPurpose.data()), kPurpose.size()},
          &codes)) {
    return status;
  }
  std::memcpy(code_key_.words, codes.data(), sizeof code_key_.words);
  if (const mob_status_t status = pair_.make()) return status;
  own_.cipher = static_cast<uint8_t>(secure::preferred_cipher());
  own_.public_key = pair_.public_key();
  return MOB_OK;
}

mob_status_t Keys::check(const Protection& theirs, const std::string& where) const {
  if (theirs.security == own_.security) return MOB_OK;
  return base::fail(MOB_ERR_SETTING,
                    "MOBIUS_SECURITY is %s in this process and %s in %s: set it the same for all "
                    "processes of the job (if it is unset, it is off where OpenSSL 3 is missing)",
                    base::name_of(security_), base::name_of(static_cast<Security>(theirs.security)),
                    where.c_str());
}

mob_status_t Keys::make_channel(const Protection& theirs, uint64_t own_name, uint64_t peer_name,
                                const std::string& where, std::unique_ptr<Channel>* channel) const {
  if (const mob_status_t status = check(theirs, where)) return status;
  if (!is_on()) return MOB_OK;
  Secret shared, root;
  if (const mob_status_t status = pair_.agree(theirs.public_key, &shared)) return status;
  // Whoever does not know the job's secret, or neither private key, does not know the root.
  if (const mob_status_t status =
          secure::extract({job_.data(), job_bytes_}, shared.bytes(), &root)) {
    return status;
  }
  auto made = std::make_unique<Channel>();
  constexpr auto kAes = static_cast<uint8_t>(Cipher::kAes256Gcm);
  const bool both_have_aes = own_.cipher == kAes && theirs.cipher == kAes;
  made->cipher = both_have_aes ? Cipher::kAes256Gcm : Cipher::kChaCha20Poly1305;
  KeyInfo to{{},
             own_name,
             peer_name,
             own_.public_key,
             theirs.public_key,
             own_.security,
             static_cast<uint8_t>(made->cipher)};
  KeyInfo from = to;
  std::swap(from.sender, from.receiver);
  std::swap(from.sender_key, from.receiver_key);
  Secret sealing, opening;
  mob_status_t status = derive(root, "mobius messages", to, &sealing);
  if (status == MOB_OK) status = derive(root, "mobius messages", from, &opening);
  if (status == MOB_OK) status = derive(root, "mobius greeting", to, &made->greeting_to);
  if (status == MOB_OK) status = derive(root, "mobius greeting", from, &made->greeting_from);
  if (status != MOB_OK) return status;
  made->sealer.open(made->cipher, sealing);
  made->opener.open(made->cipher, opening);
  *channel = std::move(made);
  return MOB_OK;
}

mob_status_t Channel::prove(const Secret& secret, Greeting* greeting) const {
  const uint64_t words[] = {greeting->card, greeting->says};
  std::array<unsigned char, 32> code;
  const mob_status_t status = secure::hmac(
      secret.bytes(), {reinterpret_cast<const unsigned char*>(words), sizeof words}, &code);
  std::memcpy(greeting->proof, code.data(), sizeof greeting->proof);
  return status;
}

bool Channel::is_proven(const Greeting& greeting) const {
  Greeting expected = greeting;
  if (prove(greeting_from, &expected) != MOB_OK) return false;
  // Takes the same time wherever the first difference is.
  return ((expected.proof[0] ^ greeting.proof[0]) | (expected.proof[1] ^ greeting.proof[1])) == 0;
}

}  // namespace mobius::transport::ofi
