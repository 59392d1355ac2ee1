// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Large transfers between hosts by remote memory access: contiguous ones, and those of any shape
// whose runs are large. Bytes go from one user's memory to the other's without being packed into
// records.
//
// The origin registers its side, so that the target may read or write it, and lists its runs in a
// request. Only the target can tell whether its own side is memory of the job. So the target checks
// the request, reads a put or writes a get, and answers once all of it is done. All requests are
// thus checked in one place, and all memory of the job can be a target. For an allocation, the
// answer carries a key (request/rkeys.h) with which the origin writes later puts itself. Later
// requests may overtake such transfers.

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
#include <utility>
#include <vector>

#include "engine/common/ab_tuner.h"
#include "engine/common/first_error.h"
#include "engine/progress/completion.h"
#include "transport/ofi/endpoint.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

class Network;

class NetworkRma {
 public:
  // Bytes that are contiguous at both sides; as it travels in a request. `base` and `key` name the
  // registered side, which the mover reaches remotely.
  struct Run {
    uint64_t mover;  // their address in the mover
    uint64_t bytes;
    uint64_t base;
    uint64_t key;
  };
  // Most runs of one request.
  static constexpr size_t kMostRuns = size_t{1} << 14;

  // Bytes and runs of a transfer. For a list, `runs` may be less than the true number if it is too
  // high for this path already.
  struct Extent {
    mob_kind_t kind = MOB_PUT;
    size_t bytes = 0;
    size_t runs = 0;
  };
  Extent extent_of(mob_kind_t kind, const transport::Shape& shape) const;

  // Called once by the poller, with the error's text in mob_last_error().
  using Done = std::function<void(mob_status_t)>;

  static constexpr size_t kLeastBytes = size_t{128} << 10;
  // The threshold of is_worth_bare().
  static constexpr size_t kLeastBare = size_t{64} << 10;
  // The bytes that TCP takes at once. A larger transfer stalls each time that a kernel buffer is
  // full, until the other end has drained it. Messages do not stall, because both ends copy them
  // piece by piece. Where their two extra copies stay in caches, messages take half the time of a
  // transfer on one machine and twice it on the next (docs/performance.md). So both paths are timed
  // from this size up to kMostTriedBytes.
  static constexpr size_t kRushBytes = size_t{256} << 10;
  static constexpr size_t kMostTriedBytes = size_t{2} << 20;

  NetworkRma(Network& network, transport::ofi::Endpoint& endpoint)
      : network_(network), endpoint_(endpoint) {}

  // Sets the least size for this path, or base::kAutomatic. Called before all others.
  void open(uint64_t least_bytes);

  // The least size for this path, and whether a transfer that is only started reaches it.
  size_t least_bytes() const { return least_bytes_; }
  bool is_worth(size_t bytes) const { return bytes >= least_bytes_; }
  // As is_worth(), for a get whose only message is its request (AmRma::is_bare()).
  bool is_worth_bare(size_t bytes) const { return bytes >= least_bare_; }
  // As is_worth(), for transfers whose runs have that size on average.
  bool is_worth(const Extent& extent) const {
    return extent.runs != 0 && extent.runs <= kMostRuns && copies(extent.kind) &&
           extent.bytes >= extent.runs * least_bytes_;
  }
  // As is_worth(), for a transfer that the call waits for.
  bool is_worth_waiting_for(const Extent& extent);
  // Called once as each of those begins: whether to time it. note() then takes the time until it
  // was complete at the target.
  bool is_tried_out(const Extent& extent);
  void note(const Extent& extent, bool in_bulk, uint64_t ns);

  // At the origin: a peer that is told the registration may read and write the memory until
  // withdraw().
  mob_status_t offer(void* memory, size_t bytes, transport::ofi::Registration* offered) {
    return endpoint_.register_memory(memory, bytes, offered);
  }
  void withdraw(transport::ofi::Registration& offered) {
    if (offered.handle != nullptr) endpoint_.unregister(offered);
  }

  // At the origin: counts the runs offered to a target. An origin that starts many transfers waits
  // while a target has many to do, because the target keeps a record of each. Any thread.
  void note_offered(mob_rank_t target, size_t runs);
  void note_withdrawn(mob_rank_t target, size_t runs);
  bool has_room_for_more(mob_rank_t target);

  // At the target: moves the bytes of a put or a get between this process and the origin. After an
  // error the other runs are moved all the same. `ahead`: the bytes of a get must arrive only
  // before any message sent after `done`, and the transport may still read them here until then.
  // `noted`: for such a get of one run, the transport tells the origin of its arrival, by the key.
  void move(mob_rank_t origin, mob_kind_t kind, std::span<const Run> runs, bool ahead, bool noted,
            Done done);
  // Whether the transport can do so for so many bytes.
  bool can_note(size_t bytes) const {
    const transport::ofi::Description& transport = endpoint_.description();
    return transport.notes_writes && bytes <= transport.ahead_bytes;
  }
  // At the origin: moves the bytes of a put to the target. Only a later poll calls `done`. Any
  // thread.
  void write(mob_rank_t target, std::span<const Run> runs, Done done);
  // Longer runs of such puts are cut, so that messages to the target go between the pieces, and
  // each piece fits into a socket buffer (4 MiB in Linux). Of a piece that does not fit the kernel
  // takes most, and a poller must notice later that there is room for the rest.
  static constexpr size_t kMostWritten = size_t{2} << 20;

  // Posts again moves that the transport had no room for. Gives up origins that take nothing for
  // long once they are silent. Returns whether there was room for any. Any thread.
  bool pump();
  bool has_waiting() const { return waiting_count_.load(std::memory_order_seq_cst) != 0; }

  // A callback of the transport.
  void ended(uint64_t operation, mob_status_t status, const char* text);

 private:
  // All runs of one request.
  struct Whole {
    Whole(Done when_done, size_t runs) : done(std::move(when_done)), left(runs) {}
    Done done;
    std::atomic<size_t> left;  // runs
    KeptError error{};
  };

  struct Move {
    mob_rank_t peer;
    bool reads;
    bool ahead;  // complete once posted
    bool noted;
    Run run;
    std::shared_ptr<Whole> whole;
  };

  // Moves to one peer that the transport has no room for yet. Each peer has its own queue, so that
  // one that takes nothing does not hold up the others.
  struct Queue {
    std::list<uint64_t> moves;  // in their order
    uint64_t next_look_ns = 0;  // when to check the peer; 0: nothing was refused yet
  };

  // Limits the bytes that are read from one peer at a time. The stream providers of libfabric send
  // data that is read before all waiting messages. A peer that is always read from could send
  // neither an answer nor a sign of life. So after kBurstBytes this process reads no more until all
  // of it has come. Written bytes go before messages that are sent later, so they are limited, too.
  static constexpr size_t kBurstBytes = size_t{16} << 20;
  struct Burst {
    size_t reads = 0;    // under way
    size_t bytes = 0;    // asked for since no read was under way
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
  // A request one of whose moves has ended, and its error if it has failed.
  struct Outcome {
    std::shared_ptr<Whole> whole;
    FirstError error;
  };

  static constexpr size_t kMostOffered = 1024;

  // As often as a waiting thread checks its process.
  static constexpr uint64_t kLookNs = 100'000'000;
  static constexpr size_t kTrialSizes = 3;  // each twice the size before

  static bool copies(mob_kind_t kind) { return kind == MOB_PUT || kind == MOB_GET; }
  // Null if this size is not timed.
  AbTuner* tuner_of(const Extent& extent);
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

  std::mutex tuner_mutex_;  // guards tuners_
  // By: one run or several; put or get; size. The first path is remote memory access.
  AbTuner tuners_[2][2][kTrialSizes];

  std::mutex offered_mutex_;              // guards offered_
  std::map<mob_rank_t, size_t> offered_;  // runs; no entry is 0

  std::mutex mutex_;  // guards all below; not held during callbacks
  uint64_t last_id_ = 0;
  std::map<uint64_t, Move> under_way_;
  std::map<mob_rank_t, Queue> waiting_;    // moves of under_way_; no queue is empty
  std::map<mob_rank_t, Burst> bursts_;     // peers that are read from or written to now
  std::vector<Outcome> ended_;             // `done` was not called yet
  std::atomic<size_t> waiting_count_ = 0;  // moves in waiting_, plus ended_
};

}  // namespace mobius::engine
