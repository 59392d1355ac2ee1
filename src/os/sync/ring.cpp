// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/ring.h"

namespace mobius::os {

using ring_detail::kSkip;
using ring_detail::record_bytes;
using ring_detail::tag_of;

// Whether there is room for `bytes` and the line after them, given the consumer's published
// position.
bool RingWriter::has_room(size_t bytes) {
  if (position_ + bytes + kRingLine <= limit_) return true;
  // Acquire pairs with the release in RingReader::publish().
  limit_ = released_->load(std::memory_order_acquire) + capacity();
  return position_ + bytes + kRingLine <= limit_;
}

bool RingWriter::make_room(size_t bytes) {
  if (bytes > ring_max_payload(capacity())) return false;
  const size_t needed = record_bytes(bytes);
  const size_t rest = capacity() - (position_ & mask_);
  if (needed > rest) {
    if (!has_room(rest)) return false;
    ring_detail::Header* skipped = header(position_);
    clear(position_ + rest);
    skipped->bytes = 0;
    skipped->kind = kSkip;
    // Release pairs with the acquire in RingReader::peek().
    skipped->tag.store(tag_of(position_), std::memory_order_release);
    position_ += rest;
  }
  return has_room(needed);
}

}  // namespace mobius::os
