// SPDX-License-Identifier: BSD-3-Clause
#include "fake_fabric.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/status.h"

namespace mobius::transport::ofi {
namespace {

FakeFabric* the_fabric = nullptr;

}  // namespace

FakeFabric::FakeFabric() { the_fabric = this; }
FakeFabric::~FakeFabric() { the_fabric = nullptr; }
FakeFabric& FakeFabric::current() { return *the_fabric; }

void FakeFabric::release_all() {
  held_.clear();
  slow_.clear();
  refusals_.clear();
}

void FakeFabric::take_random_time(uint64_t seed) {
  is_random_ = true;
  random_.seed(seed);
}

bool FakeFabric::is_late() { return is_random_ && random_() % 2 == 0; }

FakeFabric::Node& FakeFabric::attach(Id id, const Options& options, const Callbacks& callbacks) {
  auto node = std::make_unique<Node>();
  node->id = id;
  node->options = options;
  node->callbacks = callbacks;
  node->description.notes_writes = true;
  node->description.ahead_bytes = size_t{4} << 20;
  return *(nodes_[id] = node.release());
}

void FakeFabric::detach(Id id) {
  delete nodes_[id];
  nodes_.erase(id);
}

size_t FakeFabric::on_the_way(Id from, Id to) const {
  const auto found = ways_.find({from, to});
  return found == ways_.end() ? 0 : found->second.size();
}

size_t FakeFabric::transfers_of(Id of) const { return nodes_.at(of)->transfers.size(); }
size_t FakeFabric::registrations_of(Id of) const { return nodes_.at(of)->memory.size(); }

void FakeFabric::cut(Id of, Id peer, const std::string& why) {
  Node& node = *nodes_.at(of);
  const auto found = std::ranges::find(node.peers, peer);
  if (found == node.peers.end()) return;
  fail_peer(node, static_cast<PeerId>(found - node.peers.begin()), why);
}

void FakeFabric::fail_peer(Node& node, PeerId peer, const std::string& why) {
  if (!node.lost.emplace(peer, why).second) return;
  node.to_tell.push_back(peer);
  std::erase_if(node.transfers, [&](const Transfer& each) {
    if (each.peer != peer) return false;
    node.ended.push_back({each.operation, MOB_ERR_PEER, why});
    return true;
  });
  for (Item& item : ways_[{node.id, node.peers[peer]}]) {
    if (item.is_write) node.ended.push_back({item.write.operation, MOB_ERR_PEER, why});
  }
  ways_[{node.id, node.peers[peer]}].clear();
}

// kDone: the call may go on.
Posted FakeFabric::check(Node& from, PeerId peer) {
  if (const auto lost = from.lost.find(peer); lost != from.lost.end()) {
    base::fail(MOB_ERR_PEER, "%s", lost->second.c_str());
    return Posted::kFailed;
  }
  size_t& refusals = refusals_[from.id];
  if (refusals != 0) {
    if (refusals != kAlways) --refusals;
    return Posted::kAgain;
  }
  if (is_late() && is_late()) return Posted::kAgain;
  ++activity_;
  return Posted::kDone;
}

Posted FakeFabric::send(Node& from, PeerId peer, std::span<const Piece> pieces, bool in_place,
                        uint64_t operation) {
  if (const Posted posted = check(from, peer); posted != Posted::kDone) return posted;
  Item item;
  Message message{from.id, from.peers[peer], {}};
  for (const Piece& piece : pieces) {
    const auto* const bytes = static_cast<const unsigned char*>(piece.bytes);
    message.bytes.insert(message.bytes.end(), bytes, bytes + piece.count);
    if (in_place && &piece == &pieces.back()) {
      item.rest = bytes;
      item.rest_bytes = piece.count;
    } else {
      item.copied.insert(item.copied.end(), bytes, bytes + piece.count);
    }
  }
  EXPECT_LE(message.bytes.size(), from.options.message_bytes);
  EXPECT_EQ(operation, 0u) << "no user of the endpoint asks for the end of a message";
  sent_.push_back(std::move(message));
  ways_[{from.id, from.peers[peer]}].push_back(std::move(item));
  return Posted::kDone;
}

Posted FakeFabric::transfer(Node& from, const Transfer& transfer) {
  if (const Posted posted = check(from, transfer.peer); posted != Posted::kDone) return posted;
  from.transfers.push_back(transfer);
  return Posted::kDone;
}

Posted FakeFabric::write_ahead(Node& from, const Transfer& transfer, uint64_t note) {
  if (const Posted posted = check(from, transfer.peer); posted != Posted::kDone) return posted;
  Item item;
  item.is_write = true;
  item.write = transfer;
  item.note = note;
  ways_[{from.id, from.peers[transfer.peer]}].push_back(std::move(item));
  ++writes_ahead_;
  return Posted::kDone;
}

void* FakeFabric::find_memory(Node& owner, uint64_t remote, uint64_t key, size_t bytes) {
  const auto found = owner.memory.find(key);
  auto* const at = reinterpret_cast<unsigned char*>(remote);
  if (found != owner.memory.end() && at >= found->second.start &&
      at + bytes <= found->second.start + found->second.bytes) {
    return at;
  }
  ++wrong_accesses_;
  return nullptr;
}

// Hands over one message, or carries out one write ahead of messages.
void FakeFabric::take(Node& to, Id from, const Item& item) {
  if (!item.is_write) {
    const size_t bytes = item.copied.size() + item.rest_bytes;
    const FakeBuffer message(
        static_cast<unsigned char*>(std::aligned_alloc(16, (bytes + 15) / 16 * 16)));
    std::ranges::copy(item.copied, message.get());
    if (item.rest_bytes != 0) {
      std::memcpy(message.get() + item.copied.size(), item.rest, item.rest_bytes);
    }
    const auto sender = std::ranges::find(to.peers, from);
    const PeerId peer =
        sender == to.peers.end() ? kNobody : static_cast<PeerId>(sender - to.peers.begin());
    return to.callbacks.received(to.callbacks.context, peer, message.get(), bytes);
  }
  const Transfer& write = item.write;
  void* const at = find_memory(to, write.remote, write.key, write.bytes);
  if (at != nullptr) std::memcpy(at, write.local, write.bytes);
  nodes_.at(from)->ended.push_back({write.operation, MOB_OK, ""});
  if (item.note != 0) to.callbacks.noted(to.callbacks.context, item.note);
}

bool FakeFabric::deliver(Node& to) {
  bool any = false;
  std::vector<Id> senders;
  for (const auto& [id, node] : nodes_) senders.push_back(id);
  for (const Id from : senders) {
    std::deque<Item>& way = ways_[{from, to.id}];
    // What comes meanwhile waits for the next poll.
    for (size_t left = way.size(); left != 0 && !way.empty() && !held_.contains({from, to.id});
         --left) {
      if (is_late()) break;
      const Item item = std::move(way.front());
      way.pop_front();
      take(to, from, item);
      any = true;
    }
  }
  return any;
}

// Carries out transfers that other endpoints have posted for this one, in a random order if the
// network is random.
bool FakeFabric::carry_out(Node& target) {
  bool any = false;
  for (const auto& [id, from] : nodes_) {
    if (slow_.contains(id)) continue;
    std::vector<size_t> due;
    for (size_t i = 0; i < from->transfers.size(); ++i) {
      if (from->peers[from->transfers[i].peer] == target.id && !is_late()) due.push_back(i);
    }
    if (is_random_) std::ranges::shuffle(due, random_);
    for (const size_t i : due) {
      const Transfer& each = from->transfers[i];
      void* const at = find_memory(target, each.remote, each.key, each.bytes);
      if (at != nullptr) {
        std::memcpy(each.reads ? each.local : at, each.reads ? at : each.local, each.bytes);
      }
      from->ended.push_back({each.operation, at != nullptr ? MOB_OK : MOB_ERR_PEER, "bad key"});
      any = true;
    }
    std::ranges::sort(due, std::greater());
    for (const size_t i : due) {
      from->transfers.erase(from->transfers.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  return any;
}

bool FakeFabric::poll(Node& node) {
  bool any = carry_out(node);
  while (!node.ended.empty()) {
    const Node::Ended each = std::move(node.ended.front());
    node.ended.pop_front();
    any = true;
    const char* const text = each.status == MOB_OK ? nullptr : each.text.c_str();
    if (each.operation == 0) continue;
    node.callbacks.ended(node.callbacks.context, each.operation, each.status, text);
  }
  while (!node.to_tell.empty()) {
    const PeerId peer = node.to_tell.front();
    node.to_tell.pop_front();
    any = true;
    node.callbacks.peer_failed(node.callbacks.context, peer, node.lost.at(peer).c_str());
  }
  any |= deliver(node);
  if (any) ++activity_;
  return any;
}

}  // namespace mobius::transport::ofi
