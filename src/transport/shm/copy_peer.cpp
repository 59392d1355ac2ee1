// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/copy_peer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <memory>
#include <new>

#include "transport/shm/copy_tuner.h"

namespace mobius::transport::detail {
namespace {

// Each size is twice the one before; the last stands for all larger sizes.
constexpr size_t kSizes = 9;

using OfSizes = std::array<CopyTuner, kSizes>;

struct Tuners {
  OfSizes puts;
  OfSizes parts;
  // For sizes that copy() writes past the caches.
  OfSizes long_puts;
  OfSizes long_gets;

  Tuners() {
    long_puts.fill(CopyTuner(CopyTuner::Length::kLong));
    long_gets = long_puts;
  }
};

// The tuners of the calling thread: threads write different data for different readers, and must
// not wait for each other. On the heap, because a library that is loaded later gets little
// thread-local room. Null if there is no memory.
Tuners* tuners() {
  thread_local std::unique_ptr<Tuners> own;
  if (own == nullptr) [[unlikely]]
    own.reset(new (std::nothrow) Tuners);
  return own.get();
}

// The tuner for copies of a kind and about this size, or for the long kind if copy() would bypass
// the caches; null if this copy is not to be tried.
CopyTuner* tuner_of(OfSizes Tuners::* kind, OfSizes Tuners::* long_kind, size_t least,
                    size_t bytes) {
  const CopyTuning tuning = copy_tuning();
  if (bytes >= tuning.stream_from_bytes) kind = long_kind;
  if (bytes < tuning.try_from_bytes || kind == nullptr) return nullptr;
  Tuners* all = tuners();
  if (all == nullptr) return nullptr;
  const auto size = static_cast<size_t>(std::bit_width(bytes / least)) - 1;
  return &(all->*kind)[std::min(size, kSizes - 1)];
}

int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void take(bool past_caches, void* to, const void* from, size_t bytes) {
  if (past_caches) {
    stream(to, from, bytes);
  } else {
    copy_through_caches(to, from, bytes);
  }
}

void copy_as_tried(CopyTuner* tuner, void* to, const void* from, size_t bytes) {
  if (tuner == nullptr) return copy(to, from, bytes);
  const bool past_caches = tuner->goes_past_caches();
  if (!tuner->begins()) [[likely]] {
    take(past_caches, to, from, bytes);
    return;
  }
  const int64_t begin_ns = now_ns();
  take(past_caches, to, from, bytes);
  tuner->add(begin_ns, now_ns());
}

}  // namespace

void copy_large_to_peer(void* to, const void* from, size_t bytes) {
  copy_as_tried(tuner_of(&Tuners::puts, &Tuners::long_puts, kLeastTriedBytes, bytes), to, from,
                bytes);
}

void copy_large_part_to_peer(void* to, const void* from, size_t bytes) {
  copy_as_tried(tuner_of(&Tuners::parts, nullptr, kLeastTriedPart, bytes), to, from, bytes);
}

void copy_large_from_peer(void* to, const void* from, size_t bytes) {
  copy_as_tried(tuner_of(nullptr, &Tuners::long_gets, kLeastTriedGet, bytes), to, from, bytes);
}

}  // namespace mobius::transport::detail
