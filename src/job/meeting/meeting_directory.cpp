// SPDX-License-Identifier: BSD-3-Clause
#include "job/meeting/meeting_directory.h"

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "base/status.h"
#include "os/sync/futex.h"

namespace mobius::job {
namespace {

using base::fail;

// In an answer: before the entries of one rank.
struct PartHead {
  int32_t rank;
  uint32_t bytes;
};

template <typename T>
void append(Frame& frame, const T& value) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
  frame.insert(frame.end(), bytes, bytes + sizeof value);
}

template <typename T>
bool read(std::span<const unsigned char>& from, T* value) {
  if (from.size() < sizeof *value) return false;
  std::memcpy(value, from.data(), sizeof *value);
  from = from.subspan(sizeof *value);
  return true;
}

}  // namespace

MeetingDirectory::MeetingDirectory(mob_rank_t rank, mob_rank_t size, std::vector<Channel> channels,
                                   std::function<void()> work, uint64_t limit_s)
    : rank_(rank),
      size_(size),
      channels_(std::move(channels)),
      work_(std::move(work)),
      limit_s_(limit_s) {}

mob_status_t MeetingDirectory::fence() {
  if (channels_.empty()) return fail(MOB_ERR_PEER, "the connection of the jobs has ended");
  // Twice: nobody goes on, and calls on others, before all know what all have published.
  for (int round = 0; round < 2; ++round) {
    const mob_status_t status = collects() ? collect() : hand_in();
    if (status != MOB_OK) return give_up(status);
  }
  return MOB_OK;
}

// Whoever fails closes its connections, so that all fail.
mob_status_t MeetingDirectory::give_up(mob_status_t status) {
  channels_.clear();
  return status;
}

template <typename Done>
mob_status_t MeetingDirectory::pump_until(Done done) {
  constexpr int kWorkMs = 1;
  const uint64_t end_ns = os::now_ns() + limit_s_ * 1'000'000'000;
  while (true) {
    std::vector<pollfd> wanted;
    for (size_t i = 0; i < channels_.size(); ++i) {
      Channel& channel = channels_[i];
      if (collects() && static_cast<mob_rank_t>(i) == rank_) continue;
      const bool is_open = channel.pump();
      if (done(i)) continue;
      if (!is_open) {
        return fail(MOB_ERR_PEER, "a process of the two jobs has given up, or died");
      }
      const int events = POLLIN | (channel.has_unsent() ? POLLOUT : 0);
      wanted.push_back({channel.descriptor(), static_cast<short>(events), 0});
    }
    if (wanted.empty()) return MOB_OK;
    if (poll(wanted.data(), wanted.size(), kWorkMs) > 0) continue;
    work_();
    if (limit_s_ != 0 && os::now_ns() >= end_ns) {
      return fail(MOB_ERR_PEER,
                  "a process of the two jobs has not come so far within %zu seconds "
                  "(MOBIUS_JOIN_SECONDS)",
                  static_cast<size_t>(limit_s_));
    }
  }
}

mob_status_t MeetingDirectory::collect() {
  std::vector<Frame> frames(static_cast<size_t>(size_));
  std::vector<bool> has_come(frames.size());
  const auto heard = [&](size_t rank) {
    if (!has_come[rank]) has_come[rank] = channels_[rank].take(&frames[rank]);
    return static_cast<bool>(has_come[rank]);
  };
  if (const mob_status_t status = pump_until(heard)) return status;
  frames[static_cast<size_t>(rank_)] = entries_.unsent();
  entries_.forget_sent();
  Frame all;
  for (mob_rank_t rank = 0; rank < size_; ++rank) {
    const Frame& one = frames[static_cast<size_t>(rank)];
    append(all, PartHead{rank, static_cast<uint32_t>(one.size())});
    all.insert(all.end(), one.begin(), one.end());
  }
  if (all.size() > Channel::kMostBytes) return fail(MOB_ERR_RANGE, "the jobs' directory is full");
  if (!take_all(all)) return fail(MOB_ERR_SYSTEM, "a process publishes in another format");
  for (size_t i = 0; i < channels_.size(); ++i) {
    if (static_cast<mob_rank_t>(i) != rank_) channels_[i].queue(all);
  }
  return pump_until([&](size_t rank) { return !channels_[rank].has_unsent(); });
}

mob_status_t MeetingDirectory::hand_in() {
  channels_[0].queue(entries_.unsent());
  entries_.forget_sent();
  Frame all;
  bool has_come = false;
  const mob_status_t status =
      pump_until([&](size_t) { return has_come = has_come || channels_[0].take(&all); });
  if (status != MOB_OK) return status;
  return take_all(all) ? MOB_OK
                       : fail(MOB_ERR_SYSTEM,
                              "the other job publishes in another format; do both use the same "
                              "libmobius?");
}

bool MeetingDirectory::take_all(std::span<const unsigned char> frame) {
  while (!frame.empty()) {
    PartHead head{};
    if (!read(frame, &head) || head.rank < 0 || head.rank >= size_ || head.bytes > frame.size() ||
        !entries_.take(head.rank, frame.first(head.bytes))) {
      return false;
    }
    frame = frame.subspan(head.bytes);
  }
  return true;
}

}  // namespace mobius::job
