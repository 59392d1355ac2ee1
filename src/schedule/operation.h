// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What may be delayed: operations on the memory of one target of another host, recorded to be
// issued later, in another order, or several in one message. This folder knows neither network nor
// engine: what it decides can be tested, and printed, without either.

#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>

namespace mobius::schedule {

enum class Kind : uint8_t {
  kPut,
  kGet,
  kAccumulate,  // elements of `type`, combined by `op`
  kFetch,       // the same, and what was there comes back to `fetched`
  kSignal,      // a word changes by `value`, as `op` says (mob_signal_op_t)
  kTell         // bytes for the engine of the target, which have no place there
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

// Put, get and their kin of one stretch. Whose the bytes at `local` are, and until when, is a
// matter of who records.
struct Operation {
  Kind kind = Kind::kPut;
  bool fenced = false;  // everything recorded before comes before
  bool kept = false;    // `local` is a copy that belongs to the queue
  uint8_t type = 0;
  uint8_t op = 0;
  uint16_t calls = 1;  // that asked for it: neighbours may be one from the start
  size_t bytes = 0;
  uint64_t remote = 0;
  char* local = nullptr;
  // What only some kinds have, below: a thousand of these are to fit a first-level cache.
  uint64_t own = 0;

  // Of kFetch: where what was there comes back to.
  char* fetched() const { return kind == Kind::kFetch ? reinterpret_cast<char*>(own) : nullptr; }
  void set_fetched(void* to) { own = reinterpret_cast<uintptr_t>(to); }
  // Of kSignal.
  uint64_t value() const { return own; }
  void set_value(uint64_t value) { own = value; }
  // Of kGet: who waits for this one, which is a transfer by itself; or null.
  void* waiter() const { return kind == Kind::kGet ? reinterpret_cast<void*>(own) : nullptr; }
  void set_waiter(void* who) { own = reinterpret_cast<uintptr_t>(who); }
};
static_assert(sizeof(Operation) == 40);

// Whether another allocation of the target may begin at an address, where the one before ends: what
// is put there and before it is not one stretch, which must lie in one.
inline constexpr uint64_t kMemoryUnit = uint64_t{2} << 20;
constexpr bool may_begin_memory(uint64_t remote) { return remote % kMemoryUnit == 0; }

// Whether it changes memory of the target; what does not, reads it only.
constexpr bool changes(Kind kind) { return kind != Kind::kGet; }

// Whether its answer carries data.
constexpr bool is_answered_with_data(Kind kind) {
  return kind == Kind::kGet || kind == Kind::kFetch;
}

// Whether its request carries data.
constexpr bool carries_data(Kind kind) { return kind != Kind::kGet && kind != Kind::kSignal; }

// Values of these sizes stay whole for who reads them meanwhile: they are stored one by one.
constexpr bool is_value(size_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

}  // namespace mobius::schedule
