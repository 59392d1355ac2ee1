// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Payloads that do not pass through a ring: both ends of a message copy them from the sender's
// memory to the receiver's. The receiver begins once its handler has named the destination, and
// offers the rest to a waiting sender; each end claims one part after the other.

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>

#include "engine/segment/message_wire.h"

namespace mobius::engine {

struct MessageServices;

// From this size on, the target takes a payload from the sender's memory if it can reach that
// memory. The sender has to wait for the target, but one of two copies is saved.
inline constexpr size_t kInPlaceFromBytes = size_t{16} << 10;

// From this size on, the kernel copies payloads in other memory, for messages that the sender does
// not wait for. This costs the target a system call and a lookup of each page, and the sender
// nothing.
inline constexpr size_t kAttachFromBytes = size_t{128} << 10;

// From this size on, the receiver offers parts of a payload to the sender, and it is worth testing
// whether the kernel should copy them. For memory that the receiver has mapped the threshold is
// higher, because it copies such memory faster than it hands over parts.
inline constexpr size_t kSharedFromBytes = size_t{64} << 10;
inline constexpr size_t kMappedSharedFromBytes = size_t{256} << 10;

// From this size on, a waiting sender has a payload in private memory copied by cross-memory
// attach, which looks up each page, instead of through a ring, which copies twice. SIZE_MAX: never.
// Measured at the first call, because kernels and processors differ by a factor of ten.
size_t attach_from_bytes();

// The sender copies one part of message `number`; false if there was none to claim.
bool help_to_copy(const MessageServices& services, mob_rank_t receiver, SharedCopy& copy,
                  uint64_t number, const void* payload, size_t payload_bytes);

// The receiver's part of the copying.
class PayloadCopy {
 public:
  // Copies as long as there is a part to claim. False if the sender's memory cannot be read; the
  // copy has ended then.
  bool start(const MessageServices& services, mob_rank_t sender, SharedCopy& copy, uint64_t number,
             uintptr_t from, void* to, size_t bytes);
  // Whether the sender, too, has finished the parts that it claimed.
  bool is_settled() const;
  // Called once settled: copies the part that the sender could not copy; false as above.
  bool finish(const MessageServices& services, mob_rank_t sender);

 private:
  SharedCopy* copy_ = nullptr;
  uintptr_t from_ = 0;
  unsigned char* to_ = nullptr;
  size_t left_to_sender_ = 0;
  bool sender_helps_ = true;  // false after the sender failed to copy a part
};

}  // namespace mobius::engine
