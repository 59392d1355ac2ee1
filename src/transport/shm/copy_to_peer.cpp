// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/copy_to_peer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>

#include "transport/shm/copy_trial.h"

namespace mobius::transport::detail {
namespace {

using Clock = std::chrono::steady_clock;

// Each size is twice the one before; the last is of all that are larger.
constexpr size_t kSizes = 9;

// Of each thread its own: what they put, and for whom, differs, and none waits for another.
constinit thread_local std::array<CopyTrial, kSizes> trials;

CopyTrial& trial_of(size_t bytes) {
  const auto size = static_cast<size_t>(std::bit_width(bytes / kLeastTriedBytes)) - 1;
  return trials[std::min(size, kSizes - 1)];
}

}  // namespace

void copy_large_to_peer(void* to, const void* from, size_t bytes) {
  const CopyTuning tuning = copy_tuning();
  if (bytes < tuning.try_from_bytes || bytes >= tuning.stream_from_bytes) {
    copy(to, from, bytes);
    return;
  }
  CopyTrial& trial = trial_of(bytes);
  const bool past_caches = trial.goes_past_caches();
  const bool is_timed = trial.begins();
  const Clock::time_point begin = is_timed ? Clock::now() : Clock::time_point();
  if (past_caches) {
    stream(to, from, bytes);
  } else {
    copy(to, from, bytes);
  }
  if (is_timed) trial.add(std::chrono::nanoseconds(Clock::now() - begin).count());
}

}  // namespace mobius::transport::detail
