// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What seals the messages between this endpoint and one peer: made of the key pairs of both and the
// secret of the job when the peer is added. All of it is fresh for each pair of endpoints, because
// every endpoint has a new key pair and a new name.

#include <memory>
#include <span>
#include <string>

#include "base/settings.h"
#include "transport/ofi/wire.h"
#include "transport/secure/secure.h"

namespace mobius::transport::ofi {

// What an endpoint tells its peers about its protection, as part of its address.
struct Protection {
  uint8_t security = static_cast<uint8_t>(base::Security::kOff);
  uint8_t cipher = 0;  // secure::Cipher that it prefers
  secure::PublicKey public_key{};
};

struct Channel {
  secure::Cipher cipher = secure::Cipher::kAes256Gcm;
  secure::Sealer sealer;  // guarded by Endpoint::State::issue
  secure::Opener opener;  // guarded by Endpoint::State::polling
  secure::Secret greeting_to, greeting_from;

  // Proves that a greeting comes from one of the two, and not from another process of the job.
  mob_status_t prove(const secure::Secret& secret, Greeting* greeting) const;
  bool is_proven(const Greeting& greeting) const;
};

// Keys of this endpoint, and all that is derived from the job's secret.
class Keys {
 public:
  mob_status_t open(base::Security security, std::span<const unsigned char> job_secret);
  bool is_on() const { return security_ != base::Security::kOff; }
  const Protection& own() const { return own_; }
  // The key of the codes of greetings and of messages that are not sealed.
  const SipKey& code_key() const { return code_key_; }
  // MOB_ERR_SETTING if the peer has another setting; `where` names it in texts.
  mob_status_t check(const Protection& theirs, const std::string& where) const;
  // The same, and makes the channel to the peer; null without sealing.
  mob_status_t make_channel(const Protection& theirs, uint64_t own_name, uint64_t peer_name,
                            const std::string& where, std::unique_ptr<Channel>* channel) const;

 private:
  base::Security security_ = base::Security::kOff;
  secure::Secret job_;  // its first bytes are the job's secret
  size_t job_bytes_ = 0;
  SipKey code_key_;
  secure::KeyPair pair_;
  Protection own_;
};

}  // namespace mobius::transport::ofi
