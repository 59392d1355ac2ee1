// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Active messages: what travels, and what the target does with it.

#include <mobius/message.h>

#include <lapi.h>

namespace lapi {

struct Context;

// How the data of a message is packed.
enum class Form : uint8_t {
  kPlain,
  kVector,    // the lengths of its vectors come first
  kCompleted  // none: a completion counter of the receiver is to be counted
};

// Before the user's header. Short, so that a short message is one cache line with what the engine
// adds; the counters are there only if there is one.
struct Wire {
  uint64_t handler;  // address or index
  uint32_t vectors;
  uint16_t header_bytes;
  uint8_t handle;
  Form form : 4;
  bool has_counters : 4;
};
struct WireCounters {
  uint64_t target;
  uint64_t completion;
};
inline constexpr unsigned kMostHeaderBytes =
    MOB_MAX_HEADER_BYTES - sizeof(Wire) - sizeof(WireCounters);
static_assert(sizeof(Wire) == 16 && kMostHeaderBytes % 8 == 0);

// The identifier of LAPI's messages among those of the program.
inline constexpr unsigned kMessageId = MOB_MAX_HANDLERS - 1;

mob_status_t register_messages();

}  // namespace lapi
