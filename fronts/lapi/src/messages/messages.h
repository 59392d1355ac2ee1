// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Active messages: their format, and their treatment at the target.

#include <mobius/message.h>

#include <lapi.h>

namespace lapi {

struct Context;

// How the data of a message is packed.
enum class Form : uint8_t {
  kPlain,
  kVector,    // the lengths of its vectors come first
  kCompleted  // no data: the receiver counts a completion counter
};

// Precedes the user's header. It is short, so that a short message with the engine's header fits in
// one cache line. The counters are present only if there is one. It is two words, written as words:
// the engine copies them soon, and a load that is wider than the stores before it waits for them.
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

// The identifier of LAPI's messages; the program's messages have the others.
inline constexpr unsigned kMessageId = MOB_MAX_HANDLERS - 1;

mob_status_t register_messages();

}  // namespace lapi
