// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One operation on a target, checked and routed, and the interface of the components that carry
// operations out.

#include <mobius/atomic.h>
#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "transport/shm/shape.h"

namespace mobius::engine {

// Counters and words to notify of a transfer, as pointers here. Null: none, or only the target can
// notify it.
struct Notice {
  mob_counter* origin = nullptr;
  mob_counter* target = nullptr;
  mob_counter* completion = nullptr;
  uint64_t* signal = nullptr;
  bool by_target = false;  // the target signals and counts: its word or counter is not mapped here
};

// How long a call waits: until local completion, or not at all, with a handle, or with none (only
// the context remembers the operation).
enum class Mode { kBlocking, kHandle, kImplicit };

// How the target's bytes are reached.
enum class Path {
  kDirect,   // loads and stores to memory that is mapped here
  kCma,      // the kernel copies (cross-memory attach)
  kMessage,  // a handler of the target carries it out (request/am_rma.h)
  kNetwork   // the same, on another host
};
// For reports; in the order of Path.
inline constexpr const char* kPathNames[] = {"direct", "cma", "message", "network"};
inline constexpr size_t kPathCount = std::size(kPathNames);

struct Route {
  Path path = Path::kDirect;
  ptrdiff_t delta = 0;         // direct: added to a target's address it gives the address here
  bool calls = false;          // cma, message: worth waking a waiter (rma/delegation.h)
  bool may_read_gaps = false;  // cma: all bytes from the first to the last are exposed
};

// A transfer. Valid during the call only, as is everything that it points to except the data.
struct Operation {
  const char* call = nullptr;  // the public function, for error texts
  const mob_transfer_t* transfer = nullptr;
  transport::Shape shape;
  Route route;
  Notice notice;
  Mode mode = Mode::kBlocking;
  uint64_t* handle = nullptr;  // mode kHandle: MOB_HANDLE_DONE until something is pending
};

// Whether a transfer counts anything when it is complete.
inline bool counts(const mob_transfer_t& transfer) {
  return transfer.origin_counter != nullptr || transfer.target_counter != nullptr ||
         transfer.completion_counter != nullptr || transfer.origin_word != nullptr ||
         transfer.completion_word != nullptr;
}

// A read-modify-write of one word of 4 or 8 bytes.
struct WordUpdate {
  const char* call = nullptr;
  mob_rank_t rank = 0;
  mob_rmw_t_ what = MOB_RMW_ADD_;
  void* remote = nullptr;  // in the target
  void* word = nullptr;    // its address here; null: only the target can reach it
  uint64_t value = 0;
  uint64_t expected = 0;
  void* old = nullptr;  // out: the former value, as wide as the word
  unsigned bytes = 0;
};

// Carries out operations. Hooks (transfer/hooks/) are carriers in front of another carrier.
class Carrier {
 public:
  Carrier() = default;
  virtual ~Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  // After an error nothing was transferred and nothing was notified.
  virtual mob_status_t carry(const Operation& operation) = 0;
  virtual mob_status_t update(const WordUpdate& update) = 0;

  // A fence: at each target, operations that the calling thread carried before become visible
  // before those that it carries later.
  virtual mob_status_t order() = 0;

  // Advances pending operations; true if there was anything to do. Any thread, also from waits.
  virtual bool progress() = 0;
};

}  // namespace mobius::engine
