// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The directory of a meeting: of processes of two jobs that connect between hosts. The process that
// accepts has a channel to each other one. At a fence it collects what all have published, and
// gives everything to all, so that a fetch needs no connection.

#include <mobius/job.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "job/bootstrap/directory.h"
#include "job/bootstrap/gathered_entries.h"
#include "job/meeting/channel.h"

namespace mobius::job {

class MeetingDirectory final : public Directory {
 public:
  // `channels`: in the process that accepts, of rank `rank`, one for each other rank, by rank (its
  // own is closed); in the others one alone. `work` is called every millisecond of a fence;
  // `limit_s` is the longest wait at a fence until settle().
  MeetingDirectory(mob_rank_t rank, mob_rank_t size, std::vector<Channel> channels,
                   std::function<void()> work, uint64_t limit_s);

  // All have joined: from now on a fence waits as long as the others live.
  void settle() { limit_s_ = 0; }

  mob_status_t publish(std::string_view key, std::span<const unsigned char> value) override {
    return entries_.publish(key, value);
  }
  mob_status_t fence() override;
  mob_status_t fetch(mob_rank_t rank, std::string_view key,
                     std::vector<unsigned char>* value) override {
    return entries_.fetch(rank, key, value);
  }
  bool is_dead(mob_rank_t /*rank*/) override { return false; }
  bool has_left(mob_rank_t /*rank*/) override { return false; }
  void leave() override { channels_.clear(); }

 private:
  bool collects() const { return channels_.size() != 1; }
  mob_status_t collect();
  mob_status_t hand_in();
  template <typename Done>
  mob_status_t pump_until(Done done);
  mob_status_t give_up(mob_status_t status);
  bool take_all(std::span<const unsigned char> frame);

  const mob_rank_t rank_;
  const mob_rank_t size_;
  std::vector<Channel> channels_;
  const std::function<void()> work_;
  uint64_t limit_s_;
  GatheredEntries entries_;
};

}  // namespace mobius::job
