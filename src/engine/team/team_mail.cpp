// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/team_mail.h"

#include <cstring>

#include "base/log.h"
#include "engine/engine.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

struct LetterHead {
  uint64_t team;
  Letter::Kind kind;
};

}  // namespace

struct TeamMail::Arrival {
  TeamMail* mail;
  uint64_t team;
  mob_rank_t rank;
  Letter letter;
};

void TeamMail::open() {
  engine_.messages().register_internal(
      InternalHandler::kTeam,
      [](const mob_message_t* message, void* self, mob_delivery_t* delivery) {
        static_cast<TeamMail*>(self)->receive(*message, delivery);
      },
      this);
}

mob_status_t TeamMail::send(uint64_t team, mob_rank_t rank, Letter::Kind kind, const void* bytes,
                            size_t count) {
  const LetterHead head{team, kind};
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kTeam);
  message.header = &head;
  message.header_bytes = sizeof head;
  message.payload = bytes;
  message.payload_bytes = count;
  return engine_.messages().send("a collective call", rank, message);
}

void TeamMail::receive(const mob_message_t& message, mob_delivery_t* delivery) {
  LetterHead head{};
  if (message.header_bytes != sizeof head) return;
  std::memcpy(&head, message.header, sizeof head);
  const uint64_t team = head.team;
  Letter letter{std::unique_ptr<char[]>(new (std::nothrow) char[message.payload_bytes]),
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

void TeamMail::keep(uint64_t team, mob_rank_t rank, Letter letter) {
  const std::lock_guard lock(mutex_);
  queues_[{team, rank}].push_back(std::move(letter));
}

bool TeamMail::take(uint64_t team, mob_rank_t rank, Letter* letter) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find({team, rank});
  if (found == queues_.end()) return false;
  *letter = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) queues_.erase(found);
  return true;
}

bool TeamMail::has_come(uint64_t team, mob_rank_t rank) {
  const std::lock_guard lock(mutex_);
  return queues_.contains({team, rank});
}

void TeamMail::forget(uint64_t team) {
  const std::lock_guard lock(mutex_);
  queues_.erase(queues_.lower_bound({team, 0}), queues_.lower_bound({team + 1, 0}));
}

}  // namespace mobius::engine
