// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Delegates small puts and gets on exposed memory to a thread of the target that waits in the
// library. That moves a few cache lines, where cross-memory attach would enter the kernel.
//
// Each process that exposes memory has delegation slots in shared memory. An origin uses them if a
// thread of the target waits awake, or did so the last time. The origin takes hold of the slots,
// posts a request, and spins for the answer. If no thread of the target takes the request within
// about the time of a system call, the origin withdraws it and calls the kernel. If another origin
// holds the slots, it calls the kernel at once. One compare-and-swap decides between taking and
// withdrawing: a taken request is always answered, a withdrawn one is never carried out, and none
// is carried out twice.
//
// A larger transfer is cut into pieces, each a request in one of a few slots: the target copies one
// piece while the origin packs the next, or unpacks the one before.
//
// The target refuses a request for memory that is not mapped before it touches any; the origin's
// other path then reports the error.
//
// A waiter does not serve requests while it sleeps, or if it last ran on the origin's processor. A
// small request does not wake it, but an origin with many requests in a short time wakes a sleeper
// now and then, because requests keep it awake. For transfers that take the kernel long, the origin
// calls the target: it wakes the waiter and yields the processor, and the waiter yields it back as
// soon as it has answered.

#include <mobius/job.h>
#include <mobius/transfer.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/common/sparse_array.h"
#include "engine/rma/unmap_guard.h"
#include "engine/segment/segment_layout.h"
#include "os/memory/pages.h"
#include "os/sync/waiter.h"
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
    kNotDelegated,
    kNobodyCame,  // a thread of the target waits, but gets no processor; a message would not help
  };

  Delegation(Segment& segment, LocalHeap& local_heap, LocalExecutor& executor)
      : segment_(segment), local_heap_(local_heap), executor_(executor) {}
  void open(ProcessBlock& own);

  // Allocates the slots of this process if it has none. Any thread.
  mob_status_t require();
  bool is_there() const { return own_.load(std::memory_order_acquire) != nullptr; }

  // Called at the target by a thread that waits: carries out posted requests.
  os::Work serve() {
    DelegationSlots* slots = own_.load(std::memory_order_acquire);
    return slots != nullptr ? look(*slots) : os::Work::kNone;
  }
  // Whether an origin found no waiting thread since the last call.
  bool take_missed() {
    if (block_->delegation_missed.load(std::memory_order_relaxed) == 0) [[likely]] {
      return false;
    }
    block_->delegation_missed.store(0, std::memory_order_relaxed);
    return true;
  }
  // Exists while a thread of this process is in the library, to wait or to use exposed memory of
  // others. Outside of it the program may unmap memory that is known to be mapped.
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
  // Drops the knowledge of mapped memory: a function of the program was called, or memory was
  // withdrawn. Any thread.
  void forget_memory() {
    knows_.store(false, std::memory_order_relaxed);
    // Release pairs with the acquire in begin_to_know(): a thread that learns something after this
    // increment sets knows_ again after the line above.
    visits_.fetch_add(1, std::memory_order_release);
  }
  // Whether anything may be known of this process' memory, so that unmapping it matters.
  bool knows_memory() const { return knows_.load(std::memory_order_relaxed); }

  // Called at the origin: whether a thread of the target, on another processor, is likely to serve
  // requests now or in a moment.
  bool is_attended(mob_rank_t rank);
  // copy() asks such a target to put or get one contiguous range of its exposed memory; move() asks
  // any target to move a shape. False: nothing was done, take another path. Both wait only for a
  // thread that is already waiting.
  bool copy(mob_rank_t rank, uintptr_t remote, const void* local, size_t bytes, bool put) {
    return bytes <= kMostBytes &&
           ask_to_copy(rank, remote, local, bytes, put, false) == Outcome::kDone;
  }
  // With `calls` the origin calls a target whose waiter does not serve requests.
  Outcome move(mob_rank_t rank, const transport::Shape& shape, bool put, bool calls);

  // The same for an accumulate of one contiguous range, whose elements are checked, and for
  // MOB_RMW_COMPARE_SWAP_ on a word of 4 or 8 bytes; `old` receives the word's former value.
  Outcome combine(const mob_transfer_t& transfer, const transport::Shape& shape);
  Outcome compare_swap(mob_rank_t rank, void* remote, size_t bytes, uint64_t expected,
                       uint64_t desired, uint64_t* old);

  // Above this size the kernel, which copies once, is about as fast.
  static constexpr size_t kMostBytes = size_t{1} << 20;
  // Limit of requests that are not cut into pieces: lists and accumulates.
  static constexpr size_t kMostAtOnce = size_t{64} << 10;
  static constexpr size_t kPieceBytes = size_t{16} << 10;
  static constexpr unsigned kSlots = kMostAtOnce / kPieceBytes;

  // Time until an untaken request is withdrawn: about as long as the system call takes.
  static constexpr uint64_t kPatienceNs = 1500;
  // The same where the target is called: longer than a thread takes to wake up.
  static constexpr uint64_t kCallPatienceNs = 50'000;

  // kMostAtOnce bytes that belong to the calling thread; null if out of memory.
  static unsigned char* packing_space();

 private:
  // The origin's knowledge of a process as a target.
  struct Target {
    std::atomic<DelegationSlots*> slots = nullptr;
    std::atomic<uint32_t> to_skip = 0;    // number of requests to send by another path, untried
    std::atomic<uint32_t> misses = 0;     // consecutive requests that no thread took
    std::atomic<uint32_t> asleep = 0;     // requests not made because all waiters slept
    std::atomic<uint64_t> asleep_at = 0;  // when some of them were counted
    std::atomic<bool> came = false;  // the last request was answered, and a waiter expected since
  };

  // Memory of this process that is known to be mapped, for the duration of a wait.
  struct Known {
    struct Region {
      os::AddressRange memory;
      bool writable;
    };
    std::mutex mutex;  // guards the members below
    uint64_t visit = 0;
    size_t next = 0;
    std::array<Region, 4> regions{};
    // The memory of the last request, and the visit in which it came.
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
  static void give_back(DelegationSlots& slots);
  Outcome ask_to_copy(mob_rank_t rank, uintptr_t remote, const void* local, size_t bytes, bool put,
                      bool calls);
  Outcome ask_to_move(mob_rank_t rank, const transport::Shape& shape, bool put, bool calls);
  Outcome ask_in_pieces(mob_rank_t rank, DelegationSlots& slots, const transport::Shape& shape,
                        bool put, bool calls);
  static uint16_t describe(DelegationSlots& slots, Request& request, const transport::Shape& shape,
                           bool put);
  static void take_data(DelegationSlots& slots, const Request& request,
                        const transport::Shape& shape);
  static bool list_spans(DelegationSlots& slots, const transport::Shape& shape, bool put);
  static void take_spans(const DelegationSlots& slots, const transport::Shape& shape);
  Outcome ask(mob_rank_t rank, DelegationSlots& slots, uint16_t what, bool calls);
  void post(mob_rank_t rank, Request& request, uint16_t what, bool goes_on, bool calls);
  Outcome await(mob_rank_t rank, Request& request, bool calls);
  static bool withdraw(Request& request);
  void call(mob_rank_t rank);
  bool await_answer(mob_rank_t rank, Request& request, uint64_t number, bool calls);

  os::Work look(DelegationSlots& slots);
  os::Work look_at(DelegationSlots& slots, unsigned slot, bool* goes_on);
  os::Work look_idly(DelegationSlots& slots);
  void note_processor();
  bool carry_out(DelegationSlots& slots, Request& request);
  bool carry_out_box(DelegationSlots& slots, Request& request, Known& known);
  bool carry_out_spans(DelegationSlots& slots, Request& request, Known& known);
  bool update(DelegationSlots& slots, Request& request, Known& known);
  uint64_t begin_to_know();
  bool is_mapped(Known& known, uintptr_t address, size_t bytes, bool write);
  void look_ahead();
  bool hull_is_mapped(Known& known, const Request& request);

  Segment& segment_;
  LocalHeap& local_heap_;
  LocalExecutor& executor_;
  ProcessBlock* block_ = nullptr;

  // Target.
  std::mutex mutex_;  // guards allocation of the slots
  std::atomic<DelegationSlots*> own_ = nullptr;
  std::atomic<uint64_t> visits_ = 0;
  std::atomic<bool> knows_ = false;
  std::atomic<unsigned> next_slot_ = 0;  // slot in which the next request is expected
  Known known_[kSlots];                  // by slot
  std::atomic<uint64_t> looked_in_ = 0;  // the last visit in which look_ahead() ran

  // Origin.
  SparseArray<Target> targets_;  // by host index
};

}  // namespace mobius::engine
