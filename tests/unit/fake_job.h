// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Fakes of what components of the engine take, for tests of one component without a job: the test's
// threads play the processes.

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/common/peers.h"
#include "engine/progress/waiter.h"
#include "engine/segment/segment.h"
#include "os/memory/memfd.h"

namespace mobius::engine {

// Nobody is lost, and nobody ends.
class FakeReports final : public PeerReports {
 public:
  bool has_lost(mob_rank_t /*rank*/) override { return false; }
  void watch(mob_rank_t /*rank*/) override {}
  void watch_more() override {}
  std::string fate(mob_rank_t /*rank*/) override { return "died"; }
  bool is_ending(mob_rank_t /*rank*/) override { return false; }
  bool is_at_end(mob_rank_t /*rank*/) override { return false; }
};

class NothingRemapped final : public RemappedMemory {
 public:
  void* find(mob_rank_t /*rank*/, uintptr_t /*remote*/, size_t /*bytes*/) override {
    return nullptr;
  }
  void* find_word(mob_rank_t /*rank*/, uintptr_t /*remote*/, size_t /*bytes*/) override {
    return nullptr;
  }
  void* find_in_window(mob_rank_t /*rank*/, uintptr_t /*remote*/, size_t /*bytes*/) override {
    return nullptr;
  }
};

// Yields until the condition holds; asks the watch once the test says that a process has given up.
class FakeWaiter final : public Waiter {
 public:
  using Waiter::Waiter;
  void issue_recorded() override {}
  bool poll() override { return false; }
  void let_watch() { watches_.store(true); }

 private:
  Start start() override { return Start::kTest; }
  mob_status_t wait_long(Condition done, os::Watch* watch, os::Wakeup /*wakeup*/) override {
    while (!done()) {
      if (watches_.load() && watch != nullptr) {
        if (const mob_status_t status = watch->look()) return status;
      }
      sched_yield();
    }
    return MOB_OK;
  }

  std::atomic<bool> watches_ = false;
};

// A component that the tested one gets with the others, and never accesses.
template <typename T>
T& untouched() {
  alignas(64) static unsigned char nothing[64];
  return *static_cast<T*>(static_cast<void*>(nothing));
}

// Memory that the processes of a host share, without a window.
inline void give_memory(Segment& segment, mob_rank_t processes) {
  int descriptor = -1;
  ASSERT_EQ(os::memfd_create_sized("fake_job", job::kWindowOffset, &descriptor), MOB_OK);
  SegmentLayout layout;
  ASSERT_EQ(layout.map(descriptor, 1), MOB_OK) << mob_last_error();
  for (mob_rank_t process = 0; process < processes; ++process) {
    ASSERT_EQ(SegmentLayout::reserve(descriptor, process), MOB_OK) << mob_last_error();
  }
  segment.adopt(nullptr, layout);
  close(descriptor);
}

}  // namespace mobius::engine
