// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Large contiguous transfers between hosts, by remote memory access: bytes go from one user's
// memory to the other's without being packed into records.
//
// The origin lets the target read or write its side and names it in a request. The target, which
// alone can tell whether its own side is memory of the job, reads a put and writes a get, and
// answers. So nobody has to know keys of others' allocations, and all requests are checked in one
// place. Such transfers may be overtaken by what is asked for later.

#include <mobius/job.h>
#include <mobius/status.h>
#include <mobius/transfer.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/way_trial.h"
#include "transport/ofi/endpoint.h"

namespace mobius::engine {

class Network;

class BulkMoves {
 public:
  // What the origin lets a target reach; as it travels.
  struct Place {
    uint64_t base;
    uint64_t key;
  };

  // Called once, with the error's text in mob_last_error(), by who polls.
  using Done = std::function<void(mob_status_t)>;

  BulkMoves(Network& network, transport::ofi::Endpoint& endpoint)
      : network_(network), endpoint_(endpoint) {}

  // Before any other call: from how many bytes on it is worth it, or base::kAutomatic; whether the
  // provider is one over TCP.
  void open(uint64_t least_bytes, bool is_stream);

  // From how many bytes on it is worth it, and whether it is, for a transfer that is only started.
  size_t least_bytes() const { return least_bytes_; }
  bool is_worth(size_t bytes) const { return bytes >= least_bytes_; }
  // … or that the call waits for.
  bool is_worth_waiting_for(mob_kind_t kind, size_t bytes);
  // Once for each of those, which begins: whether that is tried out; then how long it took, until
  // it was complete at the target.
  bool is_tried_out(mob_kind_t kind, size_t bytes);
  void note(mob_kind_t kind, size_t bytes, bool in_bulk, uint64_t ns);

  // At the origin: until withdraw(), who is told the place may read and write the memory.
  mob_status_t offer(void* memory, size_t bytes, transport::ofi::Registration* offered) {
    return endpoint_.register_memory(memory, bytes, offered);
  }
  void withdraw(transport::ofi::Registration& offered) {
    if (offered.handle != nullptr) endpoint_.unregister(offered);
  }

  // At the target: has bytes move between here and a place of the origin.
  void read(mob_rank_t origin, void* here, size_t bytes, Place there, Done done);
  void write(mob_rank_t origin, const void* here, size_t bytes, Place there, Done done);

  // What the transport had no room for is tried again, and origins that take nothing for long are
  // given up once they are silent; whether there was any room. Any thread.
  bool pump();
  bool has_waiting() const { return waiting_count_.load(std::memory_order_seq_cst) != 0; }

  // The transport's callback.
  void ended(uint64_t operation, mob_status_t status, const char* text);

 private:
  struct Move {
    mob_rank_t origin;
    bool reads;
    void* here;
    size_t bytes;
    Place there;
    Done done;
  };

  // What the transport has no room for yet. Each origin has its own: one that takes nothing must
  // not hold up what is for others.
  struct Queue {
    std::deque<uint64_t> moves;  // in their order
    uint64_t next_look_ns = 0;   // at the origin; 0: nothing was refused yet
  };

  // A move that has failed, and why.
  struct Failure {
    Done done;
    std::string text;
  };

  // As often as who waits for a process looks after it.
  static constexpr uint64_t kLookNs = 100'000'000;
  static constexpr size_t kLeastBytes = size_t{128} << 10;
  // What TCP takes at once. More than that stands still between here and there each time that a
  // buffer of the kernel is full, until the other end has copied all of it. Messages do not, as
  // they are copied piece by piece at both ends. Where one is under way, and their two copies more
  // stay in caches, either takes half as long as the other, on one machine or the next
  // (docs/performance.md): from here on up to there both are tried.
  static constexpr size_t kRushBytes = size_t{256} << 10;
  static constexpr size_t kMostTriedBytes = size_t{2} << 20;
  static constexpr size_t kTrialSizes = 3;  // each twice the one before

  // Null: there is nothing to be tried.
  WayTrial* trial_of(mob_kind_t kind, size_t bytes);
  void start(Move move);
  bool post_all(Queue& queue, std::vector<Failure>& failures);
  transport::ofi::Posted post(uint64_t id, const Move& move);

  Network& network_;
  transport::ofi::Endpoint& endpoint_;
  size_t least_bytes_ = SIZE_MAX;
  bool tries_messages_ = false;

  std::mutex trial_mutex_;           // guards what follows
  WayTrial trials_[2][kTrialSizes];  // of puts, and of gets; first: in bulk

  std::mutex mutex_;  // guards what follows; never held while something is done
  uint64_t last_id_ = 0;
  std::map<uint64_t, Move> under_way_;
  std::map<mob_rank_t, Queue> waiting_;  // of those; none is empty
  std::atomic<size_t> waiting_count_ = 0;
};

}  // namespace mobius::engine
