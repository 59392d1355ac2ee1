// SPDX-License-Identifier: BSD-3-Clause

// How endpoints meet: a sender first asks its peer, and sends messages when the peer has answered.
//
// If both ends begin at once, a provider makes one connection out of two, and libfabric's TCP
// providers do not always keep the right one (docs/decisions/0021-peers-meet-first.md). Then one
// end has a connection that the other end does not read. Data sent on it is lost without an error,
// or with an error that says that a living peer cannot be reached. Only questions can be lost this
// way. They are repeated, and after an answer both ends have the same connection.

#include <algorithm>
#include <cstring>

#include "os/sync/futex.h"
#include "transport/ofi/state.h"

namespace mobius::transport::ofi {
namespace {

// Time after which a question counts as lost. It is short compared with any limit that a caller
// sets, and long compared with a round trip. It grows with each question, for peers that have no
// processor.
constexpr uint64_t kFirstPauseNs = 20'000'000;
constexpr uint64_t kLongestPauseNs = 1'000'000'000;

// A question that has no connection yet is repeated after a fraction of the time that this has
// taken: a provider may make a new connection for each try if the peer refuses them.
constexpr uint64_t kTriesPerTime = 4;
constexpr uint64_t kShortestTryNs = 10'000;

}  // namespace

// Under `issue`.
Posted Endpoint::State::meet(PeerId id, const char* call) {
  Peer& peer = peers[id];
  int64_t result = -FI_EAGAIN;
  const uint64_t now = os::now_ns();
  if (now >= peer.asks_next_ns) {
    result = greet(id, Greeting::kAsks);
    if (result == -FI_EAGAIN) {
      if (peer.tries_since_ns == 0) peer.tries_since_ns = now;
      peer.asks_next_ns = now + std::clamp((now - peer.tries_since_ns) / kTriesPerTime,
                                           kShortestTryNs, kFirstPauseNs);
    }
    if (result == 0) result = -FI_EAGAIN;  // continues when the answer comes
  }
  return posted(result, id, call);
}

// Returns 0 or an error of libfabric; under `issue`.
int64_t Endpoint::State::greet(PeerId id, uint64_t says) {
  Peer& peer = peers[id];
  Greeting greeting{options.card, says, {}};
  if (peer.channel != nullptr &&
      peer.channel->prove(peer.channel->greeting_to, &greeting) != MOB_OK) {
    return -FI_EAGAIN;
  }
  const MessageHeader header = make_greeting_header(keys.code_key(), name, peer.name, greeting);
  const Scarce scarce = is_short(sizeof header + sizeof greeting) ? kShort : kBuffers;
  Record* record = take_record(Kind::kGreeting, scarce, id, 0);
  if (record == nullptr) return -FI_EAGAIN;
  const Piece piece = {&greeting, sizeof greeting};
  const int64_t result = post(*record, header, {&piece, 1}, false);
  if (result != 0) {
    give_back(record);
  } else if ((says & Greeting::kAsks) != 0) {
    peer.asks_pause_ns = std::clamp(2 * peer.asks_pause_ns, kFirstPauseNs, kLongestPauseNs);
    peer.asks_next_ns = os::now_ns() + peer.asks_pause_ns;
    peer.tries_since_ns = 0;
  }
  return result;
}

std::optional<PeerId> Endpoint::State::find_peer(uint64_t wanted) {
  const std::lock_guard lock(issue);
  const auto found = peers_by_name.find(wanted);
  if (found == peers_by_name.end()) return std::nullopt;
  return found->second;
}

Senders::Known Endpoint::State::find_sender(uint64_t wanted) {
  const std::optional<PeerId> id = find_peer(wanted);
  if (!id) return {};
  const std::lock_guard lock(issue);
  Channel* const channel = peers[*id].channel.get();
  return {*id, channel != nullptr ? &channel->opener : nullptr};
}

void Endpoint::State::greeted(const Opened& opened) {
  Greeting greeting;
  std::memcpy(&greeting, opened.message.data(), sizeof greeting);
  std::optional<PeerId> id = find_peer(opened.sender);
  if (!id && callbacks.greeted != nullptr) {
    callbacks.greeted(callbacks.context, greeting.card);
    id = find_peer(opened.sender);
  }
  if (!id) return;  // it will ask again
  const std::lock_guard lock(issue);
  Peer& peer = peers[*id];
  if (peer.failed) return;
  if (peer.channel != nullptr && !peer.channel->is_proven(greeting)) {
    return drop("another process of the job made it in the name of its sender");
  }
  if ((greeting.says & Greeting::kAnswers) != 0) {
    peer.met = true;
    peer.reachability.accepted();
  }
  if ((greeting.says & Greeting::kAsks) != 0) answer(*id);
}

// The answer also asks, because a process that receives mostly sends too. If there is no room, it
// is tried again later. Under `issue`.
void Endpoint::State::answer(PeerId id) {
  Peer& peer = peers[id];
  uint64_t says = Greeting::kAnswers;
  if (!peer.met) says |= Greeting::kAsks;
  const bool waits = !peer.failed && greet(id, says) == -FI_EAGAIN;
  if (waits == peer.owed) return;
  peer.owed = waits;
  owed = waits ? owed + 1 : owed - 1;
}

void Endpoint::State::answer_owed() {
  const std::lock_guard lock(issue);
  for (PeerId id = 0; id < peers.size(); ++id) {
    if (peers[id].owed) answer(id);
  }
}

}  // namespace mobius::transport::ofi
