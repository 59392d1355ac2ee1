// SPDX-License-Identifier: BSD-3-Clause
#include "job/port.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/status.h"
#include "job/control.h"
#include "os/sync/futex.h"

namespace mobius::job {
namespace {

using base::fail;

// Processes that have connected and not proved to know the key: so many, and so long.
constexpr size_t kMostStrangers = 64;
constexpr uint64_t kStrangerNs = 2'000'000'000;
// Others that wait to be accepted.
constexpr size_t kMostVisitors = 64;
constexpr int kWorkMs = 1;

socklen_t address_of(const Secret& key, sockaddr_un* address) {
  return os::abstract_address("mobius-port-" + to_hex(derive(key, "port")), address);
}

}  // namespace

mob_status_t Port::open(const char* call, std::string_view name, const PortReach& reach) {
  is_near_ = reach.is_near;
  mob_status_t status = make_secret(&key_);
  if (status == MOB_OK) status = nonces_.open();
  sockaddr_un address{};
  bool taken = false;
  if (status == MOB_OK && is_near_) {
    status = listener_.listen(address, address_of(key_, &address), &taken);
  }
  if (status == MOB_OK && reach.is_far) status = far_.open(reach.interface);
  if (status == MOB_OK && !name.empty()) {
    const socklen_t length = os::abstract_address(
        "mobius-name-" + std::to_string(geteuid()) + "-" + std::string(name), &address);
    status = name_listener_.listen(address, length, &taken);
    if (status == MOB_OK && taken) {
      status = fail(MOB_ERR_STATE, "%s: the name \"%.*s\" belongs to another port on this host",
                    call, static_cast<int>(name.size()), name.data());
    }
  }
  return status;
}

void Port::take_in(os::UnixListener& listener, bool tells_key) {
  for (size_t i = 0; i < kMostStrangers; ++i) {
    Unknown unknown;
    bool is_empty = false;
    if (listener.accept(&unknown.socket, &unknown.pid, &is_empty) != MOB_OK || is_empty) return;
    if (!unknown.socket.is_open()) {
      log_.report(unknown.pid, "belongs to another user");
      continue;
    }
    if (unknown_.size() >= kMostStrangers) unknown_.pop_front();
    unknown.nonce = nonces_.next();
    unknown.end_ns = os::now_ns() + kStrangerNs;
    Message message;
    if (tells_key) {
      message.type = MessageType::kKey;
      message.nonce = key_;
      message.hosts = is_near_ ? 1 : 2;
      const std::string far = text().far_text(sizeof message.reason - 1);
      std::snprintf(message.reason, sizeof message.reason, "%s", far.c_str());
      if (unknown.socket.send(&message, sizeof message) != MOB_OK || !is_near_) continue;
    }
    message.type = MessageType::kChallenge;
    message.nonce = unknown.nonce;
    if (unknown.socket.send(&message, sizeof message) == MOB_OK) {
      unknown_.push_back(std::move(unknown));
    }
  }
}

// Whether the process has said who it is, or is dropped.
bool Port::hear(Unknown& unknown) {
  pollfd there{unknown.socket.descriptor(), POLLIN, 0};
  if (poll(&there, 1, 0) <= 0) {
    if (os::now_ns() < unknown.end_ns) return false;
    log_.report(unknown.pid, "said nothing");
    return true;
  }
  Message hello;
  int unasked = -1;
  const ssize_t got =
      os::receive_message(unknown.socket.descriptor(), &hello, sizeof hello, &unasked);
  if (unasked >= 0) close(unasked);
  if (got <= 0) return true;  // it has changed its mind, or died
  const bool is_known = got == static_cast<ssize_t>(sizeof hello) &&
                        hello.magic == kProtocolMagic && hello.version == kProtocolVersion &&
                        is_proven(hello, key_, unknown.nonce) && hello.size >= 1;
  Visitor visitor{std::move(unknown.socket), hello.nonce, hello.size, unknown.pid,
                  unknown.pid == hello.pid};
  if (is_known && hello.type == MessageType::kConnect) {
    if (visitors_.size() < kMostVisitors) visitors_.push_back(std::move(visitor));
  } else if (is_known && hello.type == MessageType::kMember) {
    const mob_rank_t first = visitor.count;
    if (members_.size() < kMostLocalPeers) {
      members_.push_back({std::move(visitor), hello.rank, first});
    }
  } else {
    log_.report(unknown.pid, "does not know the key of the port");
  }
  return true;
}

// One step of a wait: looks at the sockets, for a millisecond if nothing comes. `also`: an event
// that ends the wait, the end of another connection; its descriptor may be -1.
mob_status_t Port::go_on(const char* call, const PortWait& wait, pollfd also) {
  std::vector<pollfd> watched{
      {listener_.descriptor(), POLLIN, 0}, {name_listener_.descriptor(), POLLIN, 0}, also};
  for (const Unknown& each : unknown_) watched.push_back({each.socket.descriptor(), POLLIN, 0});
  far_.add_to(&watched);
  if (poll(watched.data(), watched.size(), kWorkMs) == 0) {
    wait.work();
    if (const mob_status_t status = wait.look()) return status;
    if (os::now_ns() >= wait.end_ns) {
      return fail(MOB_ERR_PEER, "%s: nobody has connected in the time that was given", call);
    }
  }
  if (watched[2].revents != 0) {
    return fail(MOB_ERR_PEER, "%s: the process that connected has given up, or died", call);
  }
  if (watched[0].revents != 0) take_in(listener_, false);
  if (watched[1].revents != 0) take_in(name_listener_, true);
  std::erase_if(unknown_, [&](Unknown& each) { return hear(each); });
  far_.go_on(key_, meeting_, nonces_, log_, &far_visitors_, &far_members_);
  return MOB_OK;
}

mob_status_t Port::accept(const char* call, const PortWait& wait, Visitor* visitor) {
  while (visitors_.empty() && far_visitors_.empty()) {
    if (const mob_status_t status = go_on(call, wait, {-1, 0, 0})) return status;
  }
  if (visitors_.empty()) {
    visitor->is_far = true;
    visitor->far = std::move(far_visitors_.front());
    visitor->count = visitor->far.count;
    far_visitors_.pop_front();
    return MOB_OK;
  }
  *visitor = std::move(visitors_.front());
  visitors_.pop_front();
  return MOB_OK;
}

mob_status_t Port::admit(const char* call, const PortWait& wait, Visitor& visitor, int segment,
                         mob_rank_t first, mob_rank_t others,
                         std::vector<os::UnixSocket>* callers) {
  const auto answer = [&](Visitor& to) {
    Message accepted;
    accepted.type = MessageType::kAccepted;
    accepted.rank = first;
    accepted.size = others;
    accepted.pid = to.pid;
    seal(accepted, key_, to.nonce);
    return to.socket.send(&accepted, sizeof accepted, segment);
  };
  if (answer(visitor) != MOB_OK) {
    return fail(MOB_ERR_PEER, "%s: the process that connected has given up, or died", call);
  }
  const mob_rank_t count = visitor.count;
  callers->push_back(std::move(visitor.socket));
  std::vector<bool> has_come(static_cast<size_t>(count));
  for (mob_rank_t missing = count - 1; missing > 0;) {
    if (members_.empty()) {
      const mob_status_t status = go_on(call, wait, {callers->front().descriptor(), POLLIN, 0});
      if (status != MOB_OK) return status;
      continue;
    }
    Member member = std::move(members_.front());
    members_.pop_front();
    // Others are late, of a connection that was given up.
    if (member.first != first || member.index < 0 || member.index >= count ||
        has_come[static_cast<size_t>(member.index)]) {
      continue;
    }
    if (answer(member.visitor) != MOB_OK) continue;
    has_come[static_cast<size_t>(member.index)] = true;
    callers->push_back(std::move(member.visitor.socket));
    --missing;
  }
  return MOB_OK;
}

void Port::refuse(const Secret& key, Visitor& visitor, const char* reason) {
  if (visitor.is_far) return refuse_far(visitor.far, key, reason);
  Message refused;
  refused.type = MessageType::kRefused;
  std::snprintf(refused.reason, sizeof refused.reason, "%s", reason);
  seal(refused, key, visitor.nonce);
  static_cast<void>(visitor.socket.send(&refused, sizeof refused));
}

mob_status_t Port::hold_meeting(const char* call, const PortWait& wait, FarVisitor& visitor,
                                const Secret& meeting, mob_rank_t own, mob_rank_t first,
                                mob_rank_t size, std::vector<Channel>* channels) {
  channels->resize(static_cast<size_t>(size));
  const auto channel = [&](mob_rank_t rank) { return &(*channels)[static_cast<size_t>(rank)]; };
  const auto has_come = [&](mob_rank_t rank) { return rank == own || channel(rank)->is_open(); };
  struct Held {
    Port& port;
    ~Held() {
      port.meeting_ = nullptr;
      port.far_members_.clear();
    }
  } held{*this};
  meeting_ = &meeting;
  const mob_rank_t caller = first + visitor.rank;
  if (!accept_far(visitor, key_, own, first, channel(caller))) {
    return fail(MOB_ERR_PEER, "%s: the process that connected has given up, or died", call);
  }
  for (mob_rank_t missing = size - 2; missing > 0;) {
    if (far_members_.empty()) {
      // It may send its part of the directory already.
      const pollfd end{channel(caller)->descriptor(), POLLRDHUP, 0};
      const mob_status_t status = go_on(call, wait, end);
      if (status != MOB_OK) return status;
      continue;
    }
    FarVisitor member = std::move(far_members_.front());
    far_members_.pop_front();
    if (member.count != size || has_come(member.rank)) continue;
    if (accept_far(member, meeting, own, size, channel(member.rank))) --missing;
  }
  return MOB_OK;
}

}  // namespace mobius::job
