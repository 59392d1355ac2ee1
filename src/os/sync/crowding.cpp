// SPDX-License-Identifier: BSD-3-Clause
#include "os/sync/crowding.h"

#include <algorithm>

#include "os/cpu/scheduling.h"
#include "os/sync/futex.h"

namespace mobius::os {
namespace {

constexpr uint64_t kTakenNs = 5'000;       // longer than a yield during which no other process runs
constexpr uint64_t kInARowNs = 1'000'000;  // longest time from one such yield to the next
constexpr uint32_t kMostTaken = 4;
// The pause after a move; it doubles each time that a move did not help.
constexpr uint64_t kFirstPauseNs = 2'000'000;
constexpr uint64_t kLongestPauseNs = 1'000'000'000;

// A place: the processor plus 1 in the low bits, the time in steps of about a millisecond above.
constexpr uint32_t kProcessorBits = 10;
constexpr uint32_t kProcessorMask = (uint32_t{1} << kProcessorBits) - 1;
constexpr unsigned kStepShift = 20;
constexpr uint32_t kFreshSteps = 4;

}  // namespace

void Crowding::open(Place* places, size_t distance, uint32_t count, uint32_t own) {
  places_ = reinterpret_cast<unsigned char*>(places);
  distance_ = distance;
  set_count(count);
  own_ = own;
}

void Crowding::link(Crowding& other) {
  const std::lock_guard lock(links_mutex_);
  links_.push_back(&other);
}

void Crowding::unlink(Crowding& other) {
  const std::lock_guard lock(links_mutex_);
  std::erase(links_, &other);
}

void Crowding::publish(uint32_t place_of_own) {
  place(own_).store(place_of_own, std::memory_order_relaxed);
  const std::lock_guard lock(links_mutex_);
  for (const Crowding* each : links_) {
    each->place(each->own_).store(place_of_own, std::memory_order_relaxed);
  }
}

void Crowding::yield() {
  const uint64_t before = now_ns();
  sched_yield();
  const uint64_t now = now_ns();
  if (now - before >= kTakenNs) [[unlikely]] {
    note_taken(before, now);
  }
}

void Crowding::note_taken(uint64_t before, uint64_t now) {
  const int processor = own_processor();
  publish(place_of(processor, now));
  const bool in_a_row = before - last_ns_.load(std::memory_order_relaxed) < kInARowNs;
  last_ns_.store(now, std::memory_order_relaxed);
  const uint32_t taken = in_a_row ? taken_.load(std::memory_order_relaxed) + 1 : 1;
  taken_.store(taken, std::memory_order_relaxed);
  if (taken < kMostTaken ||
      now - left_ns_.load(std::memory_order_relaxed) < pause_ns_.load(std::memory_order_relaxed)) {
    return;
  }
  cpu_set_t allowed;
  // Fails on machines with more processors than a set has room for; then the thread stays.
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  const int better = better_than(processor, allowed, now);
  if (better < 0) return;
  move_to_processor(better, allowed);
  publish(place_of(better, now));
  taken_.store(0, std::memory_order_relaxed);
  const uint64_t pause = pause_ns_.load(std::memory_order_relaxed);
  const bool in_vain = now - left_ns_.load(std::memory_order_relaxed) < 2 * pause;
  pause_ns_.store(in_vain ? std::min(2 * pause, kLongestPauseNs) : kFirstPauseNs,
                  std::memory_order_relaxed);
  left_ns_.store(now, std::memory_order_relaxed);
}

uint32_t Crowding::place_of(int processor, uint64_t now_ns) {
  const auto number = static_cast<uint32_t>(processor + 1);
  return number > kProcessorMask
             ? 0
             : static_cast<uint32_t>(now_ns >> kStepShift) << kProcessorBits | number;
}

int Crowding::better_than(int processor, const cpu_set_t& allowed, uint64_t now_ns) const {
  cpu_set_t free = allowed;
  CPU_CLR(processor, &free);
  bool shares = look(processor, now_ns, &free);
  {
    const std::lock_guard lock(links_mutex_);
    for (const Crowding* each : links_) shares = each->look(processor, now_ns, &free) || shares;
  }
  if (!shares) return -1;
  for (int step = 1; step < CPU_SETSIZE; ++step) {
    const int next = (processor + step) % CPU_SETSIZE;
    if (CPU_ISSET(next, &free)) return next;
  }
  return -1;
}

bool Crowding::look(int processor, uint64_t now_ns, cpu_set_t* free) const {
  const auto number = static_cast<uint32_t>(processor + 1);
  const uint32_t now = place_of(0, now_ns) >> kProcessorBits;
  constexpr uint32_t kSteps = UINT32_MAX >> kProcessorBits;  // the steps wrap here
  const uint32_t count = count_.load(std::memory_order_relaxed);
  bool shares = false;
  for (uint32_t index = 0; index < count; ++index) {
    if (index == own_) continue;
    const uint32_t said = place(index).load(std::memory_order_relaxed);
    const uint32_t theirs = said & kProcessorMask;
    if (theirs == 0) continue;
    CPU_CLR(theirs - 1, free);
    // Of the processes that share a processor the first stays, so that they do not all leave. Old
    // places may no longer be true.
    const bool is_fresh = ((now - (said >> kProcessorBits)) & kSteps) <= kFreshSteps;
    shares = shares || (index < own_ && theirs == number && is_fresh);
  }
  return shares;
}

}  // namespace mobius::os
