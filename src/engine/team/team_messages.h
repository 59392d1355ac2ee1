// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What members of teams on different hosts send each other: for each team and sender a queue, in
// the order of sending. Letters may come before their receiver asks for them, or has made the
// team.

#include <mobius/message.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace mobius::engine {

class Messages;

// Stands for a team of the whole job in the letters of its end (Series::kEnd). The world is 0,
// others have their first member's number in the upper half.
inline constexpr uint64_t kEndOfJob = 1;

struct TeamMessage {
  // What is awaited of the sender; or an error that it had in the call; or one with which it has
  // given up the team.
  enum class Kind : uint64_t { kWhole, kFailed, kGivenUp };

  std::unique_ptr<char[]> bytes;  // null if there was no memory for them
  size_t count = 0;
  Kind kind = Kind::kWhole;
};

class TeamMessages {
 public:
  explicit TeamMessages(Messages& messages) : messages_(messages) {}

  // Readies this process to receive.
  void open();

  // To a rank of another host. Returns when the bytes are the caller's again.
  mob_status_t send(uint64_t team, mob_rank_t rank, TeamMessage::Kind kind, const void* bytes,
                    size_t count);

  // The next letter of a sender, if it is here. Any thread.
  bool take(uint64_t team, mob_rank_t rank, TeamMessage* letter);

  // Whether a letter of that sender is here.
  bool has_come(uint64_t team, mob_rank_t rank);

  // A team is no more.
  void forget(uint64_t team);

 private:
  using Key = std::pair<uint64_t, mob_rank_t>;
  struct Arrival;

  void receive(const mob_message_t& message, mob_delivery_t* delivery);
  void keep(uint64_t team, mob_rank_t rank, TeamMessage letter);

  Messages& messages_;
  std::mutex mutex_;  // guards queues_
  std::map<Key, std::deque<TeamMessage>> queues_;
};

}  // namespace mobius::engine
