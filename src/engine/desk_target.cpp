// SPDX-License-Identifier: BSD-3-Clause

// The side of the target: making the desk, and doing what lies on it.

#include <algorithm>
#include <cstring>

#include "engine/desk.h"
#include "engine/desk_memory.h"
#include "engine/engine.h"
#include "transport/shm/copy.h"
#include "transport/shm/move.h"

namespace mobius::engine {

using transport::Shape;

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

os::Work Desk::look(DeskMemory& desk) {
  const auto work_for = [](uint32_t processor) {
    return processor == this_processor() ? os::Work::kForNear : os::Work::kSome;
  };
  uint64_t state = desk.state.load(std::memory_order_relaxed);
  if (phase_of(state) != kLaidDown) {
    note_processor();
    const uint32_t wanted_by = desk.wanted_by.load(std::memory_order_relaxed);
    if (wanted_by == 0) [[likely]] {
      return os::Work::kNone;
    }
    desk.wanted_by.store(0, std::memory_order_relaxed);
    return work_for(wanted_by);
  }
  const uint64_t number = number_of(state);
  // Acquire pairs with the release in ask().
  if (!desk.state.compare_exchange_strong(state, state_of(number, kTakenUp),
                                          std::memory_order_acquire, std::memory_order_relaxed)) {
    return os::Work::kNone;
  }
  const uint32_t caller = desk.caller;  // the next request may be there as soon as this is answered
  const uint64_t end = carry_out(desk) ? kDone : kRefused;
  // Release pairs with the acquires in ask() and await_answer().
  desk.answer.store(number << 1 | end, std::memory_order_release);
  return caller == 0 ? os::Work::kSome : work_for(caller);
}

// Of two threads that wait at once each would write its own, again and again.
void Desk::note_processor() {
  ProcessBlock::Doorbell& doorbell = block_->doorbell;
  const uint32_t here = Progress::has_one_waiter(doorbell) ? this_processor() : 0;
  if (doorbell.processor.load(std::memory_order_relaxed) != here) [[unlikely]] {
    doorbell.processor.store(here, std::memory_order_relaxed);
  }
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
  if (desk.what == kCombination || desk.what == kCompareSwap) return update(desk);
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

bool Desk::update(DeskMemory& desk) {
  if (!is_mapped(desk.remote, desk.bytes, true)) return false;
  Update asked{};
  std::memcpy(&asked, desk.put, sizeof asked);
  if (desk.what == kCompareSwap) {
    WordUpdate swap;
    swap.rank = engine_.rank();
    swap.what = MOB_RMW_COMPARE_SWAP_;
    swap.remote = swap.word = reinterpret_cast<void*>(desk.remote);
    std::memcpy(&swap.expected, asked.scale, sizeof swap.expected);
    std::memcpy(&swap.value, asked.operand, sizeof swap.value);
    swap.old = desk.got;
    swap.bytes = desk.bytes;
    return engine_.transfers().run_on_own_memory(swap) == MOB_OK;
  }
  mob_transfer_t transfer{};
  transfer.kind = asked.fetches ? MOB_FETCH_ACCUMULATE : MOB_ACCUMULATE;
  transfer.rank = engine_.rank();
  transfer.type = static_cast<mob_type_t>(asked.type);
  transfer.op = static_cast<mob_op_t>(asked.op);
  transfer.scale = asked.has_scale ? asked.scale : nullptr;
  transfer.fetched = desk.bytes <= kInAnswer ? desk.got : desk.data + kFetchedAt;
  Shape shape;
  shape.kind = MOB_CONTIGUOUS;
  shape.total_bytes = shape.run_bytes = desk.bytes;
  shape.lowest = desk.remote;
  shape.highest = desk.remote + desk.bytes;
  shape.remote = reinterpret_cast<char*>(desk.remote);
  shape.local =
      reinterpret_cast<char*>(desk.bytes <= sizeof asked.operand ? asked.operand : desk.data);
  return engine_.transfers().run_on_own_memory(transfer, shape) == MOB_OK;
}

// Whether bytes of this process can be accessed. To touch memory that was given back would be the
// end of it; so the kernel is asked, once in a wait for all that it can tell at once.
bool Desk::is_mapped(uintptr_t address, size_t bytes, bool write) {
  const uint64_t visit = visits_.load(std::memory_order_relaxed);
  if (visit != known_visit_) {
    known_visit_ = visit;
    known_.fill({});
  }
  const uintptr_t end = address + bytes;
  for (const Known& known : known_) {
    if (address >= known.memory.start && end <= known.memory.end && (known.writable || !write)) {
      return true;
    }
  }
  os::Stretch around{};
  if (!os::is_accessible(address, bytes, write, &around)) return false;
  known_[next_known_++ % known_.size()] = {around, write};
  return true;
}

}  // namespace mobius::engine
