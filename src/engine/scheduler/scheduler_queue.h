// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the scheduler keeps of each target, for its own files alone.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/common/first_error.h"
#include "engine/scheduler/scheduler.h"
#include "engine/scheduler/append_run.h"
#include "schedule/link_meter.h"
#include "schedule/plan.h"

namespace mobius::engine {

// What was recorded together: completed when all its messages are answered. Once it is issued,
// Queue::answers guards it.
struct Scheduler::Group {
  Pending* pending = nullptr;
  uint32_t parts = 1;            // who issues it is one
  bool is_complete_here = true;  // once issued: nothing of the user's is in use any more
  bool is_told = false;          // the above has been said
  FirstError error;
};

// A packed message under way, and where its answer goes.
struct Scheduler::Flight {
  struct Place {
    char* to;
    size_t bytes;
  };
  uint64_t id = 0;
  Group* group = nullptr;
  size_t bytes = 0;
  size_t answer_bytes = 0;
  uint64_t lowest = 0;   // all that it does is to put between this
  uint64_t highest = 0;  // … and this, unless that is no more
  uint64_t begin_ns = 0;
  uint32_t operations = 0;
  std::vector<Place> places;
};

// What is recorded, in the order of the calls: a vector that never grows beyond what it was made
// for, which the caller sees to, so that one more is no more than to write it.
class RecordedOperations {
 public:
  explicit RecordedOperations(size_t most)
      : first_(std::make_unique_for_overwrite<schedule::Operation[]>(most)), end_(first_.get()) {}

  schedule::Operation& add() { return *std::construct_at(end_++); }
  void clear() { end_ = first_.get(); }

  bool empty() const { return end_ == first_.get(); }
  size_t size() const { return static_cast<size_t>(end_ - first_.get()); }
  schedule::Operation* data() const { return first_.get(); }
  schedule::Operation* begin() const { return first_.get(); }
  schedule::Operation* end() const { return end_; }
  schedule::Operation& back() const { return end_[-1]; }
  schedule::Operation& operator[](size_t index) const { return first_[index]; }

 private:
  std::unique_ptr<schedule::Operation[]> first_;
  schedule::Operation* end_;
};

// Of one target. Its lock (Lock) guards what has no other comment: mostly that of the thread that
// records, which is spared what comes back meanwhile to whoever polls.
struct Scheduler::Queue : AppendRun {
  // Most that it holds: operations, as they were asked for, and bytes of them that are copies.
  static constexpr size_t kMostOperations = 2048;
  static constexpr size_t kMostStored = size_t{32} << 10;

  explicit Queue(mob_rank_t target) : rank(target), operations(kMostOperations) {
    store = std::make_unique_for_overwrite<char[]>(kMostStored);
  }

  void empty() {
    operations.clear();
    stored = 0;
    calls = 0;
    end_append_run();
    is_urgent.store(false, std::memory_order_relaxed);
    has_any.store(false, std::memory_order_relaxed);
  }

  // A call was recorded, whose bytes the user keeps as they are at `lasting`, unless that is null.
  void note_call(const char* lasting, uint64_t remote, size_t bytes) {
    set_next(lasting != nullptr ? lasting + bytes : nullptr, remote + bytes);
    ++calls;
    ++recorded;
  }

  // The next call is no part of the last operation: something else may be true of it.
  void end_append_run() { set_next(nullptr, 0); }

  // Holds the lock of a queue, of which all calls are counted then, and the next one looks at
  // everything.
  class [[nodiscard]] Lock {
   public:
    explicit Lock(Queue& queue) : guard_(queue.lock) {
      queue.count_calls();
      queue.left = 0;
    }

   private:
    const std::lock_guard<os::BiasedLock> guard_;
  };

  const mob_rank_t rank;
  std::atomic<uint32_t> epochs = 0;          // open
  std::atomic<uint32_t> waiting_epochs = 0;  // … to whose end puts may wait
  std::atomic<uint32_t> epoch_thread = 0;    // … who has opened the last of those (lock_id())
  std::atomic<int> epochs_hint = -1;         // their policy, or none
  std::atomic<bool> has_any = false;         // operations, for who looks without the lock

  RecordedOperations operations;  // no more than `calls`
  std::unique_ptr<char[]> store;
  size_t stored = 0;
  size_t calls = 0;           // that asked for the operations
  Group* group = nullptr;     // of what is recorded
  schedule::Policy policy{};  // likewise
  bool is_fenced = false;     // what is recorded next
  bool is_listed = false;     // in filled_
  uint64_t begin_ns = 0;      // of the first, where there is a timeline

  schedule::Plan plan;
  std::unique_ptr<unsigned char[]> wire;
  uint64_t last_id = 0;
  std::unique_ptr<Flight> next_flight;  // one of those that were spare
  // Something recorded is to be there without a flush. Set before `under_way` is looked at, by who
  // records; and looked at after that has changed, by who takes an answer: one of them issues it.
  std::atomic<bool> is_urgent = false;

  uint64_t recorded = 0;  // ever
  schedule::Savings savings;

  std::mutex answers;  // guards what follows; also taken with the queue's lock, never before that
  schedule::LinkMeter meter;
  schedule::Costs costs;                        // `message_bytes` is set once
  std::deque<std::unique_ptr<Flight>> flights;  // in the order of their answers
  std::vector<std::unique_ptr<Flight>> spare;
  std::atomic<size_t> under_way = 0;  // flights; changes with `answers` held
  std::atomic<size_t> alone = 0;      // transfers that went alone and have not ended

  // Needs `answers`.
  void count_flights() { under_way.store(flights.size(), std::memory_order_seq_cst); }

  // Those that went on with the last operation. Needs the lock.
  void count_calls() {
    const uint32_t further = bias.further;
    if (further == 0) return;
    schedule::Operation& last = operations.back();
    last.bytes = static_cast<size_t>(next_local - last.local);
    last.calls = static_cast<uint16_t>(last.calls + further);
    calls += further;
    recorded += further;
    left -= further;
    bias.uses += further;
    bias.further = 0;
  }
};

inline Scheduler::Queue* Scheduler::find(mob_rank_t rank) const {
  // Acquire pairs with the release in make_queue().
  return by_rank_ == nullptr ? nullptr
                             : by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
}

}  // namespace mobius::engine
