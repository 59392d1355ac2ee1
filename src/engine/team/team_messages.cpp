// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/team_messages.h"

#include <cstring>

#include "base/log.h"
#include "engine/message/message.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

struct TeamMessageHead {
  uint64_t team;
  TeamMessage::Kind kind;
};

}  // namespace

struct TeamMessages::Arrival {
  TeamMessages* messages;
  uint64_t team;
  mob_rank_t rank;
  TeamMessage team_message;
};

void TeamMessages::open() {
  messages_.register_internal(
      InternalHandler::kTeam,
      [](const mob_message_t* message, void* self, mob_delivery_t* delivery) {
        static_cast<TeamMessages*>(self)->receive(*message, delivery);
      },
      this);
}

mob_status_t TeamMessages::send(uint64_t team, mob_rank_t rank, TeamMessage::Kind kind,
                                const void* bytes, size_t count) {
  const TeamMessageHead head{team, kind};
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kTeam);
  message.header = &head;
  message.header_bytes = sizeof head;
  message.payload = bytes;
  message.payload_bytes = count;
  return messages_.send("a collective call", rank, message);
}

void TeamMessages::receive(const mob_message_t& message, mob_delivery_t* delivery) {
  TeamMessageHead head{};
  if (message.header_bytes != sizeof head) return;
  std::memcpy(&head, message.header, sizeof head);
  const uint64_t team = head.team;
  TeamMessage team_message{std::unique_ptr<char[]>(new (std::nothrow) char[message.payload_bytes]),
                           message.payload_bytes, head.kind};
  if (team_message.bytes == nullptr) {
    base::log(base::LogLevel::kError, "no memory for %zu bytes of a collective call",
              message.payload_bytes);
    return keep(team, message.source, std::move(team_message));
  }
  if (message.payload != nullptr || message.payload_bytes == 0) {
    if (message.payload_bytes != 0) {
      transport::copy(team_message.bytes.get(), message.payload, message.payload_bytes);
    }
    keep(team, message.source, std::move(team_message));
    return;
  }
  auto arrival =
      std::make_unique<Arrival>(Arrival{this, team, message.source, std::move(team_message)});
  delivery->payload = arrival->team_message.bytes.get();
  delivery->handler = [](mob_token_t, void* argument) {
    const std::unique_ptr<Arrival> whole(static_cast<Arrival*>(argument));
    whole->messages->keep(whole->team, whole->rank, std::move(whole->team_message));
  };
  delivery->argument = arrival.release();
}

void TeamMessages::keep(uint64_t team, mob_rank_t rank, TeamMessage team_message) {
  const std::lock_guard lock(mutex_);
  queues_[{team, rank}].push_back(std::move(team_message));
}

bool TeamMessages::take(uint64_t team, mob_rank_t rank, TeamMessage* team_message) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find({team, rank});
  if (found == queues_.end()) return false;
  *team_message = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) queues_.erase(found);
  return true;
}

bool TeamMessages::has_come(uint64_t team, mob_rank_t rank) {
  const std::lock_guard lock(mutex_);
  return queues_.contains({team, rank});
}

void TeamMessages::forget(uint64_t team) {
  const std::lock_guard lock(mutex_);
  queues_.erase(queues_.lower_bound({team, 0}), queues_.lower_bound({team + 1, 0}));
}

}  // namespace mobius::engine
