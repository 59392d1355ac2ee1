// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Ranks of several hosts in one process and one thread, over a FakeFabric: what an engine has to
// carry operations to other hosts, put together as in engine.h, without the rest and without
// threads of its own. A rank that waits has all ranks poll, so a test runs the same way each time.

#include <mobius/mobius.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/message/message.h"
#include "engine/request/batch_server.h"
#include "engine/request/rkeys.h"
#include "engine/rma/operation.h"
#include "engine/scheduler/scheduler.h"
#include "fake_fabric.h"

namespace mobius::engine {

class FakeHosts;

// Whether the calling thread's last error has these words.
inline bool says(std::string_view what) {
  return std::string_view(mob_last_error()).find(what) != std::string_view::npos;
}

// A message of the library, as it was sent.
struct SentMessage {
  mob_rank_t from;
  InternalHandler handler;
  std::vector<unsigned char> header;
  size_t payload_bytes;  // as announced
};

// One rank, alone on its host. Operations are those of the public interface, without its checks.
class FakeRank {
 public:
  FakeRank(FakeHosts& hosts, mob_rank_t rank, std::vector<std::string> settings);
  ~FakeRank();
  FakeRank(const FakeRank&) = delete;
  FakeRank& operator=(const FakeRank&) = delete;

  mob_status_t transfer(const mob_transfer_t& transfer, Mode mode, uint64_t* handle = nullptr);
  mob_status_t put(mob_rank_t to, void* remote, const void* local, size_t bytes);
  mob_status_t put_nbi(mob_rank_t to, void* remote, const void* local, size_t bytes);
  mob_status_t get(mob_rank_t from, const void* remote, void* local, size_t bytes);
  mob_status_t get_nbi(mob_rank_t from, const void* remote, void* local, size_t bytes);
  mob_status_t get_nb(mob_rank_t from, const void* remote, void* local, size_t bytes,
                      uint64_t* handle);
  mob_status_t wait(uint64_t handle);
  mob_status_t fence();
  mob_status_t flush(mob_rank_t rank);
  // Has its network deliver, its handlers run, and what was recorded go.
  void poll();

  // An allocation of this rank, whose key it may give to others.
  unsigned char* allocate(size_t bytes);
  void free(unsigned char* memory);

  Scheduler& scheduler();
  AmRma& requests();
  Messages& messages();
  Completion& completion();
  Network& network();
  Peers& peers();
  // What other ranks told this one (TellSink).
  std::vector<std::string>& told();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

class FakeHosts {
 public:
  explicit FakeHosts(mob_rank_t ranks, const std::vector<std::string>& settings = {});
  ~FakeHosts();
  FakeHosts(const FakeHosts&) = delete;
  FakeHosts& operator=(const FakeHosts&) = delete;

  FakeRank& operator[](mob_rank_t rank) { return *ranks_[static_cast<size_t>(rank)]; }
  transport::ofi::FakeFabric& fabric() { return fabric_; }

  // Has all ranks poll once; whether anything went, came or ended.
  bool poll();
  // Has all ranks poll until nothing happens any more.
  void settle();
  // Called once when a rank waits and nothing happens: it releases what the test held back. A wait
  // that goes on without end fails the test.
  void when_stuck(std::function<void()> act) { when_stuck_ = std::move(act); }
  bool act_when_stuck();

  // From now on a rank does nothing, and the others know that it is dead.
  void kill(mob_rank_t rank);
  bool is_dead(mob_rank_t rank) const { return dead_[static_cast<size_t>(rank)]; }

  // Late transfers of a rank that was given up may access memory that is not registered any more.
  void expect_wrong_accesses(size_t count) { wrong_accesses_ = count; }

  // All messages of the library's own handlers, in the order in which they were sent.
  std::vector<SentMessage> sent() const;
  size_t count(mob_rank_t from, InternalHandler handler) const;

  // Addresses of endpoints, by rank and key (job::Directory).
  std::map<std::pair<mob_rank_t, std::string>, std::vector<unsigned char>>& directory() {
    return directory_;
  }

 private:
  transport::ofi::FakeFabric fabric_;
  std::map<std::pair<mob_rank_t, std::string>, std::vector<unsigned char>> directory_;
  std::vector<std::unique_ptr<FakeRank>> ranks_;
  std::vector<bool> dead_;
  std::function<void()> when_stuck_;
  size_t wrong_accesses_ = 0;
};

using Bytes = std::vector<unsigned char>;

// Size of a transfer that goes by remote memory access.
inline constexpr size_t kLongBytes = 200'000;

// Two ranks, and memory of the second that the first uses.
struct TwoHosts : FakeHosts {
  explicit TwoHosts(const std::vector<std::string>& settings = {}, size_t bytes = size_t{5} << 20)
      : FakeHosts(2, settings), memory((*this)[1].allocate(bytes)) {}

  // Whether so many bytes of the memory have that value.
  bool holds(size_t at, size_t count, unsigned char value) const {
    return std::all_of(memory + at, memory + at + count, [=](auto each) { return each == value; });
  }
  // Requests and batches that the first rank has sent.
  size_t requests() const { return count(0, InternalHandler::kServe); }
  size_t batches() const { return count(0, InternalHandler::kPack); }

  unsigned char* const memory;
  FakeRank& own = (*this)[0];
};

}  // namespace mobius::engine
