// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A network inside one process, in place of libfabric: the program that links fake_endpoint.cpp
// gets its Endpoint. A test decides when messages and transfers arrive, when an endpoint has no
// room, and which connection breaks. It promises what endpoint.h promises, and no more: transfers
// take any order, and their bytes are read or written as late as the contract allows.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/ofi/endpoint.h"

namespace mobius::transport::ofi {

// One at a time. Its endpoints are used by one thread, and named by their Options::card.
class FakeFabric {
 public:
  using Id = uint64_t;
  static constexpr size_t kAlways = SIZE_MAX;

  FakeFabric();
  ~FakeFabric();
  FakeFabric(const FakeFabric&) = delete;
  FakeFabric& operator=(const FakeFabric&) = delete;
  static FakeFabric& current();

  // Messages (and writes ahead of them) on the way from one endpoint to another stay there.
  void hold(Id from, Id to) { held_.insert({from, to}); }
  void release(Id from, Id to) { held_.erase({from, to}); }
  // Reads and writes that an endpoint has posted are not carried out.
  void hold_transfers(Id of) { slow_.insert(of); }
  void release_transfers(Id of) { slow_.erase(of); }
  void release_all();
  // An endpoint answers kAgain to its next `times` calls that send or transfer.
  void refuse(Id of, size_t times) { refusals_[of] = times; }
  // The two endpoints lose each other: `of` is told at its next poll.
  void cut(Id of, Id peer, const std::string& why);
  // From now on everything takes a random time, and calls are refused at random.
  void take_random_time(uint64_t seed);

  struct Message {
    Id from;
    Id to;
    std::vector<unsigned char> bytes;
  };
  // All messages ever, in the order in which they were sent.
  const std::vector<Message>& sent() const { return sent_; }
  size_t on_the_way(Id from, Id to) const;
  // Transfers that an endpoint has posted and that have not ended.
  size_t transfers_of(Id of) const;
  // Writes ahead of messages, ever.
  size_t writes_ahead() const { return writes_ahead_; }
  // Changes whenever a call is accepted, or something arrives or ends.
  uint64_t activity() const { return activity_; }
  // Memory that an endpoint lets others access, and accesses to memory that it does not.
  size_t registrations_of(Id of) const;
  size_t wrong_accesses() const { return wrong_accesses_; }

  // The endpoints' side.
  struct Node;
  Node& attach(Id id, const Options& options, const Callbacks& callbacks);
  void detach(Id id);
  Posted send(Node& from, PeerId peer, std::span<const Piece> pieces, bool in_place,
              uint64_t operation);
  struct Transfer {
    PeerId peer;
    bool reads;
    void* local;
    size_t bytes;
    uint64_t remote;
    uint64_t key;
    uint64_t operation;
  };
  Posted transfer(Node& from, const Transfer& transfer);
  Posted write_ahead(Node& from, const Transfer& transfer, uint64_t note);
  bool poll(Node& node);
  void fail_peer(Node& node, PeerId peer, const std::string& why);

 private:
  // A message, or a write ahead of messages.
  struct Item {
    std::vector<unsigned char> copied;
    const void* rest = nullptr;  // the last piece of a message that is sent in place
    size_t rest_bytes = 0;
    bool is_write = false;
    Transfer write{};
    uint64_t note = 0;
  };
  using Way = std::pair<Id, Id>;

  Posted check(Node& from, PeerId peer);
  bool is_late();
  bool deliver(Node& to);
  void take(Node& to, Id from, const Item& item);
  bool carry_out(Node& target);
  void* find_memory(Node& owner, uint64_t remote, uint64_t key, size_t bytes);

  std::map<Id, Node*> nodes_;
  std::map<Way, std::deque<Item>> ways_;
  std::set<Way> held_;
  std::set<Id> slow_;
  std::map<Id, size_t> refusals_;
  std::vector<Message> sent_;
  size_t writes_ahead_ = 0;
  size_t wrong_accesses_ = 0;
  uint64_t activity_ = 0;
  bool is_random_ = false;
  std::mt19937_64 random_;
};

struct FreeBuffer {
  void operator()(unsigned char* memory) const { std::free(memory); }
};
using FakeBuffer = std::unique_ptr<unsigned char, FreeBuffer>;

// An endpoint, to the fabric.
struct FakeFabric::Node {
  struct Memory {
    unsigned char* start;
    size_t bytes;
  };
  struct Ended {
    uint64_t operation;
    mob_status_t status;
    std::string text;
  };

  Id id;
  Options options;
  Callbacks callbacks;
  Description description;
  std::vector<Id> peers;               // by PeerId
  std::map<PeerId, std::string> lost;  // and why
  std::deque<PeerId> to_tell;          // peers that were lost since the last poll
  std::map<uint64_t, Memory> memory;   // by key
  std::deque<Transfer> transfers;      // posted, not carried out
  std::deque<Ended> ended;
  std::vector<FakeBuffer> buffers;
};

}  // namespace mobius::transport::ofi
