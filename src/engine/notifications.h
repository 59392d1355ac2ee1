// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Counted notifications between pairs of processes of a host, in words of the segment that exist
// for every possible pair but have memory only where a pair has used them.

#include <mobius/job.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "engine/host_memory.h"
#include "job/control.h"

namespace mobius::engine {

class Engine;

class Notifications {
 public:
  Notifications() = default;
  Notifications(const Notifications&) = delete;
  Notifications& operator=(const Notifications&) = delete;
  ~Notifications() { close(); }

  // Nothing is mapped before the first use.
  void open(Engine& engine) { engine_ = &engine; }
  void close();

  // By ranks. Any thread.
  mob_status_t notify(mob_rank_t to);
  mob_status_t wait(const char* call, mob_rank_t from, uint32_t* count);

 private:
  // Written by one process and by its peer; valid as zeros.
  struct Pair {
    std::atomic<uint32_t> sent;
    std::atomic<uint32_t> taken;  // by waits of the receiver
  };
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kPages =
      static_cast<size_t>(job::kMostHostMates) * job::kMostHostMates * sizeof(Pair) / kPageBytes;

  static_assert(kNotificationsOffset + kPages * kPageBytes <= job::kWindowOffset);

  mob_status_t find(mob_rank_t from, mob_rank_t to, Pair** pair);
  mob_status_t prepare(size_t page);

  Engine* engine_ = nullptr;
  std::mutex mutex_;  // guards mapping and reserving
  std::atomic<unsigned char*> memory_ = nullptr;
  // A bit for each page that this process knows to have memory.
  std::array<std::atomic<uint64_t>, kPages / 64> ready_{};
};

}  // namespace mobius::engine
