// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Active messages: what travels, and what the target does with it.

#include <mobius/message.h>

#include <lapi.h>

namespace lapi {

struct Context;

// How the data of a message is packed.
enum class Form : uint32_t {
  kPlain,
  kVector,    // the lengths of its vectors come first
  kCompleted  // none: a completion counter of the receiver is to be counted
};

// Before the user's header.
struct Wire {
  uint64_t handler;  // address or index
  uint64_t target_counter;
  uint64_t completion_counter;
  uint32_t handle;
  Form form;
  uint32_t header_bytes;
  uint32_t vectors;
};
inline constexpr unsigned kMostHeaderBytes = MOB_MAX_HEADER_BYTES - sizeof(Wire);
static_assert(sizeof(Wire) % 8 == 0 && kMostHeaderBytes % 8 == 0);

// The identifier of LAPI's messages among those of the program.
inline constexpr unsigned kMessageId = MOB_MAX_HANDLERS - 1;

mob_status_t register_messages();

}  // namespace lapi
