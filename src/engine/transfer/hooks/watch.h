// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Hooks that watch: statistics and the timeline.

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "engine/common/instrumentation.h"
#include "engine/common/timeline.h"
#include "engine/transfer/hooks/hook.h"

namespace mobius::engine {

// Counts of the operations on one target.
struct TargetCounts {
  std::array<uint64_t, 4> operations{};  // by mob_kind_t
  std::array<uint64_t, 4> bytes{};
  uint64_t updates = 0;  // of words
  uint64_t failures = 0;
  uint64_t messages = 0;  // sent by the program
  uint64_t message_bytes = 0;
  std::array<uint64_t, kPathCount> paths{};
};

// The counts of one rank as a readable table; each line ends with "\n".
std::string stats_table(mob_rank_t rank, const std::map<mob_rank_t, TargetCounts>& targets);
// The number of barriers and other collective calls, as one line.
std::string calls_line(mob_rank_t rank, const std::map<std::string, uint64_t>& calls);

// Counts operations, and prints the table to standard error at the end of the job.
class StatsHook final : public Hook, public CallCounts {
 public:
  StatsHook(Carrier& next, mob_rank_t rank) : Hook(next), rank_(rank) {}

  mob_status_t carry(const Operation& operation) override;
  mob_status_t update(const WordUpdate& update) override;
  void finish() override;

  void count_message(mob_rank_t target, size_t bytes, mob_status_t status) override;
  void count_call(const char* call) override;
  void note(const std::string& line) override;

 private:
  const mob_rank_t rank_;
  std::mutex mutex_;  // guards the members below
  std::map<mob_rank_t, TargetCounts> targets_;
  std::map<std::string, uint64_t> calls_;
  std::string notes_;
};

// Draws operations on a timeline.
class TraceHook final : public Hook {
 public:
  TraceHook(Carrier& next, Timeline& timeline) : Hook(next), timeline_(timeline) {}

  mob_status_t carry(const Operation& operation) override;
  mob_status_t update(const WordUpdate& update) override;
  mob_status_t order() override;

 private:
  Timeline& timeline_;
};

}  // namespace mobius::engine
