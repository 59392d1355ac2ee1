// SPDX-License-Identifier: BSD-3-Clause
#include "fake_hosts.h"

#include <cstring>
#include <utility>

#include "engine/network/link.h"
#include "engine/progress/completion.h"

namespace mobius::engine {

FakeHosts::FakeHosts(mob_rank_t ranks, const std::vector<std::string>& settings)
    : dead_(static_cast<size_t>(ranks)) {
  mob_size_ = ranks;
  Completion::publish_idle();
  for (mob_rank_t rank = 0; rank < ranks; ++rank) {
    ranks_.push_back(std::make_unique<FakeRank>(*this, rank, settings));
  }
}

FakeHosts::~FakeHosts() {
  EXPECT_EQ(fabric_.wrong_accesses(), wrong_accesses_);
  ranks_.clear();
  mob_size_ = 0;
  Completion::publish_idle();
}

bool FakeHosts::poll() {
  const uint64_t before = fabric_.activity();
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!dead_[rank]) ranks_[rank]->poll();
  }
  return fabric_.activity() != before;
}

void FakeHosts::settle() {
  constexpr int kPollsToIdle = 40;  // Network counts as idle before that
  for (int idle = 0; idle < kPollsToIdle;) idle = poll() ? 0 : idle + 1;
}

bool FakeHosts::act_when_stuck() {
  if (!when_stuck_) return false;
  std::exchange(when_stuck_, nullptr)();
  return true;
}

void FakeHosts::kill(mob_rank_t rank) { dead_[static_cast<size_t>(rank)] = true; }

std::vector<SentMessage> FakeHosts::sent() const {
  std::vector<SentMessage> all;
  for (const transport::ofi::FakeFabric::Message& frame : fabric_.sent()) {
    for (size_t at = sizeof(FrameHeader); at < frame.bytes.size();) {
      FrameRecord record{};
      std::memcpy(&record, frame.bytes.data() + at, sizeof record);
      at += sizeof record;
      if (record.kind == kFirst) {
        WireMessage wire{};
        std::memcpy(&wire, frame.bytes.data() + at, sizeof wire);
        const unsigned char* const header = frame.bytes.data() + at + sizeof wire;
        all.push_back({static_cast<mob_rank_t>(frame.from),
                       static_cast<InternalHandler>(wire.id),
                       {header, header + wire.header_bytes},
                       wire.payload_bytes});
      }
      at += padded(record.bytes);
    }
  }
  return all;
}

size_t FakeHosts::count(mob_rank_t from, InternalHandler handler) const {
  size_t count = 0;
  for (const SentMessage& each : sent()) {
    if (each.from == from && each.handler == handler) ++count;
  }
  return count;
}

}  // namespace mobius::engine
