// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One operation on a target, checked and routed, and the interface of what carries it out.

#include <mobius/atomic.h>
#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "transport/shm/shape.h"

namespace mobius::engine {

// Who is told of a transfer, as pointers here; null for nobody, or for somebody whom only the
// target can tell.
struct Notice {
  mob_counter* origin = nullptr;
  mob_counter* target = nullptr;
  mob_counter* completion = nullptr;
  uint64_t* signal = nullptr;
  bool by_target = false;  // the target gives the signal: it lies in memory not mapped here
};

// Up to where a call waits: local completion, or a start with a handle, or a start that only the
// context remembers.
enum class Mode { kBlocking, kHandle, kImplicit };

// The way to the target's bytes.
enum class Path {
  kDirect,   // loads and stores: they are mapped here
  kCma,      // the kernel copies (cross-memory attach)
  kMessage,  // the target does it (served.h)
  kNetwork   // the same, on another host
};
// For those who report; in the order of Path.
inline constexpr const char* kPathNames[] = {"direct", "cma", "message", "network"};
inline constexpr size_t kPathCount = std::size(kPathNames);

struct Route {
  Path path = Path::kDirect;
  ptrdiff_t delta = 0;         // direct: what is added to an address of the target to reach it here
  bool calls = false;          // cma, message: worth waking a target that waits asleep (desk.h)
  bool may_read_gaps = false;  // cma: all between the first and the last byte is exposed
};

// A transfer. Valid during the call only, as is all that it points to but the data.
struct Operation {
  const char* call = nullptr;  // the public function, for texts
  const mob_transfer_t* transfer = nullptr;
  transport::Shape shape;
  Route route;
  Notice notice;
  Mode mode = Mode::kBlocking;
  uint64_t* handle = nullptr;  // mode kHandle: holds MOB_HANDLE_DONE until something is pending
};

// Whether something is to be counted when a transfer is complete.
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
  void* word = nullptr;    // the same, reached from here; null: only the target can
  uint64_t value = 0;
  uint64_t expected = 0;
  void* old = nullptr;  // out: as wide as the word
  unsigned bytes = 0;
};

// Carries operations out. Hooks (hooks/) are carriers in front of another one.
class Carrier {
 public:
  Carrier() = default;
  virtual ~Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  // After an error nothing was transferred and nobody is told.
  virtual mob_status_t carry(const Operation& operation) = 0;
  virtual mob_status_t update(const WordUpdate& update) = 0;

  // A fence: what the calling thread had carried before becomes visible, at each target, before
  // what it has carried later.
  virtual mob_status_t order() = 0;

  // Pushes on what is under way; whether there was anything to do. Any thread, also from waits.
  virtual bool progress() = 0;
};

}  // namespace mobius::engine
