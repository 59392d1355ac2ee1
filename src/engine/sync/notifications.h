// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Counted notifications between pairs of processes. Pairs on one host use words of the segment:
// every possible pair has an address, but only pages in use have memory. For a sender on another
// host the receiver has a word of its own, and its process sets that when the message arrives.

#include <mobius/job.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "engine/remote/remote_objects.h"
#include "engine/segment/segment_layout.h"
#include "engine/sync/sync_services.h"
#include "job/control.h"

namespace mobius::engine {

// The mapping of the words in this process, shared by all its ranks. Maps nothing before the first
// use.
class NotificationMemory {
 public:
  NotificationMemory() = default;
  NotificationMemory(const NotificationMemory&) = delete;
  NotificationMemory& operator=(const NotificationMemory&) = delete;
  ~NotificationMemory();

  mob_status_t map(int segment, unsigned char** memory);

 private:
  std::mutex mutex_;  // guards memory_
  unsigned char* memory_ = nullptr;
};

class Notifications final : public NotificationSink {
 public:
  explicit Notifications(const SyncServices& services) : services_(services) {}
  Notifications(const Notifications&) = delete;
  Notifications& operator=(const Notifications&) = delete;

  void open(std::shared_ptr<NotificationMemory> shared) { shared_ = std::move(shared); }
  void close();

  // Peers are given by rank. Any thread may call these.
  mob_status_t notify(mob_rank_t to);
  mob_status_t wait(const char* call, mob_rank_t from, uint32_t* count);

  // Records a notification from a process of another host.
  void notified(mob_rank_t from) override;

 private:
  // The sender writes `sent`, the receiver `taken`. All zeros is a valid state.
  struct Pair {
    std::atomic<uint32_t> sent;
    std::atomic<uint32_t> taken;  // by waits of the receiver
  };
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kPages =
      static_cast<size_t>(job::kMostLocalPeers) * job::kMostLocalPeers * sizeof(Pair) / kPageBytes;

  static_assert(kNotificationsOffset + kPages * kPageBytes <= job::kWindowOffset);

  mob_status_t find(mob_rank_t from, mob_rank_t to, Pair** pair);
  Pair& from_elsewhere(mob_rank_t from);
  mob_status_t prepare(size_t page);

  friend class NotificationMemory;

  const SyncServices& services_;
  std::shared_ptr<NotificationMemory> shared_;
  std::atomic<unsigned char*> memory_ = nullptr;
  // One bit for each page that this process knows to have memory.
  std::array<std::atomic<uint64_t>, kPages / 64> ready_{};

  std::mutex elsewhere_mutex_;            // guards elsewhere_; its elements never move
  std::map<mob_rank_t, Pair> elsewhere_;  // by sender
};

}  // namespace mobius::engine
