// SPDX-License-Identifier: BSD-3-Clause

// The origin's side: posting requests and waiting for the answer.

#include "engine/rma/delegation.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "engine/progress/progress.h"
#include "engine/rma/delegation_slots.h"
#include "engine/segment/segment.h"
#include "os/sync/futex.h"
#include "transport/shm/copy_peer.h"
#include "transport/shm/element.h"
#include "transport/shm/move.h"

namespace mobius::engine {
namespace {

using transport::Shape;

constexpr int kEagerLooks = 200;
// Spins for a target that has answered before, and does not wait now: about as long as the cache
// lines of its arrival take between distant processors.
constexpr int kLooksForComing = 1000;
constexpr int kLooksPerClock = 16;
// A target that has taken a request copies at once, unless it lost its processor.
constexpr uint64_t kYieldAfterNs = 50'000;
constexpr uint64_t kLookForDeathNs = 10'000'000;

// An untaken request costs as much as the other path. After many of them only few are tried. After
// one that cost much more, because another thread got the processor, none is tried for a while.
constexpr uint32_t kMostMisses = 6;
constexpr uint64_t kMostForCallNs = 100'000;
constexpr uint64_t kLostNsPerSkip = 4000;
constexpr uint64_t kMostSkips = 10'000;
// A sleeping waiter is woken after so many requests within this time: an awake one would get many
// more.
constexpr uint32_t kRequestsToWake = 16;
constexpr uint64_t kWakeWithinNs = 10'000'000;
constexpr uint32_t kMostBetweenWakes = 1024;

// A shape whose other side is a delegation slot.
Shape packed_at(unsigned char* data, const Shape& shape) {
  Shape packed = shape;
  packed.remote = reinterpret_cast<char*>(data);
  transport::pack_strides(packed, packed.remote_strides);
  return packed;
}

}  // namespace

void Delegation::open(ProcessBlock& own) {
  block_ = &own;
  targets_ = SparseArray<Target>(static_cast<size_t>(segment_.peers().job().most_here()));
}

bool Delegation::is_attended(mob_rank_t rank) {
  if (segment_.peers().host().policy().spin_ns == 0)
    return false;  // waiters sleep at once and do not serve
  const mob_rank_t index = segment_.peers().host_index(rank);
  ProcessBlock& process = segment_.process(index);
  Target& target = targets_[static_cast<size_t>(index)];
  if (!expects_waiter(process, target)) return false;
  if (process.doorbell.sleepers.load(std::memory_order_relaxed) != 0) {
    note_asleep(rank, process, target);
    return false;
  }
  return process.doorbell.processor.load(std::memory_order_relaxed) != this_processor() &&
         !skips(target);
}

// Whether a waiting thread cannot serve requests now.
bool Delegation::is_asleep_or_near(const ProcessBlock& process) {
  return process.doorbell.sleepers.load(std::memory_order_relaxed) != 0 ||
         process.doorbell.processor.load(std::memory_order_relaxed) == this_processor();
}

// Whether this request takes the other path without a try.
bool Delegation::skips(Target& target) {
  const uint32_t to_skip = target.to_skip.load(std::memory_order_relaxed);
  if (to_skip == 0) [[likely]] {
    return false;
  }
  // Two threads may count as one, here and below; that is harmless.
  target.to_skip.store(to_skip - 1, std::memory_order_relaxed);
  return true;
}

// The target's waiter sleeps. Awake it would answer, and each answer would keep it awake. Wakes it
// now and then, ever less often if that does not help.
void Delegation::note_asleep(mob_rank_t rank, ProcessBlock& process, Target& target) {
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
  DelegationSlots* slots = is_time ? find(rank) : nullptr;
  if (slots == nullptr) return;
  target.to_skip.store(0, std::memory_order_relaxed);
  slots->requests[0].wanted_by.store(this_processor(), std::memory_order_relaxed);
  os::ring_sleepers(process.doorbell.bell);  // a release: the woken thread sees the line above
}

void Delegation::note_miss(Target& target) {
  const uint32_t misses = std::min(target.misses.load(std::memory_order_relaxed) + 1, kMostMisses);
  target.misses.store(misses, std::memory_order_relaxed);
  target.to_skip.store(uint32_t{1} << misses, std::memory_order_relaxed);
}

// To be called after a call of the target for which this thread yielded the processor.
void Delegation::note_lost_time(Target& target, uint64_t ns) {
  const auto skips = static_cast<uint32_t>(std::min(ns / kLostNsPerSkip, kMostSkips));
  if (ns > kMostForCallNs) target.to_skip.store(skips, std::memory_order_relaxed);
}

// The slots of a process; null if it has none.
DelegationSlots* Delegation::find(mob_rank_t rank) {
  const mob_rank_t index = segment_.peers().host_index(rank);
  Target& target = targets_[static_cast<size_t>(index)];
  DelegationSlots* slots = target.slots.load(std::memory_order_acquire);
  if (slots != nullptr) [[likely]] {
    return slots;
  }
  // Acquire pairs with the release in require().
  const uint64_t offset = segment_.process(index).delegation_slots.load(std::memory_order_acquire);
  if (offset == 0) return nullptr;
  slots = static_cast<DelegationSlots*>(
      segment_.find_here(rank, segment_.address_in(index, offset - 1), sizeof(DelegationSlots)));
  target.slots.store(slots, std::memory_order_release);
  return slots;
}

// Takes hold of the slots of a process, for so many bytes of data; null also if another origin
// holds them.
DelegationSlots* Delegation::take(mob_rank_t rank, size_t bytes) {
  DelegationSlots* slots = find(rank);
  if (slots == nullptr) return nullptr;
  Target& target = targets_[static_cast<size_t>(segment_.peers().host_index(rank))];
  const auto self = static_cast<uint32_t>(segment_.peers().rank()) + 1;
  uint32_t holder = 0;
  // Acquire pairs with the release in give_back().
  if (!slots->holder.compare_exchange_strong(holder, self, std::memory_order_acquire)) {
    note_miss(target);
    const bool gave_up = target.misses.load(std::memory_order_relaxed) == kMostMisses;
    if (!gave_up || !segment_.peers().is_dead(static_cast<mob_rank_t>(holder) - 1) ||
        !slots->holder.compare_exchange_strong(holder, self, std::memory_order_acquire)) {
      return nullptr;
    }
  }
  for (unsigned slot = 0; slot < (bytes > kPieceBytes ? kSlots : 1); ++slot) {
    if (clear(slots->requests[slot])) continue;
    give_back(*slots);
    return nullptr;
  }
  return slots;
}

// A dead origin may have left a request; false while the target still executes it.
bool Delegation::clear(Request& request) {
  if (phase_of(request.state.load(std::memory_order_relaxed)) == kPosted) withdraw(request);
  const uint64_t state = request.state.load(std::memory_order_relaxed);
  return phase_of(state) != kTakenUp ||
         request.answer.load(std::memory_order_acquire) >> 1 == number_of(state);
}

// False if the request was taken, or was not posted.
bool Delegation::withdraw(Request& request) {
  const uint64_t number = number_of(request.state.load(std::memory_order_relaxed));
  uint64_t posted = state_of(number, kPosted);
  return request.state.compare_exchange_strong(posted, state_of(number, kWithdrawn),
                                               std::memory_order_relaxed);
}

void Delegation::give_back(DelegationSlots& slots) {
  slots.holder.store(0, std::memory_order_release);
}

unsigned char* Delegation::packing_space() {
  // Kept for the thread's next call.
  thread_local std::unique_ptr<unsigned char[]> space;
  if (space == nullptr) space.reset(new (std::nothrow) unsigned char[kMostAtOnce]);
  return space.get();
}

Delegation::Outcome Delegation::ask_to_copy(mob_rank_t rank, uintptr_t remote, const void* local,
                                            size_t bytes, bool put, bool calls) {
  if (bytes > kPieceBytes) {
    Shape shape;
    shape.total_bytes = shape.run_bytes = bytes;
    shape.remote = reinterpret_cast<char*>(remote);
    shape.local = static_cast<char*>(const_cast<void*>(local));
    return ask_to_move(rank, shape, put, calls);
  }
  DelegationSlots* slots = take(rank, bytes);
  if (slots == nullptr) return Outcome::kNotDelegated;
  Request& request = slots->requests[0];
  request.remote = remote;
  request.bytes = static_cast<uint32_t>(bytes);
  request.is_put = put;
  if (put) transport::copy(bytes <= kInRequest ? request.put : slots->data, local, bytes);
  const Outcome outcome = ask(rank, *slots, kRange, calls);
  if (outcome == Outcome::kDone && !put) {
    transport::copy(const_cast<void*>(local), bytes <= kInAnswer ? request.got : slots->data,
                    bytes);
  }
  give_back(*slots);
  return outcome;
}

Delegation::Outcome Delegation::move(mob_rank_t rank, const Shape& shape, bool put, bool calls) {
  const bool is_box = shape.kind == MOB_CONTIGUOUS || shape.kind == MOB_STRIDED;
  if (shape.total_bytes > (is_box ? kMostBytes : kMostAtOnce)) return Outcome::kNotDelegated;
  if (!calls) {
    return is_attended(rank) ? ask_to_move(rank, shape, put, false) : Outcome::kNotDelegated;
  }
  const Outcome outcome = may_call(rank, &calls);
  return outcome == Outcome::kDone ? ask_to_move(rank, shape, put, calls) : outcome;
}

// kDone if the target is to be asked; `calls` tells whether it has to be called.
Delegation::Outcome Delegation::may_call(mob_rank_t rank, bool* calls) {
  if (segment_.peers().host().policy().spin_ns == 0) return Outcome::kNotDelegated;
  const mob_rank_t index = segment_.peers().host_index(rank);
  ProcessBlock& process = segment_.process(index);
  Target& target = targets_[static_cast<size_t>(index)];
  if (!expects_waiter(process, target)) return Outcome::kNotDelegated;
  *calls = is_asleep_or_near(process);
  if (*calls && skips(target)) return Outcome::kNobodyCame;
  return Outcome::kDone;
}

// A target that answered before is waiting, or may be about to, as after a barrier of both: it
// finds the request when it arrives. Its doorbell is not read, because each of its waits writes to
// that cache line.
bool Delegation::expects_waiter(ProcessBlock& process, Target& target) {
  if (target.came.load(std::memory_order_relaxed)) return true;
  if (Progress::has_waiters(process.doorbell)) return true;
  leave_word(process);
  return false;
}

// The target may be in a wait that does not poll for requests because none have come
// (progress/request_activity.h). This makes it poll.
void Delegation::leave_word(ProcessBlock& process) {
  if (process.delegation_missed.load(std::memory_order_relaxed) != 0) return;
  process.delegation_missed.store(1, std::memory_order_relaxed);
}

// Whether a request was withdrawn because no thread of the target waits.
bool Delegation::is_withdrawn_from_absent(ProcessBlock& process, Target& target, Request& request) {
  if (Progress::has_waiters(process.doorbell) || !withdraw(request)) return false;
  target.came.store(false, std::memory_order_relaxed);
  leave_word(process);
  return true;
}

Delegation::Outcome Delegation::combine(const mob_transfer_t& transfer, const Shape& shape) {
  const mob_rank_t rank = transfer.rank;
  const bool fetches = transfer.kind == MOB_FETCH_ACCUMULATE;
  const size_t bytes = shape.total_bytes;
  if (shape.kind != MOB_CONTIGUOUS || bytes > (fetches ? kFetchedAt : kMostAtOnce)) {
    return Outcome::kNotDelegated;
  }
  bool calls = false;
  if (const Outcome outcome = may_call(rank, &calls); outcome != Outcome::kDone) return outcome;
  DelegationSlots* slots = take(rank, fetches ? kMostAtOnce : bytes);
  if (slots == nullptr) return Outcome::kNotDelegated;
  Request& request = slots->requests[0];
  Update asked{};
  asked.type = static_cast<uint8_t>(transfer.type);
  asked.op = static_cast<uint8_t>(transfer.op);
  asked.fetches = fetches;
  if (transfer.scale != nullptr) {
    asked.has_scale = true;
    std::memcpy(asked.scale, transfer.scale, transport::element_bytes(transfer.type));
  }
  if (transfer.op != MOB_NO_OP) {  // which has no operand
    transport::copy(bytes <= sizeof asked.operand ? asked.operand : slots->data, shape.local,
                    bytes);
  }
  std::memcpy(request.put, &asked, sizeof asked);
  request.remote = reinterpret_cast<uintptr_t>(shape.remote);
  request.bytes = static_cast<uint32_t>(bytes);
  request.is_put = true;
  const Outcome outcome = ask(rank, *slots, kCombination, calls);
  if (outcome == Outcome::kDone && fetches) {
    transport::copy(transfer.fetched, bytes <= kInAnswer ? request.got : slots->data + kFetchedAt,
                    bytes);
  }
  give_back(*slots);
  return outcome;
}

Delegation::Outcome Delegation::compare_swap(mob_rank_t rank, void* remote, size_t bytes,
                                             uint64_t expected, uint64_t desired, uint64_t* old) {
  bool calls = false;
  if (const Outcome outcome = may_call(rank, &calls); outcome != Outcome::kDone) return outcome;
  DelegationSlots* slots = take(rank, bytes);
  if (slots == nullptr) return Outcome::kNotDelegated;
  Request& request = slots->requests[0];
  Update asked{};
  std::memcpy(asked.scale, &expected, sizeof expected);
  std::memcpy(asked.operand, &desired, sizeof desired);
  std::memcpy(request.put, &asked, sizeof asked);
  request.remote = reinterpret_cast<uintptr_t>(remote);
  request.bytes = static_cast<uint32_t>(bytes);
  request.is_put = true;
  const Outcome outcome = ask(rank, *slots, kCompareSwap, calls);
  if (outcome == Outcome::kDone) std::memcpy(old, request.got, bytes);
  give_back(*slots);
  return outcome;
}

Delegation::Outcome Delegation::ask_to_move(mob_rank_t rank, const Shape& shape, bool put,
                                            bool calls) {
  if (shape.kind == MOB_CONTIGUOUS && shape.total_bytes <= kPieceBytes) {
    return ask_to_copy(rank, reinterpret_cast<uintptr_t>(shape.remote), shape.local,
                       shape.total_bytes, put, calls);
  }
  DelegationSlots* slots = take(rank, shape.total_bytes);
  if (slots == nullptr) return Outcome::kNotDelegated;
  Outcome outcome = Outcome::kNotDelegated;
  if (shape.kind == MOB_CONTIGUOUS || shape.kind == MOB_STRIDED) {
    outcome = ask_in_pieces(rank, *slots, shape, put, calls);
  } else {
    slots->requests[0].is_put = put;
    slots->requests[0].bytes = static_cast<uint32_t>(shape.total_bytes);
    if (list_spans(*slots, shape, put)) outcome = ask(rank, *slots, kSpans, calls);
    if (outcome == Outcome::kDone && !put) take_spans(*slots, shape);
  }
  give_back(*slots);
  return outcome;
}

// Afterwards no request is pending, whatever the outcome; some pieces may have been carried out.
Delegation::Outcome Delegation::ask_in_pieces(mob_rank_t rank, DelegationSlots& slots,
                                              const Shape& shape, bool put, bool calls) {
  Outcome outcome = Outcome::kDone;
  Shape pieces[kSlots];  // the pending ones
  unsigned posted = 0;
  unsigned ended = 0;
  const auto end_oldest = [&] {
    const unsigned slot = ended++ % kSlots;
    Request& request = slots.requests[slot];
    if (outcome != Outcome::kDone && withdraw(request)) return;
    const Outcome its = await(rank, request, calls);
    if (outcome == Outcome::kDone) outcome = its;
    if (its == Outcome::kDone && !put) take_data(slots, request, pieces[slot]);
  };
  for (transport::Parts parts(shape, kPieceBytes); !parts.is_at_end();) {
    if (posted - ended == kSlots) end_oldest();
    if (outcome != Outcome::kDone) break;
    const unsigned slot = posted++ % kSlots;
    pieces[slot] = parts.next();
    const uint16_t what = describe(slots, slots.requests[slot], pieces[slot], put);
    post(rank, slots.requests[slot], what, !parts.is_at_end(), calls);
  }
  while (ended != posted) end_oldest();
  return outcome;
}

// Describes one contiguous range or box in a request, and with `put` packs its bytes.
uint16_t Delegation::describe(DelegationSlots& slots, Request& request, const Shape& shape,
                              bool put) {
  request.remote = reinterpret_cast<uintptr_t>(shape.remote);
  request.bytes = static_cast<uint32_t>(shape.total_bytes);
  request.is_put = put;
  unsigned char* data = slots.data_of(request);
  if (shape.kind == MOB_CONTIGUOUS) {
    if (put) {
      transport::copy_part_to_peer(shape.total_bytes <= kInRequest ? request.put : data,
                                   shape.local, shape.total_bytes);
    }
    return kRange;
  }
  request.lowest = shape.lowest;
  request.hull_bytes = shape.highest - shape.lowest;
  request.run_bytes = shape.run_bytes;
  request.count = static_cast<uint32_t>(shape.dimensions);
  std::copy_n(shape.counts, request.count, request.counts);
  std::copy_n(shape.remote_strides, request.count, request.strides);
  if (put) {
    pack_in_slots(data, shape.total_bytes, shape.run_bytes,
                  [&](unsigned char* to) { transport::move(packed_at(to, shape), 0, true); });
  }
  return kBox;
}

// Unpacks the bytes of a get.
void Delegation::take_data(DelegationSlots& slots, const Request& request, const Shape& shape) {
  const unsigned char* data = slots.data_of(request);
  if (shape.kind == MOB_CONTIGUOUS) {
    transport::copy(shape.local, shape.total_bytes <= kInAnswer ? request.got : data,
                    shape.total_bytes);
  } else {
    transport::move(packed_at(const_cast<unsigned char*>(data), shape), 0, false);
  }
}

// Lists the runs, and with `put` packs their bytes; false if there are too many runs.
bool Delegation::list_spans(DelegationSlots& slots, const Shape& shape, bool put) {
  Request& request = slots.requests[0];
  mob_span_t* span = slots.spans;
  uintptr_t lowest = UINTPTR_MAX;
  uintptr_t highest = 0;
  const mob_status_t listed =
      transport::for_each_run(shape, [&](char* remote, const char*, size_t bytes) {
        if (span == slots.spans + kMostSpans) return MOB_ERR_RANGE;
        *span++ = {remote, bytes};
        lowest = std::min(lowest, reinterpret_cast<uintptr_t>(remote));
        highest = std::max(highest, reinterpret_cast<uintptr_t>(remote) + bytes);
        return MOB_OK;
      });
  if (listed != MOB_OK) return false;
  request.count = static_cast<uint32_t>(span - slots.spans);
  request.lowest = lowest;
  request.hull_bytes = highest - lowest;
  if (put) {
    pack_in_slots(slots.data, shape.total_bytes, 1, [&](unsigned char* data) {
      static_cast<void>(
          transport::for_each_run(shape, [&](const char*, const char* local, size_t bytes) {
            transport::copy(data, local, bytes);
            data += bytes;
            return MOB_OK;
          }));
    });
  }
  return true;
}

void Delegation::take_spans(const DelegationSlots& slots, const Shape& shape) {
  const unsigned char* data = slots.data;
  static_cast<void>(
      transport::for_each_run(shape, [&](const char*, char* local, size_t bytes) -> mob_status_t {
        transport::copy(local, data, bytes);
        data += bytes;
        return MOB_OK;
      }));
}

// Posts the request that is described in the first slot, and awaits its answer.
Delegation::Outcome Delegation::ask(mob_rank_t rank, DelegationSlots& slots, uint16_t what,
                                    bool calls) {
  post(rank, slots.requests[0], what, false, calls);
  return await(rank, slots.requests[0], calls);
}

void Delegation::post(mob_rank_t rank, Request& request, uint16_t what, bool goes_on, bool calls) {
  request.what = what;
  request.goes_on = goes_on;
  request.caller = calls ? this_processor() : 0;
  const uint64_t number = number_of(request.state.load(std::memory_order_relaxed)) + 1;
  // Release pairs with the acquire in look_at().
  request.state.store(state_of(number, kPosted), std::memory_order_release);
  if (calls) call(rank);
}

Delegation::Outcome Delegation::await(mob_rank_t rank, Request& request, bool calls) {
  const uint64_t number = number_of(request.state.load(std::memory_order_relaxed));
  // Acquire, here and below, pairs with the release in look_at().
  const auto is_answered = [&] {
    return request.answer.load(std::memory_order_acquire) >> 1 == number;
  };
  const mob_rank_t index = segment_.peers().host_index(rank);
  Target& target = targets_[static_cast<size_t>(index)];
  for (int looks = 0; looks < kEagerLooks && !is_answered(); ++looks) {
  }
  if (!is_answered() && !calls && target.came.load(std::memory_order_relaxed)) {
    for (int looks = 0; looks < kLooksForComing && !is_answered(); ++looks) {
    }
    if (!is_answered() && is_withdrawn_from_absent(segment_.process(index), target, request)) {
      return Outcome::kNotDelegated;
    }
  }
  if (!is_answered() && !await_answer(rank, request, number, calls)) return Outcome::kNobodyCame;
  target.misses.store(0, std::memory_order_relaxed);
  target.asleep.store(0, std::memory_order_relaxed);
  target.came.store(true, std::memory_order_relaxed);
  const bool done = (request.answer.load(std::memory_order_relaxed) & 1) == kDone;
  return done ? Outcome::kDone : Outcome::kNotDelegated;
}

// Wakes the target's sleepers.
void Delegation::call(mob_rank_t rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // the request before the check
  ProcessBlock::Doorbell& doorbell = segment_.process(segment_.peers().host_index(rank)).doorbell;
  if (doorbell.sleepers.load(std::memory_order_relaxed) != 0) os::ring_sleepers(doorbell.bell);
}

// False if the request was withdrawn, or the target died during it.
bool Delegation::await_answer(mob_rank_t rank, Request& request, uint64_t number, bool calls) {
  const uint64_t start = os::now_ns();
  Target& target = targets_[static_cast<size_t>(segment_.peers().host_index(rank))];
  const uint64_t patience_ns = calls ? kCallPatienceNs : kPatienceNs;
  uint64_t next_look = start + kLookForDeathNs;
  bool may_withdraw = true;
  for (;;) {
    for (int looks = 0; looks < kLooksPerClock; ++looks) {
      if (request.answer.load(std::memory_order_acquire) >> 1 == number) {
        if (calls) note_lost_time(target, os::now_ns() - start);
        return true;
      }
      os::relax();
    }
    const uint64_t now = os::now_ns();
    if (may_withdraw && now - start > patience_ns) {
      if (withdraw(request)) {
        note_miss(target);
        note_lost_time(target, now - start);
        return false;
      }
      may_withdraw = false;  // a thread of the target took it
    }
    if (calls || now - start > kYieldAfterNs) sched_yield();
    if (now >= next_look) {
      if (segment_.peers().is_dead(rank)) return false;
      next_look = now + kLookForDeathNs;
    }
  }
}

}  // namespace mobius::engine
