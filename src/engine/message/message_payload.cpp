// SPDX-License-Identifier: BSD-3-Clause
#include "engine/message/message_payload.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "engine/message/message_services.h"
#include "engine/segment/kernel_copy.h"
#include "engine/segment/peer_memory.h"
#include "transport/cma/cma.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

// The least time of several runs, which other load does not disturb.
template <typename Body>
int64_t least_ns(Body body) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < 8; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const auto end = std::chrono::steady_clock::now();
    least = std::min<int64_t>(
        least, std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count());
  }
  return least;
}

// A copy through a ring takes two to three times as long as a copy from cache to cache. The two
// ends share the kernel's copy. If the kernel is slower than the ring with a few bytes, it is also
// slower with many.
size_t measure_attach() {
  constexpr size_t kSooner = size_t{64} << 10;
  constexpr size_t kNever = SIZE_MAX;
  constexpr int64_t kMostTimesSlower = 4;
  const std::unique_ptr<unsigned char[]> memory(new (std::nothrow) unsigned char[2 * kSooner]);
  if (memory == nullptr) return kNever;
  unsigned char* from = memory.get();
  unsigned char* to = from + kSooner;
  std::memset(from, 1, 2 * kSooner);
  bool works = true;
  const int64_t by_kernel = least_ns([&] {
    works &=
        transport::cma_copy(getpid(), reinterpret_cast<uintptr_t>(from), to, kSooner, false) == 0;
  });
  const int64_t by_pointer = least_ns([&] { transport::copy(to, from, kSooner); });
  return works && by_kernel <= kMostTimesSlower * by_pointer ? kSooner : kNever;
}

}  // namespace

size_t attach_from_bytes() {
  static const size_t bytes = measure_attach();
  return bytes;
}

bool help_to_copy(const MessageServices& services, mob_rank_t receiver, SharedCopy& copy,
                  uint64_t number, const void* payload, size_t payload_bytes) {
  // Acquire pairs with the release in PayloadCopy::start().
  if (copy.number.load(std::memory_order_acquire) != number || copy.failed_bytes != 0) return false;
  size_t offset = 0;
  const size_t part = claim_part(copy, payload_bytes, &offset);
  if (part == 0) return false;
  auto* from = const_cast<unsigned char*>(static_cast<const unsigned char*>(payload)) + offset;
  if (copy_with_peer(services.segment, services.kernel_copy.allowed(receiver), receiver,
                     copy.to + offset, from, part, true) != 0) {
    copy.failed_at = offset;
    copy.failed_bytes = part;
  }
  // Release pairs with the acquire in PayloadCopy::is_settled(): the bytes or the failure are
  // visible.
  copy.settled.store(copy.settled.load(std::memory_order_relaxed) + part,
                     std::memory_order_release);
  return true;
}

bool PayloadCopy::start(const MessageServices& services, mob_rank_t sender, SharedCopy& copy,
                        uint64_t number, uintptr_t from, void* to, size_t bytes) {
  copy_ = &copy;
  from_ = from;
  to_ = static_cast<unsigned char*>(to);
  left_to_sender_ = 0;
  if (bytes < kSharedFromBytes || !sender_helps_ ||
      (bytes < kMappedSharedFromBytes &&
       mapped(services.segment, sender, from, bytes) != nullptr)) {
    return copy_with_peer(services.segment, services.kernel_copy.allowed(sender), sender, from, to,
                          bytes, false) == 0;
  }
  static const bool allowed = [] {
    transport::allow_attach();
    return true;
  }();
  static_cast<void>(allowed);
  copy.to = reinterpret_cast<uintptr_t>(to);
  copy.claimed.store(0, std::memory_order_relaxed);
  copy.settled.store(0, std::memory_order_relaxed);
  copy.failed_bytes = 0;
  size_t offset = 0;
  size_t part = claim_part(copy, bytes, &offset);
  // Release pairs with the acquire in help_to_copy().
  copy.number.store(number, std::memory_order_release);
  size_t mine = 0;
  for (; part != 0; part = claim_part(copy, bytes, &offset)) {
    if (copy_with_peer(services.segment, services.kernel_copy.allowed(sender), sender,
                       from + offset, to_ + offset, part, false) != 0) {
      return false;
    }
    mine += part;
  }
  left_to_sender_ = bytes - mine;
  return true;
}

bool PayloadCopy::is_settled() const {
  // Acquire pairs with the release in help_to_copy().
  return left_to_sender_ == 0 || copy_->settled.load(std::memory_order_acquire) == left_to_sender_;
}

bool PayloadCopy::finish(const MessageServices& services, mob_rank_t sender) {
  if (left_to_sender_ == 0 || copy_->failed_bytes == 0) return true;
  sender_helps_ = false;
  return copy_with_peer(services.segment, services.kernel_copy.allowed(sender), sender,
                        from_ + copy_->failed_at, to_ + copy_->failed_at, copy_->failed_bytes,
                        false) == 0;
}

}  // namespace mobius::engine
