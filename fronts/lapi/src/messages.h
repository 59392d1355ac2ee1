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
// adds; the counters are there only if there is one. Two words, written as such: the engine copies
// them at once, and a load that is wider than the stores before it waits for them.
class Wire {
 public:
  struct Fields {
    Form form;
    uint8_t handle;
    bool has_counters;
    uint16_t header_bytes;
    uint32_t vectors;
  };

  Wire() = default;
  // `handler` is an address or index.
  Wire(uint64_t handler, const Fields& fields)
      : handler_(handler),
        fields_(uint64_t{fields.vectors} | uint64_t{fields.header_bytes} << 32 |
                uint64_t{fields.handle} << 48 | static_cast<uint64_t>(fields.form) << 56 |
                uint64_t{fields.has_counters} << 63) {}

  uint64_t handler() const { return handler_; }
  uint32_t vectors() const { return static_cast<uint32_t>(fields_); }
  uint16_t header_bytes() const { return static_cast<uint16_t>(fields_ >> 32); }
  uint8_t handle() const { return static_cast<uint8_t>(fields_ >> 48); }
  Form form() const { return static_cast<Form>(fields_ >> 56 & 0x7f); }
  bool has_counters() const { return fields_ >> 63 != 0; }

 private:
  uint64_t handler_;
  uint64_t fields_;
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
