// SPDX-License-Identifier: BSD-3-Clause
#include "engine/desk.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "engine/engine.h"
#include "os/futex.h"
#include "os/pages.h"
#include "transport/shm/copy.h"
#include "transport/shm/move.h"

namespace mobius::engine {
namespace {

using transport::Shape;

// What a request is about, beside its number.
enum What : uint16_t { kStretch, kBox, kSpans };

// In DeskMemory::state, below the number of the last request. A request that was taken up stays so
// when it has been answered.
enum Phase : uint64_t { kWithdrawn, kLaidDown, kTakenUp };
constexpr unsigned kPhaseBits = 2;
constexpr uint64_t phase_of(uint64_t state) { return state & ((1 << kPhaseBits) - 1); }
constexpr uint64_t number_of(uint64_t state) { return state >> kPhaseBits; }
constexpr uint64_t state_of(uint64_t number, Phase phase) { return number << kPhaseBits | phase; }

// In the lowest bit of DeskMemory::answer, below the number.
constexpr uint64_t kDone = 0;
constexpr uint64_t kRefused = 1;

// For how long a request is left on the desk: about as long as the kernel's way takes.
constexpr uint64_t kPatienceNs = 1500;
constexpr int kEagerLooks = 200;
constexpr int kLooksPerClock = 16;
// Who has taken up a request copies at once, unless the system took its processor away.
constexpr uint64_t kYieldAfterNs = 50'000;
constexpr uint64_t kLookForDeathNs = 10'000'000;

// Requests that nobody takes up cost as much as the other way: so few are tried after many of them.
constexpr uint32_t kMostMisses = 6;
// A sleeper is woken for so many requests within a time in which they would be many more, if it
// were awake.
constexpr uint32_t kRequestsToWake = 16;
constexpr uint64_t kWakeWithinNs = 10'000'000;
constexpr uint32_t kMostBetweenWakes = 1024;

constexpr size_t kInRequest = 32;
constexpr size_t kInAnswer = 56;
constexpr size_t kMostSpans = 1024;
// Memory of more than that, holes included, is looked at run by run, so there may be few.
constexpr size_t kMostHull = size_t{192} << 10;
constexpr size_t kFewSpans = 16;

}  // namespace

// Valid as zeros. What is laid down is written by who holds the desk, the answer by the target.
struct DeskMemory {
  alignas(64) std::atomic<uint32_t> holder;  // rank of the origin, plus 1; 0: it is free
  // One line, of which a small put needs no other.
  alignas(64) std::atomic<uint64_t> state;
  uintptr_t remote;
  uint32_t bytes;
  uint16_t what;
  bool is_put;
  std::atomic<bool> is_wanted;  // a waiter that was woken is to stay awake for a while
  alignas(8) unsigned char put[kInRequest];
  // One line, of which a small get needs no other.
  alignas(64) std::atomic<uint64_t> answer;
  alignas(8) unsigned char got[kInAnswer];
  // Boxes and spans: the memory that they lie within; and boxes.
  alignas(64) uintptr_t lowest;
  uint64_t hull_bytes;
  uint32_t count;  // of dimensions, or of spans
  uint64_t run_bytes;
  uint64_t counts[MOB_MAX_DIMENSIONS - 1];
  ptrdiff_t strides[MOB_MAX_DIMENSIONS - 1];
  alignas(64) mob_span_t spans[kMostSpans];
  alignas(64) unsigned char data[Desk::kMostBytes];  // in the order of the runs
};

void Desk::open(ProcessBlock& own) {
  block_ = &own;
  targets_ = std::make_unique<Target[]>(static_cast<size_t>(engine_.host().size()));
}

mob_status_t Desk::require() {
  const std::lock_guard lock(mutex_);
  if (is_there()) return MOB_OK;
  void* memory = nullptr;
  if (const mob_status_t status =
          engine_.local_heap().allocate(sizeof(DeskMemory), alignof(DeskMemory), &memory)) {
    return status;
  }
  std::memset(memory, 0, offsetof(DeskMemory, spans));
  auto* desk = static_cast<DeskMemory*>(memory);
  // Release pairs with the acquire in find().
  block_->desk.store(engine_.offset_of(desk) + 1, std::memory_order_release);
  own_.store(desk, std::memory_order_release);
  return MOB_OK;
}

// The target.

bool Desk::look(DeskMemory& desk) {
  uint64_t state = desk.state.load(std::memory_order_relaxed);
  if (phase_of(state) != kLaidDown) {
    if (!desk.is_wanted.load(std::memory_order_relaxed)) [[likely]] {
      return false;
    }
    desk.is_wanted.store(false, std::memory_order_relaxed);
    return true;
  }
  const uint64_t number = number_of(state);
  // Acquire pairs with the release in ask().
  if (!desk.state.compare_exchange_strong(state, state_of(number, kTakenUp),
                                          std::memory_order_acquire, std::memory_order_relaxed)) {
    return false;
  }
  const uint64_t end = carry_out(desk) ? kDone : kRefused;
  // Release pairs with the acquires in ask() and await_answer().
  desk.answer.store(number << 1 | end, std::memory_order_release);
  return true;
}

bool Desk::carry_out(DeskMemory& desk) {
  const bool is_put = desk.is_put;
  if (desk.what == kStretch) {
    void* memory = reinterpret_cast<void*>(desk.remote);
    const size_t bytes = desk.bytes;
    if (!is_mapped(desk.remote, bytes, is_put)) return false;
    if (is_put) {
      transport::copy(memory, bytes <= kInRequest ? desk.put : desk.data, bytes);
    } else {
      transport::copy(bytes <= kInAnswer ? desk.got : desk.data, memory, bytes);
    }
    return true;
  }
  const bool looks_once = desk.hull_bytes <= kMostHull;
  if (looks_once && !is_mapped(desk.lowest, desk.hull_bytes, is_put)) return false;
  if (desk.what == kBox) {
    Shape box;
    box.kind = MOB_STRIDED;
    box.total_bytes = desk.bytes;
    box.remote = reinterpret_cast<char*>(desk.remote);
    box.local = reinterpret_cast<char*>(desk.data);
    box.run_bytes = desk.run_bytes;
    box.dimensions = static_cast<int>(desk.count);
    std::copy_n(desk.counts, desk.count, box.counts);
    std::copy_n(desk.strides, desk.count, box.remote_strides);
    transport::pack_strides(box, box.local_strides);
    transport::move(box, 0, is_put);
    return true;
  }
  for (uint32_t i = 0; i < desk.count && !looks_once; ++i) {
    const mob_span_t& span = desk.spans[i];
    if (!is_mapped(reinterpret_cast<uintptr_t>(span.address), span.bytes, is_put)) return false;
  }
  unsigned char* data = desk.data;
  for (uint32_t i = 0; i < desk.count; ++i) {
    const mob_span_t& span = desk.spans[i];
    if (is_put) {
      transport::copy(span.address, data, span.bytes);
    } else {
      transport::copy(data, span.address, span.bytes);
    }
    data += span.bytes;
  }
  return true;
}

// Whether bytes of this process can be accessed. To touch memory that was given back would be the
// end of it; so the kernel is asked, once in a wait.
bool Desk::is_mapped(uintptr_t address, size_t bytes, bool write) {
  const uint64_t visit = visits_.load(std::memory_order_relaxed);
  if (visit != pages_visit_) {
    pages_visit_ = visit;
    pages_.fill(0);
  }
  const uintptr_t page = os::page_bytes();
  const uintptr_t first = os::page_start(address);
  const uintptr_t last = os::page_start(address + bytes - 1);
  const auto entry = [&](uintptr_t at) -> uintptr_t& { return pages_[at / page % kPages]; };
  // Which page, and in its lowest bits what is known of it.
  constexpr uintptr_t kReadable = 1;
  constexpr uintptr_t kWritable = 2;
  const uintptr_t wanted = write ? kWritable : kReadable;
  bool known = true;
  for (uintptr_t at = first; known && at <= last; at += page) {
    known = os::page_start(entry(at)) == at && (entry(at) & wanted) != 0;
  }
  if (known) return true;
  if (!os::is_accessible(address, bytes, write)) return false;
  for (uintptr_t at = first; at <= last; at += page) {
    uintptr_t& held = entry(at);
    held = (os::page_start(held) == at ? held : at) | wanted;
  }
  return true;
}

// The origin.

bool Desk::is_attended(mob_rank_t rank) {
  if (engine_.host().policy().spin_ns == 0) return false;  // waiters do not look, they sleep
  const mob_rank_t index = engine_.host_index(rank);
  ProcessBlock& process = engine_.process(index);
  if (!Progress::has_waiters(process.doorbell)) return false;
  Target& target = targets_[static_cast<size_t>(index)];
  if (process.doorbell.sleepers.load(std::memory_order_relaxed) != 0) {
    note_asleep(rank, process, target);
    return false;
  }
  const uint32_t to_skip = target.to_skip.load(std::memory_order_relaxed);
  if (to_skip == 0) [[likely]] {
    return true;
  }
  // Counts of two threads may fall into one; that changes nothing, here and below.
  target.to_skip.store(to_skip - 1, std::memory_order_relaxed);
  return false;
}

// It waits, but sleeps: awake, it would answer, and every answer keep it awake. Less and less often
// if it does not help.
void Desk::note_asleep(mob_rank_t rank, ProcessBlock& process, Target& target) {
  const uint32_t asleep = target.asleep.load(std::memory_order_relaxed) + 1;
  target.asleep.store(asleep, std::memory_order_relaxed);
  if (asleep % kRequestsToWake != 0) return;
  const uint64_t now = os::now_ns();
  const uint64_t before = target.asleep_at.load(std::memory_order_relaxed);
  target.asleep_at.store(now, std::memory_order_relaxed);
  if (now - before > kWakeWithinNs) {
    target.asleep.store(0, std::memory_order_relaxed);
    return;
  }
  const bool is_time = (asleep & (asleep - 1)) == 0 || asleep % kMostBetweenWakes == 0;
  DeskMemory* desk = is_time ? find(rank) : nullptr;
  if (desk == nullptr) return;
  target.to_skip.store(0, std::memory_order_relaxed);
  desk->is_wanted.store(true, std::memory_order_relaxed);
  os::ring_sleepers(process.doorbell.bell);  // a release: who wakes sees that
}

void Desk::note_miss(Target& target) {
  const uint32_t misses = std::min(target.misses.load(std::memory_order_relaxed) + 1, kMostMisses);
  target.misses.store(misses, std::memory_order_relaxed);
  target.to_skip.store(uint32_t{1} << misses, std::memory_order_relaxed);
}

// The desk of a process; null if it has none.
DeskMemory* Desk::find(mob_rank_t rank) {
  const mob_rank_t index = engine_.host_index(rank);
  Target& target = targets_[static_cast<size_t>(index)];
  DeskMemory* desk = target.desk.load(std::memory_order_acquire);
  if (desk != nullptr) [[likely]] {
    return desk;
  }
  // Acquire pairs with the release in require().
  const uint64_t place = engine_.process(index).desk.load(std::memory_order_acquire);
  if (place == 0) return nullptr;
  desk = static_cast<DeskMemory*>(
      engine_.find_here(rank, engine_.address_in(index, place - 1), sizeof(DeskMemory)));
  target.desk.store(desk, std::memory_order_release);
  return desk;
}

// The same, for this process alone; null also if it is in use.
DeskMemory* Desk::take(mob_rank_t rank) {
  DeskMemory* desk = find(rank);
  if (desk == nullptr) return nullptr;
  Target& target = targets_[static_cast<size_t>(engine_.host_index(rank))];
  const auto self = static_cast<uint32_t>(engine_.rank()) + 1;
  uint32_t holder = 0;
  // Acquire pairs with the release in give_back().
  if (!desk->holder.compare_exchange_strong(holder, self, std::memory_order_acquire)) {
    note_miss(target);
    const bool gave_up = target.misses.load(std::memory_order_relaxed) == kMostMisses;
    if (!gave_up || !engine_.is_dead(static_cast<mob_rank_t>(holder) - 1) ||
        !desk->holder.compare_exchange_strong(holder, self, std::memory_order_acquire)) {
      return nullptr;
    }
  }
  // Who died may have left something on it.
  uint64_t state = desk->state.load(std::memory_order_relaxed);
  if (phase_of(state) == kLaidDown) {
    desk->state.compare_exchange_strong(state, state_of(number_of(state), kWithdrawn),
                                        std::memory_order_relaxed);
    state = desk->state.load(std::memory_order_relaxed);
  }
  if (phase_of(state) == kTakenUp &&
      desk->answer.load(std::memory_order_acquire) >> 1 != number_of(state)) {
    give_back(*desk);
    return nullptr;
  }
  return desk;
}

void Desk::give_back(DeskMemory& desk) { desk.holder.store(0, std::memory_order_release); }

bool Desk::ask_to_copy(mob_rank_t rank, uintptr_t remote, const void* local, size_t bytes,
                       bool put) {
  DeskMemory* desk = take(rank);
  if (desk == nullptr) return false;
  desk->remote = remote;
  desk->bytes = static_cast<uint32_t>(bytes);
  desk->is_put = put;
  if (put) transport::copy(bytes <= kInRequest ? desk->put : desk->data, local, bytes);
  const bool done = ask(rank, *desk, kStretch);
  if (done && !put) {
    transport::copy(const_cast<void*>(local), bytes <= kInAnswer ? desk->got : desk->data, bytes);
  }
  give_back(*desk);
  return done;
}

bool Desk::ask_to_move(mob_rank_t rank, const Shape& shape, bool put) {
  DeskMemory* desk = take(rank);
  if (desk == nullptr) return false;
  desk->is_put = put;
  desk->bytes = static_cast<uint32_t>(shape.total_bytes);
  bool done = false;
  if (shape.kind == MOB_STRIDED) {
    done = ask_to_move_box(rank, *desk, shape, put);
  } else if (list_spans(*desk, shape, put) && ask(rank, *desk, kSpans)) {
    if (!put) take_spans(*desk, shape);
    done = true;
  }
  give_back(*desk);
  return done;
}

bool Desk::ask_to_move_box(mob_rank_t rank, DeskMemory& desk, const Shape& shape, bool put) {
  desk.lowest = shape.lowest;
  desk.hull_bytes = shape.highest - shape.lowest;
  if (desk.hull_bytes > kMostHull) return false;
  desk.remote = reinterpret_cast<uintptr_t>(shape.remote);
  desk.run_bytes = shape.run_bytes;
  desk.count = static_cast<uint32_t>(shape.dimensions);
  std::copy_n(shape.counts, desk.count, desk.counts);
  std::copy_n(shape.remote_strides, desk.count, desk.strides);
  Shape packed = shape;  // the other side is the desk
  packed.remote = reinterpret_cast<char*>(desk.data);
  transport::pack_strides(packed, packed.remote_strides);
  if (put) transport::move(packed, 0, true);
  if (!ask(rank, desk, kBox)) return false;
  if (!put) transport::move(packed, 0, false);
  return true;
}

// Lays down where the runs are, and with `put` what they hold; false if there are too many.
bool Desk::list_spans(DeskMemory& desk, const Shape& shape, bool put) {
  size_t count = 0;
  unsigned char* data = desk.data;
  uintptr_t lowest = UINTPTR_MAX;
  uintptr_t highest = 0;
  const mob_status_t listed =
      transport::for_each_run(shape, [&](char* remote, const char* local, size_t bytes) {
        if (count == kMostSpans) return MOB_ERR_RANGE;
        desk.spans[count++] = {remote, bytes};
        lowest = std::min(lowest, reinterpret_cast<uintptr_t>(remote));
        highest = std::max(highest, reinterpret_cast<uintptr_t>(remote) + bytes);
        if (put) transport::copy(data, local, bytes);
        data += bytes;
        return MOB_OK;
      });
  desk.count = static_cast<uint32_t>(count);
  desk.lowest = lowest;
  desk.hull_bytes = highest - lowest;
  return listed == MOB_OK && (desk.hull_bytes <= kMostHull || count <= kFewSpans);
}

void Desk::take_spans(const DeskMemory& desk, const Shape& shape) {
  const unsigned char* data = desk.data;
  static_cast<void>(
      transport::for_each_run(shape, [&](const char*, char* local, size_t bytes) -> mob_status_t {
        transport::copy(local, data, bytes);
        data += bytes;
        return MOB_OK;
      }));
}

// Whether the target did what is laid down.
bool Desk::ask(mob_rank_t rank, DeskMemory& desk, uint16_t what) {
  desk.what = what;
  const uint64_t number = number_of(desk.state.load(std::memory_order_relaxed)) + 1;
  // Release pairs with the acquire in look().
  desk.state.store(state_of(number, kLaidDown), std::memory_order_release);
  // Acquire, here and below, pairs with the release in look().
  const auto is_answered = [&] {
    return desk.answer.load(std::memory_order_acquire) >> 1 == number;
  };
  for (int looks = 0; looks < kEagerLooks && !is_answered(); ++looks) {
  }
  Target& target = targets_[static_cast<size_t>(engine_.host_index(rank))];
  if (!is_answered() && !await_answer(rank, desk, number)) {
    note_miss(target);
    return false;
  }
  target.misses.store(0, std::memory_order_relaxed);
  target.asleep.store(0, std::memory_order_relaxed);
  return (desk.answer.load(std::memory_order_relaxed) & 1) == kDone;
}

// False if the request was withdrawn, or the target died at it.
bool Desk::await_answer(mob_rank_t rank, DeskMemory& desk, uint64_t number) {
  const uint64_t start = os::now_ns();
  uint64_t next_look = start + kLookForDeathNs;
  bool may_withdraw = true;
  for (;;) {
    for (int looks = 0; looks < kLooksPerClock; ++looks) {
      if (desk.answer.load(std::memory_order_acquire) >> 1 == number) return true;
      os::relax();
    }
    const uint64_t now = os::now_ns();
    if (may_withdraw && now - start > kPatienceNs) {
      uint64_t laid_down = state_of(number, kLaidDown);
      if (desk.state.compare_exchange_strong(laid_down, state_of(number, kWithdrawn),
                                             std::memory_order_relaxed)) {
        return false;
      }
      may_withdraw = false;  // it is being done
    }
    if (now - start > kYieldAfterNs) sched_yield();
    if (now >= next_look) {
      if (engine_.is_dead(rank)) return false;
      next_look = now + kLookForDeathNs;
    }
  }
}

}  // namespace mobius::engine
