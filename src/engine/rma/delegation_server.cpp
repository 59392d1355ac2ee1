// SPDX-License-Identifier: BSD-3-Clause

// The target's side: allocating the slots and carrying out requests.

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "engine/progress/progress.h"
#include "engine/rma/delegation.h"
#include "engine/rma/delegation_slots.h"
#include "engine/rma/local_execute.h"
#include "engine/segment/segment.h"
#include "engine/segment/window/local_heap.h"
#include "transport/shm/copy_peer.h"
#include "transport/shm/move.h"

namespace mobius::engine {

using transport::Shape;

namespace {

// Work that was done for an origin on this processor.
os::Work work_for(uint32_t processor) {
  return processor == this_processor() ? os::Work::kForNear : os::Work::kSome;
}

}  // namespace

mob_status_t Delegation::require() {
  const std::lock_guard lock(mutex_);
  if (is_there()) return MOB_OK;
  void* memory = nullptr;
  if (const mob_status_t status =
          local_heap_.allocate(sizeof(DelegationSlots), alignof(DelegationSlots), &memory)) {
    return status;
  }
  std::memset(memory, 0, offsetof(DelegationSlots, spans));
  UnmapGuard::measure();
  auto* slots = static_cast<DelegationSlots*>(memory);
  // Release pairs with the acquire in find().
  block_->delegation_slots.store(segment_.offset_of(slots) + 1, std::memory_order_release);
  own_.store(slots, std::memory_order_release);
  return MOB_OK;
}

os::Work Delegation::look(DelegationSlots& slots) {
  const unsigned expected = next_slot_.load(std::memory_order_relaxed);
  bool goes_on = false;
  os::Work found = look_at(slots, expected, &goes_on);
  // The slots are in the middle of a transfer: another thread may have continued it, or its origin
  // withdrawn the rest.
  for (unsigned slot = 0; expected != 0 && found == os::Work::kNone && slot < kSlots; ++slot) {
    found = look_at(slots, slot, &goes_on);
  }
  if (found == os::Work::kNone) return look_idly(slots);
  // Serves all posted pieces: an origin that called from this processor gets it back once for all
  // of them, not for each piece.
  for (unsigned served = 1; goes_on && served < kSlots; ++served) {
    const os::Work more = look_at(slots, next_slot_.load(std::memory_order_relaxed), &goes_on);
    if (more == os::Work::kNone) break;
    found = more;
  }
  return found;
}

// Called when no request is posted.
os::Work Delegation::look_idly(DelegationSlots& slots) {
  note_processor();
  look_ahead();
  std::atomic<uint32_t>& wanted_by = slots.requests[0].wanted_by;
  const uint32_t who = wanted_by.load(std::memory_order_relaxed);
  if (who == 0) [[likely]] {
    return os::Work::kNone;
  }
  wanted_by.store(0, std::memory_order_relaxed);
  return work_for(who);
}

// Carries out the request of one slot. Sets whether the transfer continues in the next slot.
os::Work Delegation::look_at(DelegationSlots& slots, unsigned slot, bool* goes_on) {
  Request& request = slots.requests[slot];
  unsigned expected = next_slot_.load(std::memory_order_relaxed);
  uint64_t state = request.state.load(std::memory_order_relaxed);
  if (phase_of(state) != kPosted) return os::Work::kNone;
  const uint64_t number = number_of(state);
  // Acquire pairs with the release in post().
  if (!request.state.compare_exchange_strong(state, state_of(number, kTakenUp),
                                             std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
    return os::Work::kNone;
  }
  const uint32_t caller = request.caller;  // once this is answered, the next may overwrite it
  *goes_on = request.goes_on;
  const unsigned next = *goes_on ? (slot + 1) % kSlots : 0;
  // Has no effect if another thread has got further.
  if (next != expected) {
    next_slot_.compare_exchange_strong(expected, next, std::memory_order_relaxed);
  }
  const base::ErrorsOfOthers errors;
  const uint64_t end = carry_out(slots, request) ? kDone : kRefused;
  // Release pairs with the acquires in await() and await_answer().
  request.answer.store(number << 1 | end, std::memory_order_release);
  return caller == 0 ? os::Work::kSome : work_for(caller);
}

// Two threads that wait at once would overwrite each other's processor again and again, so none is
// noted. A thread that leaves counts as a waiter: origins that read this cache line would have to
// fetch it for every wait.
void Delegation::note_processor() {
  ProcessBlock::Doorbell& doorbell = block_->doorbell;
  const uint32_t here = Progress::has_several_waiters(doorbell) ? 0 : this_processor();
  if (doorbell.processor.load(std::memory_order_relaxed) != here) [[unlikely]] {
    doorbell.processor.store(here, std::memory_order_relaxed);
  }
}

bool Delegation::carry_out(DelegationSlots& slots, Request& request) {
  Known& known = known_[&request - slots.requests];
  switch (request.what) {
    case kRange: {
      void* memory = reinterpret_cast<void*>(request.remote);
      const size_t bytes = request.bytes;
      if (!is_mapped(known, request.remote, bytes, request.is_put)) return false;
      if (request.is_put) {
        transport::copy(memory, bytes <= kInRequest ? request.put : slots.data_of(request), bytes);
      } else {
        unsigned char* answer = bytes <= kInAnswer ? request.got : slots.data_of(request);
        if (request.goes_on) {
          transport::copy_part_to_peer(answer, memory, bytes);
        } else {
          transport::copy(answer, memory, bytes);
        }
      }
      return true;
    }
    case kBox:
      return carry_out_box(slots, request, known);
    case kSpans:
      return carry_out_spans(slots, request, known);
    default:
      return update(slots, request, known);
  }
}

bool Delegation::carry_out_box(DelegationSlots& slots, Request& request, Known& known) {
  Shape box;
  box.kind = MOB_STRIDED;
  box.total_bytes = request.bytes;
  box.remote = reinterpret_cast<char*>(request.remote);
  box.run_bytes = request.run_bytes;
  box.dimensions = static_cast<int>(request.count);
  std::copy_n(request.counts, request.count, box.counts);
  std::copy_n(request.strides, request.count, box.remote_strides);
  transport::pack_strides(box, box.local_strides);
  const auto run_is_mapped = [&](const char* run, const char*, size_t bytes) {
    return is_mapped(known, reinterpret_cast<uintptr_t>(run), bytes, request.is_put)
               ? MOB_OK
               : MOB_ERR_RANGE;
  };
  if (!hull_is_mapped(known, request) && transport::for_each_run(box, run_is_mapped) != MOB_OK) {
    return false;
  }
  unsigned char* data = slots.data_of(request);
  const auto move_to = [&](unsigned char* packed) {
    box.local = reinterpret_cast<char*>(packed);
    transport::move(box, 0, request.is_put);
  };
  if (request.is_put) {
    move_to(data);
  } else {
    pack_in_slots(data, request.bytes, request.run_bytes, move_to);
  }
  return true;
}

bool Delegation::carry_out_spans(DelegationSlots& slots, Request& request, Known& known) {
  const mob_span_t* const first = slots.spans;
  const mob_span_t* const end = first + request.count;
  const auto span_is_mapped = [&](const mob_span_t& span) {
    return is_mapped(known, reinterpret_cast<uintptr_t>(span.address), span.bytes, request.is_put);
  };
  if (!hull_is_mapped(known, request) && !std::all_of(first, end, span_is_mapped)) {
    return false;
  }
  if (request.is_put) {
    const unsigned char* data = slots.data;
    for (const mob_span_t* span = first; span != end; ++span) {
      transport::copy(span->address, data, span->bytes);
      data += span->bytes;
    }
  } else {
    pack_in_slots(slots.data, request.bytes, 1, [&](unsigned char* data) {
      for (const mob_span_t* span = first; span != end; ++span) {
        transport::copy(data, span->address, span->bytes);
        data += span->bytes;
      }
    });
  }
  return true;
}

bool Delegation::update(DelegationSlots& slots, Request& request, Known& known) {
  if (!is_mapped(known, request.remote, request.bytes, true)) return false;
  Update asked{};
  std::memcpy(&asked, request.put, sizeof asked);
  if (request.what == kCompareSwap) {
    WordUpdate swap;
    swap.rank = segment_.peers().rank();
    swap.what = MOB_RMW_COMPARE_SWAP_;
    swap.remote = swap.word = reinterpret_cast<void*>(request.remote);
    std::memcpy(&swap.expected, asked.scale, sizeof swap.expected);
    std::memcpy(&swap.value, asked.operand, sizeof swap.value);
    swap.old = request.got;
    swap.bytes = request.bytes;
    executor_.update(swap);
    return true;
  }
  mob_transfer_t transfer{};
  transfer.kind = asked.fetches ? MOB_FETCH_ACCUMULATE : MOB_ACCUMULATE;
  transfer.rank = segment_.peers().rank();
  transfer.type = static_cast<mob_type_t>(asked.type);
  transfer.op = static_cast<mob_op_t>(asked.op);
  transfer.scale = asked.has_scale ? asked.scale : nullptr;
  transfer.fetched = request.bytes <= kInAnswer ? request.got : slots.data + kFetchedAt;
  Shape shape;
  shape.kind = MOB_CONTIGUOUS;
  shape.total_bytes = shape.run_bytes = request.bytes;
  shape.lowest = request.remote;
  shape.highest = request.remote + request.bytes;
  shape.remote = reinterpret_cast<char*>(request.remote);
  shape.local =
      reinterpret_cast<char*>(request.bytes <= sizeof asked.operand ? asked.operand : slots.data);
  return executor_.serve(transfer, shape) == MOB_OK;
}

bool Delegation::Known::covers(uintptr_t address, size_t bytes, bool write) const {
  const uintptr_t end = address + bytes;
  return std::ranges::any_of(regions, [&](const Region& region) {
    return address >= region.memory.start && end <= region.memory.end &&
           (region.writable || !write);
  });
}

// Asks the kernel whether memory is mapped, once in a wait for as much as it can report. Memory
// that no request has named is not touched for that. Needs the mutex.
bool Delegation::Known::learn(uint64_t now, uintptr_t address, size_t bytes, bool write,
                              bool is_requested) {
  if (visit != now) {
    visit = now;
    regions = {};
  }
  if (covers(address, bytes, write)) return true;
  os::AddressRange around{};
  if (!os::is_accessible(address, bytes, write, &around, is_requested)) return false;
  regions[next++ % regions.size()] = {around, write};
  return true;
}

// To be called before the kernel is asked: returns the visit for which its answer holds.
uint64_t Delegation::begin_to_know() {
  const uint64_t visit = visits_.load(std::memory_order_acquire);
  if (!knows_memory()) knows_.store(true, std::memory_order_relaxed);
  return visit;
}

// Whether bytes of this process can be accessed. Touching memory that was unmapped would crash the
// process.
bool Delegation::is_mapped(Known& known, uintptr_t address, size_t bytes, bool write) {
  const uint64_t visit = begin_to_know();
  const std::lock_guard lock(known.mutex);
  known.asked_for = address;
  known.asked_bytes = bytes;
  known.asked_to_write = write;
  known.asked_in.store(visit, std::memory_order_relaxed);
  return known.learn(visit, address, bytes, write, true);
}

// A request in this wait probably names the same memory as one in the last waits. Asks the kernel
// about it before the request arrives.
void Delegation::look_ahead() {
  constexpr uint64_t kVisits = 4;
  const uint64_t visit = visits_.load(std::memory_order_relaxed);
  if (looked_in_.load(std::memory_order_relaxed) == visit) [[likely]] {
    return;
  }
  looked_in_.store(visit, std::memory_order_relaxed);
  Known& known = known_[0];
  const uint64_t asked_in = known.asked_in.load(std::memory_order_relaxed);
  if (asked_in == 0 || visit - asked_in > kVisits) return;
  const std::unique_lock lock(known.mutex, std::try_to_lock);
  if (!lock || begin_to_know() != visit) return;
  known.learn(visit, known.asked_for, known.asked_bytes, known.asked_to_write, false);
}

// The same for all memory around the runs of a request, including the gaps. False also where that
// is too much to ask for: perhaps only the runs are mapped.
bool Delegation::hull_is_mapped(Known& known, const Request& request) {
  constexpr size_t kMostAskedFor = size_t{192} << 10;
  if (request.hull_bytes <= kMostAskedFor) {
    return is_mapped(known, request.lowest, request.hull_bytes, request.is_put);
  }
  const std::lock_guard lock(known.mutex);
  return visits_.load(std::memory_order_relaxed) == known.visit &&
         known.covers(request.lowest, request.hull_bytes, request.is_put);
}

}  // namespace mobius::engine
