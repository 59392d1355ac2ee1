// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Large contiguous transfers between hosts, and those of any shape whose runs are large, by remote
// memory access: bytes go from one user's memory to the other's without being packed into records.
//
// The origin lets the target read or write its side and names it, run by run, in a request. The
// target, which alone can tell whether its own side is memory of the job, reads a put and writes a
// get, and answers once all of it is done. So all requests are checked in one place, and all memory
// of the job can be their target. Of allocations the target gives a key with its answer
// (request/rkeys.h), with which the origin writes later puts itself. Later requests may
// overtake such transfers.

#include <mobius/job.h>
#include <mobius/status.h>
#include <mobius/transfer.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/progress/completion.h"
#include "engine/common/first_error.h"
#include "engine/common/ab_tuner.h"
#include "transport/ofi/endpoint.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

class Network;

class NetworkRma {
 public:
  // What is one stretch at both sides, and where one of them lets the other, who moves it, reach
  // it; as it travels.
  struct Run {
    uint64_t mover;  // its address in who moves it
    uint64_t bytes;
    uint64_t base;
    uint64_t key;
  };
  // Most that one request lists.
  static constexpr size_t kMostRuns = size_t{1} << 14;

  // How much a transfer is, in how many runs. Of lists it may be fewer, if these are too many
  // already.
  struct Extent {
    mob_kind_t kind = MOB_PUT;
    size_t bytes = 0;
    size_t runs = 0;
  };
  Extent extent_of(mob_kind_t kind, const transport::Shape& shape) const;

  // Called once, with the error's text in mob_last_error(), by who polls.
  using Done = std::function<void(mob_status_t)>;

  static constexpr size_t kLeastBytes = size_t{128} << 10;
  // Of what is_worth_bare().
  static constexpr size_t kLeastBare = size_t{64} << 10;
  // What TCP takes at once. More than that stands still between here and there each time that a
  // buffer of the kernel is full, until the other end has copied all of it. Messages do not, as
  // they are copied piece by piece at both ends. Where one is under way, and their two copies more
  // stay in caches, either takes half as long as the other, on one machine or the next
  // (docs/performance.md): from here on up to there both are tried.
  static constexpr size_t kRushBytes = size_t{256} << 10;
  static constexpr size_t kMostTriedBytes = size_t{2} << 20;

  NetworkRma(Network& network, transport::ofi::Endpoint& endpoint)
      : network_(network), endpoint_(endpoint) {}

  // Before any other call: from how many bytes on it is worth it, or base::kAutomatic.
  void open(uint64_t least_bytes);

  // From how many bytes on it is worth it, and whether it is, for a transfer that is only started.
  size_t least_bytes() const { return least_bytes_; }
  bool is_worth(size_t bytes) const { return bytes >= least_bytes_; }
  // … of a transfer that takes no message but one request for a get (AmRma::is_bare()).
  bool is_worth_bare(size_t bytes) const { return bytes >= least_bare_; }
  // Likewise where runs have as much on average.
  bool is_worth(const Extent& extent) const {
    return extent.runs != 0 && extent.runs <= kMostRuns && copies(extent.kind) &&
           extent.bytes >= extent.runs * least_bytes_;
  }
  // … or that the call waits for.
  bool is_worth_waiting_for(const Extent& extent);
  // Once for each of those, which begins: whether that is tried out; then how long it took, until
  // it was complete at the target.
  bool is_tried_out(const Extent& extent);
  void note(const Extent& extent, bool in_bulk, uint64_t ns);

  // At the origin: until withdraw(), who is told the place may read and write the memory.
  mob_status_t offer(void* memory, size_t bytes, transport::ofi::Registration* offered) {
    return endpoint_.register_memory(memory, bytes, offered);
  }
  void withdraw(transport::ofi::Registration& offered) {
    if (offered.handle != nullptr) endpoint_.unregister(offered);
  }

  // At the origin: so many runs of a target's requests are offered from now on, or are not any
  // more. Who starts transfers one after the other waits while a target has many to do: it
  // remembers each of them. Any thread.
  void note_offered(mob_rank_t target, size_t runs);
  void note_withdrawn(mob_rank_t target, size_t runs);
  bool has_room_for_more(mob_rank_t target);

  // At the target: has the bytes of a put, or a get, move between here and the origin. After an
  // error the other runs are moved all the same. `ahead`: those of a get need only be there before
  // any message that is sent once they are done, and may still be read here until then. `noted`: of
  // one of those, of one run, the origin is told by the transport when it is there, by the key.
  void move(mob_rank_t origin, mob_kind_t kind, std::span<const Run> runs, bool ahead, bool noted,
            Done done);
  // Whether that can be, of so many bytes.
  bool can_note(size_t bytes) const {
    const transport::ofi::Description& transport = endpoint_.description();
    return transport.notes_writes && bytes <= transport.ahead_bytes;
  }
  // At the origin: has the bytes of a put move from here to the target. `done` is not called before
  // somebody polls. Any thread.
  void write(mob_rank_t target, std::span<const Run> runs, Done done);
  // Longer runs of those are cut: what is said to the target meanwhile goes between the pieces, and
  // each fits into the buffer of a socket (4 MiB, as Linux has it). Of one that does not the kernel
  // takes most, and somebody has to find later that there is room for what is left.
  static constexpr size_t kMostWritten = size_t{2} << 20;

  // What the transport had no room for is tried again, and origins that take nothing for long are
  // given up once they are silent; whether there was any room. Any thread.
  bool pump();
  bool has_waiting() const { return waiting_count_.load(std::memory_order_seq_cst) != 0; }

  // The transport's callback.
  void ended(uint64_t operation, mob_status_t status, const char* text);

 private:
  // What is moved for one request.
  struct Whole {
    Done done;
    std::atomic<size_t> left;  // runs
    KeptError error{};
  };

  struct Move {
    mob_rank_t peer;
    bool reads;
    bool ahead;  // done when it is posted
    bool noted;
    Run run;
    std::shared_ptr<Whole> whole;
  };

  // What the transport has no room for yet. Each peer has its own: one that takes nothing must not
  // hold up what is for others.
  struct Queue {
    std::list<uint64_t> moves;  // in their order
    uint64_t next_look_ns = 0;  // at the peer; 0: nothing was refused yet
  };

  // What is read from one peer at a time. The stream providers of libfabric send what is read
  // before all messages that wait: who is always read from says nothing else, neither an answer
  // nor that it lives. So after so many bytes nothing more is asked for until all of it has come.
  // What is written goes before messages that are sent later: so many bytes at a time.
  static constexpr size_t kBurstBytes = size_t{16} << 20;
  struct Burst {
    size_t reads = 0;    // under way
    size_t bytes = 0;    // asked for since there were none
    size_t written = 0;  // under way

    bool has_room_for(const Move& move) const {
      if (move.reads) return bytes < kBurstBytes;
      return written == 0 || (written < kBurstBytes && move.run.bytes <= kBurstBytes - written);
    }
    void begin(const Move& move) {
      (move.reads ? bytes : written) += move.run.bytes;
      if (move.reads) ++reads;
    }
    void end(const Move& move) {
      if (!move.reads) {
        written -= move.run.bytes;
      } else if (--reads == 0) {
        bytes = 0;
      }
    }
    bool is_over() const { return reads == 0 && written == 0; }
  };
  // A move that is done, or has failed, and why.
  struct Outcome {
    std::shared_ptr<Whole> whole;
    FirstError error;
  };

  static constexpr size_t kMostOffered = 1024;

  // As often as who waits for a process looks after it.
  static constexpr uint64_t kLookNs = 100'000'000;
  static constexpr size_t kTrialSizes = 3;  // each twice the one before

  static bool copies(mob_kind_t kind) { return kind == MOB_PUT || kind == MOB_GET; }
  // Null: there is nothing to be tried.
  AbTuner* trial_of(const Extent& extent);
  static void end_run(Whole& whole, mob_status_t status);
  static void end_runs(const std::vector<Outcome>& outcomes);
  Queue& wait_for_room(Move move, std::span<const Run> runs);
  bool post_all(mob_rank_t peer, Queue& queue, std::vector<Outcome>& outcomes);
  transport::ofi::Posted post(uint64_t id, const Move& move);

  Network& network_;
  transport::ofi::Endpoint& endpoint_;
  size_t least_bytes_ = SIZE_MAX;
  size_t least_bare_ = SIZE_MAX;
  bool tries_messages_ = false;

  std::mutex trial_mutex_;  // guards what follows
  // Of one run, and of several; of puts, and of gets; first: in bulk.
  AbTuner trials_[2][2][kTrialSizes];

  std::mutex offered_mutex_;              // guards what follows
  std::map<mob_rank_t, size_t> offered_;  // runs; none is 0

  std::mutex mutex_;  // guards what follows; never held while something is done
  uint64_t last_id_ = 0;
  std::map<uint64_t, Move> under_way_;
  std::map<mob_rank_t, Queue> waiting_;    // of those; none is empty
  std::map<mob_rank_t, Burst> bursts_;     // of those that are read from, or written to, now
  std::vector<Outcome> ended_;             // and nobody has been told
  std::atomic<size_t> waiting_count_ = 0;  // of the last but one, and the last
};

}  // namespace mobius::engine
