// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The fast path, which most messages take: from the call to a record in a local peer's ring in one
// piece of code. Calls with so many arguments would take a good part of its time.

#include <mobius/message.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/common/instrumentation.h"
#include "engine/common/thread_id.h"
#include "engine/message/message.h"
#include "engine/message/message_sender.h"
#include "engine/progress/progress.h"
#include "engine/segment/message_wire.h"
#include "os/sync/hybrid_lock.h"
#include "os/sync/ring.h"
#include "transport/shm/copy_peer.h"

namespace mobius::engine {

// Payload of a record that continues a message. With the record's header it is a power of two, so
// that records fill a lap of the ring.
inline constexpr size_t kMoreBytes = (size_t{8} << 10) - os::kRingPayloadAlignment;
// Most bytes in a record besides the payload.
inline constexpr size_t kMostBesidePayload =
    sizeof(WireMessage) + sizeof(WireNotify) + padded(MOB_MAX_HEADER_BYTES);
// Most payload that always fits into one record.
inline constexpr size_t kMostSentNow = kMoreBytes - kMostBesidePayload;

inline bool has_notify(const Outgoing& message) {
  return message.notify.target_counter != nullptr || message.notify.completion_counter != nullptr;
}

// Copies one word and advances both pointers.
template <typename Word>
[[gnu::always_inline]] inline void copy_word(unsigned char*& to, const unsigned char*& from) {
  Word word = 0;
  std::memcpy(&word, from, sizeof word);
  asm("" : "+r"(word));  // keeps the compiler from merging several copies into one
  std::memcpy(to, &word, sizeof word);
  from += sizeof word;
  to += sizeof word;
}

// Copies word by word: a short header was written by words just before, and a wider load would wait
// for those stores. Calls nothing, so that its callers need not save registers.
[[gnu::always_inline]] inline void copy_header(unsigned char* to, const void* from, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(from);
  const unsigned char* const end = at + bytes / sizeof(uint64_t) * sizeof(uint64_t);
  while (at != end) copy_word<uint64_t>(to, at);
  if (bytes % sizeof(uint64_t) == 0) [[likely]] {
    return;
  }
  if ((bytes & sizeof(uint32_t)) != 0) copy_word<uint32_t>(to, at);
  for (size_t left = bytes % sizeof(uint32_t); left != 0; --left) copy_word<uint8_t>(to, at);
}

// Bytes in front of the payload, which is aligned.
inline size_t head_bytes(const Outgoing& message, bool notify) {
  return sizeof(WireMessage) + (notify ? sizeof(WireNotify) : 0) + message.header_bytes;
}

// Writes those bytes; returns where the payload goes.
[[gnu::always_inline]] inline unsigned char* put_head(unsigned char* record,
                                                      const Outgoing& message, bool notify,
                                                      bool in_place) {
  const WireMessage wire{message.payload_bytes, static_cast<uint16_t>(message.id),
                         static_cast<uint16_t>(message.header_bytes),
                         (notify ? kHasNotify : 0) | (in_place ? kInPlace : 0)};
  std::memcpy(record, &wire, sizeof wire);
  unsigned char* next = record + sizeof wire;
  if (notify) {
    const WireNotify counters{message.notify.target_counter, message.notify.completion_counter};
    std::memcpy(next, &counters, sizeof counters);
    next += sizeof counters;
  }
  copy_header(next, message.header, message.header_bytes);
  return next + padded(message.header_bytes);
}

// Writes a message that fits into one record to the ring; false if there is no room. Needs the
// turn. The caller still has to tell the target.
[[gnu::always_inline]] inline bool MessageSender::write_whole(const Outgoing& message) {
  const bool notify = has_notify(message);
  size_t bytes = head_bytes(message, notify);
  if (message.payload_bytes != 0) bytes = padded(bytes) + message.payload_bytes;
  auto* record = static_cast<unsigned char*>(writer_.reserve(bytes, kFirst));
  if (record == nullptr) [[unlikely]] {
    return false;
  }
  unsigned char* payload = put_head(record, message, notify, false);
  if (message.payload_bytes != 0) {
    transport::copy_part_to_peer(payload, message.payload, message.payload_bytes);
    streamed_bytes_ += message.payload_bytes;
  }
  writer_.commit();
  note_written(message.id);
  return true;
}

inline void MessageSender::note_written(unsigned id) {
  // Release pairs with the acquire in written() and flush(): the counted messages are written.
  const uint64_t written = written_.load(std::memory_order_relaxed) + 1;
  written_.store(written, std::memory_order_release);
  if (id < kPublicHandlers) own_written_.store(written, std::memory_order_release);
}

inline void MessageSender::tell_target_after_fence() {
  ProcessBlock& target = *target_block_;
  if (index_ >= kPolledRings) [[unlikely]] {
    // Pairs with Messages::serve_written(), which clears the bit before it reads the ring.
    std::atomic<uint64_t>& word = target.inbox.written[index_ / 64];
    const uint64_t bit = uint64_t{1} << (index_ % 64);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) {
      word.fetch_or(bit, std::memory_order_seq_cst);
    }
  }
  Progress::wake_after_fence(target.doorbell);
}

inline bool MessageSender::knows_handler(unsigned id) const {
  return target_block_->inbox.has_handler(id);
}

// As write_whole(), for a header that fits into a line with the bytes in front of it.
[[gnu::always_inline]] inline bool MessageSender::write_bare(unsigned id, const void* header,
                                                             size_t header_bytes) {
  const size_t bytes = sizeof(WireMessage) + header_bytes;
  auto* record = static_cast<unsigned char*>(writer_.reserve_line(bytes, kFirst));
  if (record == nullptr) [[unlikely]] {
    return false;
  }
  put_head(record, {id, header, header_bytes}, false, false);
  writer_.commit_line(record);
  note_written(id);
  return true;
}

// Calls nothing while an argument is still needed, so that few registers are saved.
[[gnu::always_inline]] inline BareSent MessageSender::send_bare(unsigned id, const void* header,
                                                                size_t header_bytes) {
  const uint32_t self = known_thread_id();
  // A message queued from now on need not go first: another thread has sent it.
  if (!sends_bare_.load(std::memory_order_relaxed) ||
      header_bytes > os::kRingLinePayload - sizeof(WireMessage) || !knows_handler(id) ||
      has_queue() || self == 0 || !os::try_lock(turn_, self)) [[unlikely]] {
    return BareSent::kUnsent;
  }
  if (!write_bare(id, header, header_bytes)) [[unlikely]] {
    return BareSent::kNoRoom;
  }
  if (!os::try_unlock(turn_, self) || has_queue() ||
      Progress::is_to_be_woken(target_block_->doorbell)) [[unlikely]] {
    finish_bare();
  }
  return BareSent::kSent;
}

[[gnu::always_inline]] inline bool MessageSender::send_plain(unsigned id, const void* header,
                                                             size_t header_bytes,
                                                             const void* payload,
                                                             size_t payload_bytes) {
  if (link_ != nullptr || payload_bytes > kMostSentNow || broken_.load(std::memory_order_relaxed) ||
      !knows_handler(id)) [[unlikely]] {
    return false;
  }
  const uint32_t self = thread_id();
  if (!os::try_lock(turn_, self)) [[unlikely]] {
    return false;
  }
  const bool written =
      !has_queue() && !widens() && write_whole({id, header, header_bytes, payload, payload_bytes});
  os::unlock(turn_, self);
  if (written) [[likely]] {
    tell_target_after_fence();
  }
  if (has_queue()) [[unlikely]] {
    pump();  // messages queued during this thread's turn
  }
  return written;
}

[[gnu::always_inline]] inline BareSent Messages::send_bare(mob_rank_t rank, unsigned id,
                                                           const void* header,
                                                           size_t header_bytes) {
  MessageSender* sender = by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
  if (sender == nullptr || puts_wait()) [[unlikely]] {
    return BareSent::kUnsent;
  }
  return sender->send_bare(id, header, header_bytes);
}

[[gnu::always_inline]] inline bool Messages::send_plain(mob_rank_t rank, unsigned id,
                                                        const void* header, size_t header_bytes,
                                                        const void* payload, size_t payload_bytes) {
  MessageSender* sender = by_rank_[static_cast<size_t>(rank)].load(std::memory_order_acquire);
  if (sender == nullptr || !sent_by_program() || services_.instrumentation.counts_messages())
      [[unlikely]] {
    return false;
  }
  issue_puts();
  return sender->send_plain(id, header, header_bytes, payload, payload_bytes);
}

}  // namespace mobius::engine
