// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/team_messages.h"

#include <cstring>

#include "base/log.h"
#include "engine/message/message.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

struct LetterHead {
  uint64_t team;
  TeamMessage::Kind kind;
};

}  // namespace

struct TeamMessages::Arrival {
  TeamMessages* mail;
  uint64_t team;
  mob_rank_t rank;
  TeamMessage letter;
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
  const LetterHead head{team, kind};
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kTeam);
  message.header = &head;
  message.header_bytes = sizeof head;
  message.payload = bytes;
  message.payload_bytes = count;
  return messages_.send("a collective call", rank, message);
}

void TeamMessages::receive(const mob_message_t& message, mob_delivery_t* delivery) {
  LetterHead head{};
  if (message.header_bytes != sizeof head) return;
  std::memcpy(&head, message.header, sizeof head);
  const uint64_t team = head.team;
  TeamMessage letter{std::unique_ptr<char[]>(new (std::nothrow) char[message.payload_bytes]),
                     message.payload_bytes, head.kind};
  if (letter.bytes == nullptr) {
    base::log(base::LogLevel::kError, "no memory for %zu bytes of a collective call",
              message.payload_bytes);
    return keep(team, message.source, std::move(letter));
  }
  if (message.payload != nullptr || message.payload_bytes == 0) {
    if (message.payload_bytes != 0) {
      transport::copy(letter.bytes.get(), message.payload, message.payload_bytes);
    }
    keep(team, message.source, std::move(letter));
    return;
  }
  auto arrival = std::make_unique<Arrival>(Arrival{this, team, message.source, std::move(letter)});
  delivery->payload = arrival->letter.bytes.get();
  delivery->handler = [](mob_token_t, void* argument) {
    const std::unique_ptr<Arrival> whole(static_cast<Arrival*>(argument));
    whole->mail->keep(whole->team, whole->rank, std::move(whole->letter));
  };
  delivery->argument = arrival.release();
}

void TeamMessages::keep(uint64_t team, mob_rank_t rank, TeamMessage letter) {
  const std::lock_guard lock(mutex_);
  queues_[{team, rank}].push_back(std::move(letter));
}

bool TeamMessages::take(uint64_t team, mob_rank_t rank, TeamMessage* letter) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find({team, rank});
  if (found == queues_.end()) return false;
  *letter = std::move(found->second.front());
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
