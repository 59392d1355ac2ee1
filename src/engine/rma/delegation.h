// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Small puts and gets on exposed memory, done by its owner while it waits in the library anyway:
// a few cache lines change hands, where cross-memory attach would enter the kernel.
//
// A process that exposes memory has one desk, in shared memory. An origin that sees a thread of it
// wait, and awake, or saw one the last time, takes the desk for itself, lays down a request, and
// looks for the answer. If nobody takes the request up in about the time that the kernel's way
// takes, the origin withdraws it and goes that way; so it does, at once, if the desk is in use.
// Request and withdrawal are settled by one compare-and-swap: what was taken up is answered, what
// was withdrawn is done by nobody, and nothing is done twice.
//
// What is larger comes in pieces, each a request of its own in one of a few places: the target does
// one while the origin packs the next, or takes what came with the one before.
//
// What cannot be done (memory that is not there) is refused without being begun, so that the other
// way can tell the error.
//
// A waiter that sleeps, or last ran on the very processor that the origin runs on now, does not
// look. For a small request nobody is woken; but an origin that has many, closely one after the
// other, wakes a sleeper now and then: requests keep it awake. For what takes the kernel long it is
// called: woken, and given the processor, which it gives back as soon as it has answered.

#include <mobius/job.h>
#include <mobius/transfer.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/rma/unmap_guard.h"
#include "engine/segment/segment_layout.h"
#include "os/pages.h"
#include "os/waiter.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

class LocalExecutor;
class LocalHeap;
class Segment;
struct DelegationSlots;
struct Request;

class Delegation {
 public:
  enum class Outcome {
    kDone,
    kNotForDesk,
    kNobodyCame,  // a thread of the target waits, but gets no processor: no message helps either
  };

  Delegation(Segment& segment, LocalHeap& local_heap, LocalExecutor& executor)
      : segment_(segment), local_heap_(local_heap), executor_(executor) {}
  void open(ProcessBlock& own);

  // Sets up the desk of this process; one that has it keeps it. Any thread.
  mob_status_t require();
  bool is_there() const { return own_.load(std::memory_order_acquire) != nullptr; }

  // At the target, by a thread that waits: does what lies on the desk.
  os::Work serve() {
    DelegationSlots* desk = own_.load(std::memory_order_acquire);
    return desk != nullptr ? look(*desk) : os::Work::kNone;
  }
  // Whether somebody came since this was asked last, and found no thread that waits.
  bool take_missed() {
    if (block_->missed_at_desk.load(std::memory_order_relaxed) == 0) [[likely]] {
      return false;
    }
    block_->missed_at_desk.store(0, std::memory_order_relaxed);
    return true;
  }
  // A thread of this process has come from the program, to wait or to use others' exposed memory,
  // and goes back to it when this ends. In between it may give memory back that is known to be
  // there.
  class Stay {
   public:
    explicit Stay(Delegation& own) : own_(own.is_there() ? &own : nullptr) {
      if (own_ != nullptr && UnmapGuard::end(own.knows_memory())) own.forget_memory();
    }
    ~Stay() {
      if (own_ != nullptr) UnmapGuard::begin(own_->knows_memory());
    }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    Delegation* const own_;
  };
  // What is known of the memory of this process may not hold any more: a function of the program
  // was called, or memory was withdrawn. Any thread.
  void forget_memory() {
    knows_.store(false, std::memory_order_relaxed);
    // Release pairs with the acquire in begin_to_know(): who knows something since then says so
    // after the line above.
    visits_.fetch_add(1, std::memory_order_release);
  }
  // Whether anything may be known of it, so that it matters whether some of it is given back.
  bool knows_memory() const { return knows_.load(std::memory_order_relaxed); }

  // At the origin: whether a thread of the target is likely to look, now or in a moment, from
  // another processor.
  bool is_attended(mob_rank_t rank);
  // Has such a target put or get one stretch, or any target a shape, of its exposed memory. False
  // if that is not how it goes, and nothing was done. Waits for nobody who is not at it already.
  bool copy(mob_rank_t rank, uintptr_t remote, const void* local, size_t bytes, bool put) {
    return bytes <= kMostBytes &&
           ask_to_copy(rank, remote, local, bytes, put, false) == Outcome::kDone;
  }
  // With `calls` the target is called if a thread of it waits, but does not look.
  Outcome move(mob_rank_t rank, const transport::Shape& shape, bool put, bool calls);

  // The same for an accumulate of one stretch, whose elements are checked; and for the update of a
  // word of 4 or 8 bytes by MOB_RMW_COMPARE_SWAP_, of which `old` gets what the word held.
  Outcome combine(const mob_transfer_t& transfer, const transport::Shape& shape);
  Outcome compare_swap(mob_rank_t rank, void* remote, size_t bytes, uint64_t expected,
                       uint64_t desired, uint64_t* old);

  // Beyond that the kernel, which copies once, is about as fast.
  static constexpr size_t kMostBytes = size_t{1} << 20;
  // Of what does not come in pieces: lists and accumulates.
  static constexpr size_t kMostAtOnce = size_t{64} << 10;
  static constexpr size_t kPieceBytes = size_t{16} << 10;
  static constexpr unsigned kPlaces = kMostAtOnce / kPieceBytes;

  // For how long a request is left on the desk: about as long as the kernel's way takes.
  static constexpr uint64_t kPatienceNs = 1500;
  // … where the target is called: longer than a thread takes to wake up.
  static constexpr uint64_t kCallPatienceNs = 50'000;

  // Room for kMostAtOnce bytes, of the calling thread; null if there is none.
  static unsigned char* packing_space();

 private:
  // What this process knows of another one as a target.
  struct Target {
    std::atomic<DelegationSlots*> desk = nullptr;
    std::atomic<uint32_t> to_skip = 0;    // so many requests go the other way without a try
    std::atomic<uint32_t> misses = 0;     // requests in a row that nobody took up
    std::atomic<uint32_t> asleep = 0;     // … that were not made because all slept
    std::atomic<uint64_t> asleep_at = 0;  // when some of them were counted
    std::atomic<bool> came = false;       // it answered, and has not been found away since
  };

  // Memory of this process that is known to be there, as long as a wait lasts.
  struct Known {
    struct Region {
      os::Stretch memory;
      bool writable;
    };
    std::mutex mutex;  // guards what follows
    uint64_t visit = 0;
    size_t next = 0;
    std::array<Region, 4> parts{};
    // The last bytes that a request was about, and when that was.
    uintptr_t asked_for = 0;
    size_t asked_bytes = 0;
    bool asked_to_write = false;
    std::atomic<uint64_t> asked_in = 0;

    bool covers(uintptr_t address, size_t bytes, bool write) const;
    bool learn(uint64_t now, uintptr_t address, size_t bytes, bool write, bool is_requested);
  };

  Outcome may_call(mob_rank_t rank, bool* calls);
  static bool expects_waiter(ProcessBlock& process, Target& target);
  static void leave_word(ProcessBlock& process);
  static bool is_withdrawn_from_absent(ProcessBlock& process, Target& target, Request& request);
  static bool is_asleep_or_near(const ProcessBlock& process);
  static bool skips(Target& target);
  void note_asleep(mob_rank_t rank, ProcessBlock& process, Target& target);
  static void note_miss(Target& target);
  static void note_lost_time(Target& target, uint64_t ns);
  DelegationSlots* find(mob_rank_t rank);
  DelegationSlots* take(mob_rank_t rank, size_t bytes);
  static bool clear(Request& request);
  static void give_back(DelegationSlots& desk);
  Outcome ask_to_copy(mob_rank_t rank, uintptr_t remote, const void* local, size_t bytes, bool put,
                      bool calls);
  Outcome ask_to_move(mob_rank_t rank, const transport::Shape& shape, bool put, bool calls);
  Outcome ask_in_pieces(mob_rank_t rank, DelegationSlots& desk, const transport::Shape& shape,
                        bool put, bool calls);
  static uint16_t describe(DelegationSlots& desk, Request& request, const transport::Shape& shape,
                           bool put);
  static void take_data(DelegationSlots& desk, const Request& request,
                        const transport::Shape& shape);
  static bool list_spans(DelegationSlots& desk, const transport::Shape& shape, bool put);
  static void take_spans(const DelegationSlots& desk, const transport::Shape& shape);
  Outcome ask(mob_rank_t rank, DelegationSlots& desk, uint16_t what, bool calls);
  void lay_down(mob_rank_t rank, Request& request, uint16_t what, bool goes_on, bool calls);
  Outcome await(mob_rank_t rank, Request& request, bool calls);
  static bool withdraw(Request& request);
  void call(mob_rank_t rank);
  bool await_answer(mob_rank_t rank, Request& request, uint64_t number, bool calls);

  os::Work look(DelegationSlots& desk);
  os::Work look_at(DelegationSlots& desk, unsigned place, bool* goes_on);
  os::Work look_idly(DelegationSlots& desk);
  void note_processor();
  bool carry_out(DelegationSlots& desk, Request& request);
  bool carry_out_box(DelegationSlots& desk, Request& request, Known& known);
  bool carry_out_spans(DelegationSlots& desk, Request& request, Known& known);
  bool update(DelegationSlots& desk, Request& request, Known& known);
  uint64_t begin_to_know();
  bool is_mapped(Known& known, uintptr_t address, size_t bytes, bool write);
  void look_ahead();
  bool hull_is_mapped(Known& known, const Request& request);

  Segment& segment_;
  LocalHeap& local_heap_;
  LocalExecutor& executor_;
  ProcessBlock* block_ = nullptr;

  // At the target.
  std::mutex mutex_;  // guards making the desk
  std::atomic<DelegationSlots*> own_ = nullptr;
  std::atomic<uint64_t> visits_ = 0;
  std::atomic<bool> knows_ = false;
  std::atomic<unsigned> next_place_ = 0;  // where the next request is to be looked for
  Known known_[kPlaces];                  // by place
  std::atomic<uint64_t> looked_in_ = 0;   // the last visit with look_ahead()

  // At the origin.
  std::unique_ptr<Target[]> targets_;  // by host index
};

}  // namespace mobius::engine
