// SPDX-License-Identifier: BSD-3-Clause
#include "engine/remote/remote_objects.h"

#include <cstring>

#include "engine/message/message.h"
#include "engine/progress/counters.h"
#include "engine/scheduler/scheduler.h"
#include "engine/segment/locks/shared_lock.h"

namespace mobius::engine {

void RemoteObjects::open(NotificationSink& notifications) {
  notifications_ = &notifications;
  services_.messages.register_internal(
      InternalHandler::kRemote,
      [](const mob_message_t* message, void* self, mob_delivery_t*) {
        static_cast<RemoteObjects*>(self)->serve(*message);
      },
      this);
  locks_.open();
}

void RemoteObject::told(mob_rank_t /*rank*/, mob_rank_t /*member*/, uint64_t /*index*/,
                        uint32_t /*value*/) {}
bool RemoteObject::attempt(Claim& /*claim*/, os::OwnerProbe* /*probe*/) { return false; }
void RemoteObject::abandon(Claim& /*claim*/) {}
void RemoteObject::give_back(const Claim& /*claim*/) {}

mob_rank_t RemoteObjects::rank() const { return services_.peers.rank(); }

mob_status_t RemoteObjects::ask(mob_rank_t rank, const Request& request) {
  // Goes with the operations recorded for that target, and after them.
  if (services_.scheduler.tell(rank, &request, sizeof request)) return MOB_OK;
  Outgoing message;
  message.id = static_cast<unsigned>(InternalHandler::kRemote);
  message.header = &request;
  message.header_bytes = sizeof request;
  return services_.messages.post("a request", rank, message);
}

mob_status_t RemoteObjects::count(mob_rank_t owner, mob_counter_t counter) {
  return ask(owner, {.what = What::kCount, .index = reinterpret_cast<uintptr_t>(counter)});
}

mob_status_t RemoteObjects::notify(mob_rank_t rank) { return ask(rank, {.what = What::kNotify}); }

mob_status_t RemoteObjects::tell(mob_rank_t rank, uint64_t object, mob_rank_t member,
                                 uint64_t index, uint32_t value) {
  return ask(
      rank,
      {.what = What::kTell, .number = value, .member = member, .object = object, .index = index});
}

bool RemoteObjects::is_at_end(mob_rank_t rank) {
  if (services_.peers.is_here(rank)) return services_.peers.is_ending(rank);
  {
    const std::lock_guard lock(at_end_mutex_);
    if (at_end_.contains(rank)) return true;
  }
  // A process that cannot be asked is lost; the waiting thread checks for that, too.
  static_cast<void>(ask(rank, {.what = What::kAsksForEnd}));
  return false;
}

void RemoteObjects::add(uint64_t name, RemoteObject& object) {
  const std::lock_guard lock(mutex_);
  objects_[name] = &object;
}

void RemoteObjects::remove(uint64_t name) {
  const std::lock_guard lock(mutex_);
  objects_.erase(name);
}

RemoteObject* RemoteObjects::find(uint64_t name) {
  const auto found = objects_.find(name);
  return found != objects_.end() ? found->second : nullptr;
}

void RemoteObjects::serve(const mob_message_t& message) {
  Request request;
  if (message.header_bytes != sizeof request) return;
  std::memcpy(&request, message.header, sizeof request);
  const mob_rank_t self = services_.peers.rank();
  switch (request.what) {
    case What::kCount: {
      // A counter freed since then is not counted.
      auto* named = reinterpret_cast<mob_counter_t>(request.index);
      mob_counter* counter = services_.counters.find("a message", self, named);
      if (counter != nullptr) services_.counters.count(self, *counter);
      break;
    }
    case What::kNotify:
      notifications_->notified(message.source);
      break;
    case What::kAsksForEnd:
      if (services_.peers.is_ending(rank())) {
        static_cast<void>(ask(message.source, {.what = What::kIsAtEnd}));
      }
      break;
    case What::kIsAtEnd: {
      const std::lock_guard lock(at_end_mutex_);
      at_end_.insert(message.source);
      break;
    }
    case What::kAnswer:
      locks_.answered(request.value, static_cast<ClaimAnswer>(request.number));
      break;
    default:
      serve_object(message.source, request);
  }
}

void RemoteObjects::serve_object(mob_rank_t source, const Request& request) {
  const std::lock_guard lock(mutex_);
  RemoteObject* object = find(request.object);
  const Claim claim{.rank = source,
                    .id = request.number,
                    .mode = request.mode,
                    .waits = request.what == What::kClaim,
                    .object = request.object,
                    .index = request.index,
                    .ticket = request.value};
  switch (request.what) {
    case What::kTell:
      if (object != nullptr) object->told(source, request.member, request.index, request.number);
      break;
    case What::kClaim:
    case What::kTryClaim:
      locks_.serve(claim);
      break;
    case What::kGiveBack:
      if (object == nullptr || Peers::lock_owner(claim.id) != source) break;
      object->give_back(claim);
      locks_.look_at_all(nullptr);
      break;
    case What::kLookAgain: {
      LivenessProbe probe(services_.peers);
      locks_.look_at_all(&probe);
      break;
    }
    default:
      break;
  }
}

}  // namespace mobius::engine
