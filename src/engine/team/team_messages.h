// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Messages between members of teams on different hosts, in one queue for each team and sender, in
// the order of sending. A message may come before its receiver asks for it, or has made the team.

#include <mobius/message.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace mobius::engine {

class Messages;

// The team number of the end of the job (Series::kEnd). The world is 0; other teams have the
// rank of their first member, plus 1, in the upper half.
inline constexpr uint64_t kEndOfJob = 1;

struct TeamMessage {
  // kWhole: the data that the receiver awaits. kFailed: the sender's error in the call. kGivenUp:
  // the error for which the sender has given up the team.
  enum class Kind : uint64_t { kWhole, kFailed, kGivenUp };

  std::unique_ptr<char[]> bytes;  // null if there was no memory for them
  size_t count = 0;
  Kind kind = Kind::kWhole;
};

class TeamMessages {
 public:
  explicit TeamMessages(Messages& messages) : messages_(messages) {}

  // Lets this process receive.
  void open();

  // Sends to a rank of another host. Returns when the caller may reuse the bytes.
  mob_status_t send(uint64_t team, mob_rank_t rank, TeamMessage::Kind kind, const void* bytes,
                    size_t count);

  // Takes the next message of a sender, if there is one. Any thread.
  bool take(uint64_t team, mob_rank_t rank, TeamMessage* team_message);

  // Whether there is a message of that sender.
  bool has_come(uint64_t team, mob_rank_t rank);

  // Drops the messages of a team that has ended.
  void forget(uint64_t team);

 private:
  using Key = std::pair<uint64_t, mob_rank_t>;
  struct Arrival;

  void receive(const mob_message_t& message, mob_delivery_t* delivery);
  void keep(uint64_t team, mob_rank_t rank, TeamMessage team_message);

  Messages& messages_;
  std::mutex mutex_;  // guards queues_
  std::map<Key, std::deque<TeamMessage>> queues_;
};

}  // namespace mobius::engine
