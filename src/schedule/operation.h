// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Operations on the memory of one target of another host, recorded to be issued later, in another
// order, or several in one message. This folder depends neither on the network nor on the engine,
// so that its decisions can be tested and printed without them.

#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>

namespace mobius::schedule {

enum class Kind : uint8_t {
  kPut,
  kGet,
  kAccumulate,  // elements of `type`, combined by `op`
  kFetch,       // the same, and the former values come back to `fetched`
  kSignal,      // changes a word by `value`, as `op` says (mob_signal_op_t)
  kTell         // bytes for the target's engine; they have no address
};
inline constexpr size_t kKinds = 6;

constexpr Kind kind_of(mob_kind_t kind) {
  switch (kind) {
    case MOB_PUT:
      return Kind::kPut;
    case MOB_GET:
      return Kind::kGet;
    case MOB_ACCUMULATE:
      return Kind::kAccumulate;
    case MOB_FETCH_ACCUMULATE:
      break;
  }
  return Kind::kFetch;
}

// A put, get or the like of one contiguous range. The recording code decides who owns the bytes at
// `local`, and until when.
struct Operation {
  Kind kind = Kind::kPut;
  bool fenced = false;  // ordered after all operations recorded before
  bool kept = false;    // `local` is a copy that belongs to the queue
  uint8_t type = 0;
  uint8_t op = 0;
  uint16_t calls = 1;  // number of calls: neighbours may be merged when recorded
  size_t bytes = 0;
  uint64_t remote = 0;
  char* local = nullptr;
  // Fields of some kinds only share this member: a thousand operations should fit into a
  // first-level cache.
  uint64_t own = 0;

  // kFetch: destination of the former values.
  char* fetched() const { return kind == Kind::kFetch ? reinterpret_cast<char*>(own) : nullptr; }
  void set_fetched(void* to) { own = reinterpret_cast<uintptr_t>(to); }
  // kSignal.
  uint64_t value() const { return own; }
  void set_value(uint64_t value) { own = value; }
  // kGet: the waiter of this get alone, which is then a transfer by itself; or null.
  void* waiter() const { return kind == Kind::kGet ? reinterpret_cast<void*>(own) : nullptr; }
  void set_waiter(void* who) { own = reinterpret_cast<uintptr_t>(who); }
};
static_assert(sizeof(Operation) == 40);

// Whether another allocation of the target may begin at this address. A contiguous range must lie
// in one allocation, so neighbouring operations are not merged across it.
inline constexpr uint64_t kMemoryUnit = uint64_t{2} << 20;
constexpr bool may_begin_memory(uint64_t remote) { return remote % kMemoryUnit == 0; }

// Whether the operation changes memory of the target; otherwise it only reads.
constexpr bool changes(Kind kind) { return kind != Kind::kGet; }

// Whether its answer carries data.
constexpr bool is_answered_with_data(Kind kind) {
  return kind == Kind::kGet || kind == Kind::kFetch;
}

// Whether its request carries data.
constexpr bool carries_data(Kind kind) { return kind != Kind::kGet && kind != Kind::kSignal; }

// Values of these sizes are stored by one instruction each, so that concurrent readers see whole
// values.
constexpr bool is_value(size_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

}  // namespace mobius::schedule
