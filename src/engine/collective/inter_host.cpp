// SPDX-License-Identifier: BSD-3-Clause
#include "engine/collective/inter_host.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/progress/waiter.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

using base::fail;

// A member that only sends does not wait for others. After this many calls all members meet, which
// limits the number of unread messages. They also meet after this many bytes, counted over calls
// whose size all members know.
constexpr size_t kMostOneWay = 32;
constexpr size_t kMostOneWayBytes = size_t{4} << 20;

}  // namespace

// Ends a wait when any member has died, because the awaited member may itself wait for the dead
// one. Leaders hear from one another in turns, so each watches all the leaders, and also the origin
// of forwarded data.
class InterHost::MembersWatch final : public os::Watch {
 public:
  MembersWatch(InterHost& inter_host, mob_rank_t awaited, mob_rank_t origin)
      : inter_host_(inter_host), awaited_(awaited), origin_(origin) {}

  mob_status_t look() override {
    const TeamServices& services = inter_host_.services_;
    services.peers.watch(inter_host_.map_.world_rank(awaited_));
    services.peers.watch(inter_host_.map_.world_rank(origin_));
    for (size_t group = 0; group < inter_host_.groups_.size(); ++group) {
      services.peers.watch(inter_host_.map_.world_rank(inter_host_.leader(group)));
    }
    services.peers.watch_more();  // the members that leaders wait for
    for (mob_rank_t member = 0; member < inter_host_.map_.size(); ++member) {
      const mob_rank_t rank = inter_host_.map_.world_rank(member);
      if (services.peers.is_dead(rank)) return lose({TeamFailure::Kind::kDead, rank});
      const bool leaves = inter_host_.id_ == kEndOfJob ? services.peers.is_leaving(rank)
                                                       : services.peers.is_ending(rank);
      if (member == awaited_ && leaves) return lose({TeamFailure::Kind::kLeft, rank});
    }
    return inter_host_.is_broken() ? inter_host_.refuse() : MOB_OK;
  }

 private:
  mob_status_t lose(const TeamFailure& loss) {
    inter_host_.loss_ = loss;
    return fail_for(inter_host_.services_, loss);
  }

  InterHost& inter_host_;
  const mob_rank_t awaited_;
  const mob_rank_t origin_;
};

InterHost::InterHost(const TeamServices& services, const TeamMap& map, mob_rank_t rank, uint64_t id,
                     std::unique_ptr<Team> local_team)
    : services_(services), map_(map), rank_(rank), id_(id), local_team_(std::move(local_team)) {
  std::vector<size_t> group_of_host(static_cast<size_t>(services.peers.job().hosts()), SIZE_MAX);
  for (mob_rank_t member = 0; member < map.size(); ++member) {
    const job::Place place = services.peers.job().place_of(map.world_rank(member));
    size_t& group = group_of_host[static_cast<size_t>(place.host)];
    if (group == SIZE_MAX) {
      group = groups_.size();
      groups_.emplace_back();
    }
    groups_[group].push_back(member);
    group_of_.push_back(static_cast<uint32_t>(group));
  }
  own_ = group_of(rank);
  for (const Group& group : groups_) largest_group_ = std::max(largest_group_, group.size());
}

InterHost::~InterHost() { services_.messages.forget(id_); }

std::unique_ptr<TeamBackend> InterHostBackends::make_backend(const TeamMap& map, mob_rank_t rank,
                                                             uint64_t id,
                                                             std::unique_ptr<Team> local_team) {
  return std::make_unique<InterHost>(services_, map, rank, id, std::move(local_team));
}

bool InterHost::is_broken() const { return local_team_->is_broken(); }

mob_rank_t InterHost::local_rank(mob_rank_t member) const {
  return static_cast<mob_rank_t>(std::ranges::lower_bound(own(), member) - own().begin());
}

mob_status_t InterHost::refuse() {
  if (!loss_) loss_ = local_team_->rounds().loss();
  return refuse_for(services_, loss_);
}

// Tells the local members, which would otherwise wait for this member.
void InterHost::give_up() {
  if (!loss_) loss_ = local_team_->rounds().loss();
  for (mob_rank_t member = 0; !loss_ && member < map_.size(); ++member) {
    const mob_rank_t rank = map_.world_rank(member);
    if (services_.peers.is_dead(rank)) loss_ = {TeamFailure::Kind::kDead, rank};
  }
  if (!loss_) loss_ = {TeamFailure::Kind::kFailed, services_.peers.rank()};
  local_team_->rounds().give_up(loss_);
}

// Tells every member that may wait for this one, so that it gives up in turn.
void InterHost::resign() noexcept {
  loss_ = {TeamFailure::Kind::kNoMemory, services_.peers.rank()};
  local_team_->rounds().give_up(loss_);
  for (mob_rank_t member = 0; member < map_.size(); ++member) {
    if (is_local(member)) continue;
    try {
      services_.messages.send(id_, map_.world_rank(member), TeamMessage::Kind::kGivenUp, &loss_,
                              sizeof loss_);
    } catch (const std::bad_alloc&) {
      // There is no connection to that member and no memory to make one. Its leader learns of the
      // failure from the members of this host.
      base::log(base::LogLevel::kWarn,
                "no memory left to tell rank %d that this rank gave up the team",
                map_.world_rank(member));
    }
  }
}

// A member that finds the team broken tells all members.
mob_status_t InterHost::ended(mob_status_t status) {
  if (status != MOB_OK && is_broken()) give_up();
  return status;
}

mob_status_t InterHost::send(mob_rank_t member, TeamMessage::Kind kind, const void* bytes,
                             size_t count) {
  const mob_status_t status =
      services_.messages.send(id_, map_.world_rank(member), kind, bytes, count);
  if (status == MOB_OK) return status;
  if (!loss_) loss_ = {TeamFailure::Kind::kDead, map_.world_rank(member)};
  give_up();
  return status;
}

void InterHost::send_outcome(mob_status_t* status, mob_rank_t member, const void* bytes,
                             size_t count) {
  if (*status == MOB_OK && is_broken()) *status = refuse();
  if (*status == MOB_OK) {
    *status = send(member, bytes, count);
    return;
  }
  if (is_broken()) {
    give_up();
    go_on(status, [&] { return send(member, TeamMessage::Kind::kGivenUp, &loss_, sizeof loss_); });
    return;
  }
  const char* const error = mob_last_error();
  go_on(status,
        [&] { return send(member, TeamMessage::Kind::kFailed, error, std::strlen(error)); });
}

mob_status_t InterHost::take(const char* call, mob_rank_t member, mob_rank_t origin,
                             TeamMessage* message) {
  if (is_broken()) return refuse();
  const mob_rank_t rank = map_.world_rank(member);
  MembersWatch watch(*this, member, origin);
  const mob_status_t status = services_.waiter.wait_until(
      [&] { return services_.messages.take(id_, rank, message); }, &watch);
  if (status != MOB_OK) give_up();
  if (status == MOB_OK && message->bytes == nullptr) throw std::bad_alloc();
  if (status != MOB_OK || message->kind == TeamMessage::Kind::kWhole) return status;
  if (message->kind == TeamMessage::Kind::kFailed) {
    const std::string why(message->bytes.get(), message->count);
    return fail(MOB_ERR_PEER, "%s failed here because it failed at rank %d: %s", call, rank,
                why.c_str());
  }
  TeamFailure told;
  if (message->count == sizeof told) std::memcpy(&told, message->bytes.get(), sizeof told);
  if (!told.is_sound(services_.peers.bound())) told = {TeamFailure::Kind::kFailed, rank};
  if (!loss_) loss_ = told;
  give_up();
  return fail_for(services_, loss_);
}

mob_status_t InterHost::receive(const char* call, mob_rank_t member, mob_rank_t origin, void* bytes,
                                size_t count) {
  TeamMessage message;
  if (const mob_status_t status = take(call, member, origin, &message)) return status;
  if (message.count != count) {
    // A member that has died may have been in a later call than those that live.
    if (const mob_rank_t rank = map_.world_rank(member); services_.peers.is_dead(rank)) {
      if (!loss_) loss_ = {TeamFailure::Kind::kDead, rank};
      give_up();
      return fail_for(services_, loss_);
    }
    return fail(MOB_ERR_ARGUMENT, "%s: member %d passes %zu bytes but member %d expects %zu", call,
                member, message.count, rank_, count);
  }
  if (count != 0) transport::copy(bytes, message.bytes.get(), count);
  return MOB_OK;
}

// At most `bytes` bytes lie unread at one member. All members pass the same, so that all meet after
// the same call.
mob_status_t InterHost::note_one_way(mob_status_t status, size_t bytes) {
  if (is_broken()) return ended(status);
  // Counts also after an error at some members only, so that all count alike.
  one_way_bytes_ += bytes;
  if (++one_way_ < kMostOneWay && one_way_bytes_ < kMostOneWayBytes) return status;
  go_on(&status, [&] { return barrier(); });
  return status;
}

// A dissemination barrier: the number of hosts that a leader has heard of doubles in each round. A
// leader that gave up, or whose local members failed to meet, says so in its message.
mob_status_t InterHost::meet_leaders(mob_status_t status) {
  const size_t groups = groups_.size();
  for (size_t distance = 1; distance < groups; distance *= 2) {
    send_outcome(&status, leader((own_ + distance) % groups), nullptr, 0);
    if (status != MOB_OK) continue;
    status = receive("a barrier", leader((own_ + groups - distance) % groups), nullptr, 0);
  }
  return status;
}

mob_status_t InterHost::barrier() {
  forget_one_way();
  mob_status_t status = local_team_->barrier();
  if (leads()) status = meet_leaders(status);
  if (status == MOB_OK && local_team_->size() > 1) status = local_team_->barrier();
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return ended(status);
}

// Exchanges one parcel with the leader of every other host. The parcel of the own host is unused.
mob_status_t InterHost::exchange_parcels(const char* call, mob_status_t status,
                                         const std::vector<Parcel>& parcels) {
  const size_t groups = groups_.size();
  for (size_t i = 1; i < groups; ++i) {
    const size_t group = (own_ + i) % groups;
    send_outcome(&status, leader(group), parcels[group].out, parcels[group].out_bytes);
  }
  for (size_t i = 1; i < groups && !is_broken(); ++i) {
    const size_t group = (own_ + groups - i) % groups;
    go_on(&status,
          [&] { return receive(call, leader(group), parcels[group].in, parcels[group].in_bytes); });
  }
  return status;
}

// Each leader passes its host's blocks in `packed` at starts[own_] and gets those of all hosts,
// each at starts[group].
mob_status_t InterHost::exchange_leaders(mob_status_t status, std::vector<char>& packed,
                                         const std::vector<size_t>& starts) {
  std::vector<Parcel> parcels;
  for (size_t group = 0; group < groups_.size(); ++group) {
    parcels.push_back({packed.data() + starts[own_], starts[own_ + 1] - starts[own_],
                       packed.data() + starts[group], starts[group + 1] - starts[group]});
  }
  return exchange_parcels("a collective call", status, parcels);
}

mob_status_t InterHost::share_outcome(mob_status_t status, void* data, size_t bytes) {
  if (local_team_->size() == 1 || (status != MOB_OK && is_broken())) return status;
  mob_status_t leaders = status;
  char said[sizeof leaders + kToldBytes];
  if (leads()) {
    std::memcpy(said, &leaders, sizeof leaders);
    if (bytes != 0) std::memcpy(said + sizeof leaders, data, bytes);
  }
  const mob_status_t shared = engine::broadcast(*local_team_, 0, said, sizeof leaders + bytes);
  if (shared != MOB_OK) return shared;
  if (leads()) return status;
  std::memcpy(&leaders, said, sizeof leaders);
  if (leaders != MOB_OK) {
    return fail(MOB_ERR_PEER, "a collective call failed here because it failed at rank %d with %s",
                map_.world_rank(leader(own_)), mob_status_name(leaders));
  }
  if (bytes != 0) std::memcpy(data, said + sizeof leaders, bytes);
  return MOB_OK;
}

mob_status_t InterHost::hand_on(mob_status_t status, void* data, size_t bytes) {
  if (bytes <= kToldBytes) return share_outcome(status, data, bytes);
  status = share_outcome(status);
  return status != MOB_OK ? status : engine::broadcast(*local_team_, 0, data, bytes);
}

}  // namespace mobius::engine
