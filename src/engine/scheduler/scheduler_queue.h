// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The scheduler's state of each target, for its own files alone.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/common/first_error.h"
#include "engine/scheduler/append_run.h"
#include "engine/scheduler/scheduler.h"
#include "schedule/link_meter.h"
#include "schedule/plan.h"

namespace mobius::engine {

// Operations that were recorded together: complete when all their messages are answered. From
// issuing on, Queue::answers guards it.
struct Scheduler::Group {
  Pending* pending = nullptr;
  uint32_t parts = 1;            // the issuing thread is one
  bool is_complete_here = true;  // once issued: the user's memory is no longer in use
  bool is_told = false;          // local completion has been reported
  FirstError error;
};

// A pending packed message, and the destinations of its answer.
struct Scheduler::Flight {
  struct Place {
    char* to;
    size_t bytes;
  };
  uint64_t id = 0;
  Group* group = nullptr;
  size_t bytes = 0;
  size_t answer_bytes = 0;
  uint64_t lowest = 0;   // all of its puts lie in the range from here …
  uint64_t highest = 0;  // … to here; no bytes if it does anything else
  uint64_t begin_ns = 0;
  uint32_t operations = 0;
  std::vector<Place> places;
};

// Recorded operations in the order of the calls: a vector of fixed capacity. The caller checks for
// room, so that adding one is no more than writing it.
class RecordedOperations {
 public:
  explicit RecordedOperations(size_t most)
      : first_(std::make_unique_for_overwrite<schedule::Operation[]>(most)), end_(first_.get()) {}

  void end_at(schedule::Operation* end) { end_ = end; }
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

// The queue of one target. Its lock (Lock) guards the members without a comment of their own.
// Mostly the recording thread takes it; the thread that polls takes `answers` instead.
struct Scheduler::Queue : AppendRun {
  // Limits: operations (as the user called them), and bytes of copies.
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

  // Notes one recorded call. The user keeps its bytes unchanged at `lasting`, unless that is null.
  void note_call(const char* lasting, uint64_t remote, size_t bytes) {
    set_next(lasting != nullptr ? lasting + bytes : nullptr, remote + bytes);
    ++calls;
    ++recorded;
  }

  // The next call must not extend the last operation: different conditions may hold for it.
  void end_append_run() { set_next(nullptr, 0); }

  // Holds the lock of a queue. All calls of its append run are counted then, and the run has ended.
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
  std::atomic<uint32_t> epochs = 0;          // open ones
  std::atomic<uint32_t> waiting_epochs = 0;  // … to whose end puts may be delayed
  std::atomic<uint32_t> epoch_thread = 0;    // … thread that opened the last of those (lock_id())
  std::atomic<int> epochs_hint = -1;         // their policy, or none
  std::atomic<bool> has_any = false;  // whether there are operations, for reads without the lock

  RecordedOperations operations;  // at most `calls`
  std::unique_ptr<char[]> store;
  size_t stored = 0;
  size_t calls = 0;           // number of recorded calls
  Group* group = nullptr;     // of the recorded operations
  schedule::Policy policy{};  // likewise
  bool is_fenced = false;     // a fence comes before the next operation
  bool is_listed = false;     // in filled_
  uint64_t begin_ns = 0;      // of the first operation, where there is a timeline

  schedule::Plan plan;
  std::unique_ptr<unsigned char[]> wire;
  uint64_t last_id = 0;
  std::unique_ptr<Flight> next_flight;  // taken from `spare`
  // A recorded operation is to be issued without a flush. The recording thread sets this before it
  // reads `under_way`. The thread that takes an answer changes `under_way` before it reads this. So
  // one of them issues it.
  std::atomic<bool> is_urgent = false;

  uint64_t recorded = 0;  // in total
  schedule::Savings savings;

  std::mutex answers;  // guards the members below; taken after the queue's lock, if both
  schedule::LinkMeter meter;
  schedule::Costs costs;                        // `message_bytes` is set once
  std::deque<std::unique_ptr<Flight>> flights;  // in the order of their answers
  std::vector<std::unique_ptr<Flight>> spare;
  std::atomic<size_t> under_way = 0;  // number of flights; changes with `answers` held
  std::atomic<size_t> alone = 0;      // pending transfers outside of packed messages

  // Needs `answers`.
  void count_flights() { under_way.store(flights.size(), std::memory_order_seq_cst); }

  // Adds the calls of the append run to the last operation. Needs the lock.
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
  return by_rank_.empty() ? nullptr
                          : by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
}

}  // namespace mobius::engine
