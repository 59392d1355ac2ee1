// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Payloads that do not flow through a ring: the two ends of a message copy them from the sender's
// memory to the receiver's. The receiver begins, once its handler has said where to, and offers the
// rest to a sender that waits; each claims one part after the other.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>

#include "engine/segment/message_wire.h"

namespace mobius::engine {

struct MessageServices;

// Payloads from here on that lie in memory which the target reaches are taken from there. Costs the
// sender a wait for the target, and saves one of two copies.
inline constexpr size_t kInPlaceFromBytes = size_t{16} << 10;

// The same for other memory, which the kernel copies from, of messages that their sender does not
// wait for: it costs the target a system call and a look at each page, and the sender nothing.
inline constexpr size_t kAttachFromBytes = size_t{128} << 10;

// Payloads from here on are offered to the sender, too, and are worth a look at whether the kernel
// should copy them; those in memory that the receiver has mapped are later, as it copies these
// faster than it hands over parts.
inline constexpr size_t kSharedFromBytes = size_t{64} << 10;
inline constexpr size_t kMappedSharedFromBytes = size_t{256} << 10;

// From which size on a sender that waits has a payload in private memory copied by cross-memory
// attach, which costs a look at each page, instead of through a ring, which copies twice; SIZE_MAX:
// never. Measured at the first call: kernels and processors differ in it by a factor of ten.
size_t attach_from_bytes();

// The sender's part in message `number`; false if there was none to claim.
bool help_to_copy(const MessageServices& services, mob_rank_t receiver, SharedCopy& copy,
                  uint64_t number, const void* payload, size_t payload_bytes);

// The receiver's part.
class PayloadCopy {
 public:
  // Copies as long as there is something to claim. False if the sender's memory cannot be read;
  // then it is over.
  bool start(const MessageServices& services, mob_rank_t sender, SharedCopy& copy, uint64_t number,
             uintptr_t from, void* to, size_t bytes);
  // Whether the sender, too, is done with what it claimed.
  bool is_settled() const;
  // When that is so: copies what it could not; false as above.
  bool finish(const MessageServices& services, mob_rank_t sender);

 private:
  SharedCopy* copy_ = nullptr;
  uintptr_t from_ = 0;
  unsigned char* to_ = nullptr;
  size_t left_to_sender_ = 0;
  bool sender_helps_ = true;  // it could so far
};

}  // namespace mobius::engine
