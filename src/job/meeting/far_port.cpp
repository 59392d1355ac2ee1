// SPDX-License-Identifier: BSD-3-Clause
#include "job/meeting/far_port.h"

#include <cstdio>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "job/layout.h"
#include "os/sync/futex.h"

namespace mobius::job {
namespace {

// Processes that have connected and not proved to know a key: so many, and so long.
constexpr size_t kMostFarStrangers = 64;
constexpr uint64_t kFarStrangerNs = 5'000'000'000;

bool send_whole(int descriptor, const Message& message) {
  // A fresh connection has room for it.
  return os::send_some(descriptor, &message, sizeof message) ==
         static_cast<ssize_t>(sizeof message);
}

bool is_of_version(const Message& message) {
  return message.magic == kProtocolMagic && message.version == kProtocolVersion;
}

}  // namespace

Secret meeting_key(const Secret& port, const Nonce& challenge, const Nonce& nonce) {
  return prove(derive(port, "meeting"), challenge, nonce);
}

mob_status_t FarListener::open(const std::string& interface) {
  if (const mob_status_t status = listener_.listen()) return status;
  addresses_ = own_addresses(listener_.port(), listener_.has_v6(), interface);
  return MOB_OK;
}

void FarListener::add_to(std::vector<pollfd>* watched) const {
  if (!is_open()) return;
  watched->push_back({listener_.descriptor(), POLLIN, 0});
  for (const Unknown& each : unknown_) watched->push_back({each.socket.get(), POLLIN, 0});
}

void FarListener::go_on(const Secret& key, const Secret* meeting, Nonces& nonces, RejectionLog& log,
                        std::deque<FarVisitor>* visitors, std::deque<FarVisitor>* members) {
  if (!is_open()) return;
  for (size_t i = 0; i < kMostFarStrangers; ++i) {
    Unknown unknown;
    sockaddr_storage from{};
    unknown.socket = listener_.accept(&from);
    if (!unknown.socket.is_held()) break;
    unknown.from = "a process at " + os::endpoint_text(from);
    unknown.challenge = nonces.next();
    unknown.end_ns = os::now_ns() + kFarStrangerNs;
    Message challenge;
    challenge.type = MessageType::kChallenge;
    challenge.nonce = unknown.challenge;
    if (!send_whole(unknown.socket.get(), challenge)) continue;
    if (unknown_.size() >= kMostFarStrangers) unknown_.pop_front();
    unknown_.push_back(std::move(unknown));
  }
  std::erase_if(unknown_,
                [&](Unknown& each) { return hear(each, key, meeting, log, visitors, members); });
}

// Whether the process has said who it is, or is dropped.
bool FarListener::hear(Unknown& unknown, const Secret& key, const Secret* meeting,
                       RejectionLog& log, std::deque<FarVisitor>* visitors,
                       std::deque<FarVisitor>* members) {
  auto* const to = reinterpret_cast<unsigned char*>(&unknown.hello) + unknown.got;
  const ssize_t now = os::receive_some(unknown.socket.get(), to, sizeof(Message) - unknown.got);
  if (now < 0) {  // it has changed its mind, or died
    if (unknown.got > 0) log.report(unknown.from, "does not know the key of the port");
    return true;
  }
  unknown.got += static_cast<size_t>(now);
  if (unknown.got < sizeof(Message)) {
    if (os::now_ns() < unknown.end_ns) return false;
    log.report(unknown.from, "said nothing");
    return true;
  }
  const Message& hello = unknown.hello;
  FarVisitor known{std::move(unknown.socket), unknown.challenge, hello.nonce, hello.rank,
                   hello.size};
  const auto proves = [&](const Secret& secret, MessageType type) {
    return is_of_version(hello) && hello.type == type &&
           is_proven(hello, secret, known.challenge) && hello.rank >= 0 && hello.size >= 1 &&
           hello.size <= kMostRanks && hello.rank < hello.size;
  };
  if (proves(key, MessageType::kConnect)) {
    visitors->push_back(std::move(known));
  } else if (meeting != nullptr && proves(*meeting, MessageType::kMember)) {
    members->push_back(std::move(known));
  } else {
    log.report(unknown.from, "does not know the key of the port");
  }
  return true;
}

bool accept_far(FarVisitor& visitor, const Secret& key, mob_rank_t rank, mob_rank_t size,
                Channel* channel) {
  Message accepted;
  accepted.type = MessageType::kAccepted;
  accepted.rank = rank;
  accepted.size = size;
  seal(accepted, key, visitor.nonce);
  if (!send_whole(visitor.socket.get(), accepted)) return false;
  *channel =
      Channel(std::move(visitor.socket), channel_key(key, visitor.challenge, visitor.nonce), true);
  return true;
}

void refuse_far(FarVisitor& visitor, const Secret& key, const char* reason) {
  Message refused;
  refused.type = MessageType::kRefused;
  std::snprintf(refused.reason, sizeof refused.reason, "%s", reason);
  seal(refused, key, visitor.nonce);
  static_cast<void>(send_whole(visitor.socket.get(), refused));
}

}  // namespace mobius::job
