// SPDX-License-Identifier: BSD-3-Clause
#include "engine/sync/epochs.h"

#include <algorithm>

#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/network/network.h"
#include "engine/progress/completion.h"
#include "engine/progress/waiter.h"
#include "engine/remote/remote_objects.h"
#include "engine/scheduler/scheduler.h"
#include "engine/segment/segment.h"
#include "engine/transfer/router.h"

namespace mobius::engine {
namespace {

using base::fail;

// In teams up to this size every pair of members has a cache line of its own.
constexpr mob_rank_t kMostLines = 64;

// The word that a member of another host sets.
constexpr uint64_t kPosted = 0;
constexpr uint64_t kCompleted = 1;

// Whether a wrapping counter is beyond `taken`. Acquire pairs with the release in Epochs::tell().
bool is_beyond(const std::atomic<uint32_t>& word, uint32_t taken) {
  return static_cast<int32_t>(word.load(std::memory_order_acquire) - taken) > 0;
}

}  // namespace

// Ends a wait for a group when a member can no longer answer. A member that has come to the end of
// the job may have answered before; it says nothing about the other members.
template <typename Lacks>
class Epochs::GroupWatch final : public os::Watch {
 public:
  GroupWatch(const Epochs& epochs, const char* call, const std::vector<mob_rank_t>& group,
             Lacks lacks)
      : peers_(epochs.services_.peers),
        team_(epochs.team()),
        call_(call),
        group_(group),
        lacks_(lacks) {}

  mob_status_t look() override {
    for (const mob_rank_t member : group_) {
      const mob_rank_t rank = team_.map().world_rank(member);
      if (peers_.is_lost(rank)) {
        return fail(MOB_ERR_PEER, "%s: rank %d, which is in the epoch, %s", call_, rank,
                    peers_.fate_of_lost(rank).c_str());
      }
      // The order matters: a member at its end has answered before, or never will.
      if (lacks_(member) && peers_.is_at_end(rank) && lacks_(member)) {
        return fail(MOB_ERR_PEER,
                    "%s: rank %d, which is in the epoch, has come to the end of the job "
                    "(mob_finalize)",
                    call_, rank);
      }
    }
    return MOB_OK;
  }

 private:
  Peers& peers_;
  const Team& team_;
  const char* call_;
  const std::vector<mob_rank_t>& group_;
  const Lacks lacks_;  // whether a member's answer is still awaited
};

mob_status_t Epochs::make(const SyncServices& services, Team& team, mob_status_t mine,
                          std::unique_ptr<Epochs>* epochs) {
  auto made = std::make_unique<Epochs>(services);
  const auto members = static_cast<size_t>(team.size());
  made->team_ = &team;
  made->stride_ = team.size() <= kMostLines ? 64 : sizeof(Words);
  made->peers_.resize(members);
  made->access_.is_named.resize(members);
  made->exposure_.is_named.resize(members);
  const auto readers = static_cast<size_t>(team.local_team().size());
  const mob_status_t status =
      made->area_.make(team, readers * members * made->stride_, mine, "mob_epoch_create", *made);
  if (status != MOB_OK) return status;
  for (mob_rank_t member = 0; member < team.size(); ++member) {
    Peer& peer = made->peer(member);
    peer.heard = &made->words(member, team.rank());
    if (team.place_here(member) < 0) continue;
    peer.told = &made->words(team.rank(), member);
    peer.doorbell = &services.segment.doorbell(team.map().world_rank(member));
  }
  *epochs = std::move(made);
  return MOB_OK;
}

mob_status_t Epochs::release() {
  constexpr const char* kCall = "mob_epoch_free";
  mob_status_t status = MOB_OK;
  if (access_.open) {
    status = fail(MOB_ERR_STATE, "%s: inside an access epoch; mob_epoch_complete() ends it", kCall);
  } else if (exposure_.open) {
    status = fail(MOB_ERR_STATE, "%s: inside an exposure epoch; mob_epoch_wait() ends it", kCall);
  }
  if ((status = team_->agree(status, kCall))) return status;
  return area_.release();
}

// The words that one reader on this host reads lie together.
Epochs::Words& Epochs::words(mob_rank_t writer, mob_rank_t reader) const {
  const size_t index =
      static_cast<size_t>(team_->place_here(reader)) * peers_.size() + static_cast<size_t>(writer);
  return *reinterpret_cast<Words*>(static_cast<unsigned char*>(area_.memory()) + index * stride_);
}

inline mob_status_t Epochs::tell(mob_rank_t member, std::atomic<uint32_t> Words::* word,
                                 uint32_t value) {
  const Peer& to = peer(member);
  if (to.told == nullptr) [[unlikely]] {
    return services_.remote_objects.tell(team_->map().world_rank(member), area_.name(),
                                         team_->rank(),
                                         word == &Words::posted ? kPosted : kCompleted, value);
  }
  // Release pairs with the acquire in is_beyond().
  (to.told->*word).store(value, std::memory_order_release);
  Waiter::ring_after_fence(*to.doorbell);
  return MOB_OK;
}

void Epochs::told(mob_rank_t rank, mob_rank_t member, uint64_t index, uint32_t value) {
  if (member < 0 || member >= team_->size() || team_->map().world_rank(member) != rank) return;
  Words& said = words(member, team_->rank());
  (index == kPosted ? said.posted : said.completed).store(value, std::memory_order_release);
}

// Opens a side to a group. An error changes nothing.
inline mob_status_t Epochs::open(const char* call, const char* kind, Side& side,
                                 std::span<const mob_rank_t> ranks) {
  if (side.open) [[unlikely]] {
    return fail(MOB_ERR_STATE, "%s: inside %s already; end it first", call, kind);
  }
  if (!std::ranges::equal(ranks, side.ranks)) {
    if (const mob_status_t status = name(call, side, ranks)) return status;
  }
  side.open = true;
  return MOB_OK;
}

// Makes `ranks` the group of a side. After an error the side has no group.
mob_status_t Epochs::name(const char* call, Side& side, std::span<const mob_rank_t> ranks) {
  side.ranks.clear();
  side.group.clear();
  side.ranks.reserve(ranks.size());
  side.group.reserve(ranks.size());
  mob_status_t status = MOB_OK;
  for (const mob_rank_t rank : ranks) {
    const mob_rank_t member = rank < 0 ? -1 : team_->map().rank_of(rank);
    if (member < 0) {
      status = fail(MOB_ERR_RANK, "%s: rank %d is not in the team of this epoch", call, rank);
    } else if (side.is_named[static_cast<size_t>(member)]) {
      status = fail(MOB_ERR_ARGUMENT, "%s: rank %d is named twice", call, rank);
    }
    if (status != MOB_OK) break;
    side.group.push_back(member);
    side.is_named[static_cast<size_t>(member)] = true;
  }
  for (const mob_rank_t member : side.group) side.is_named[static_cast<size_t>(member)] = false;
  if (status == MOB_OK) {
    side.ranks.assign(ranks.begin(), ranks.end());
  } else {
    side.group.clear();
  }
  return status;
}

mob_status_t Epochs::post(std::span<const mob_rank_t> origins) {
  if (const mob_status_t status =
          open("mob_epoch_post", "an exposure epoch (mob_epoch_post() without mob_epoch_wait())",
               exposure_, origins)) {
    return status;
  }
  mob_status_t status = MOB_OK;
  for (const mob_rank_t member : exposure_.group) {
    const mob_status_t told = tell(member, &Words::posted, ++peer(member).posts_sent);
    if (status == MOB_OK) status = told;
  }
  if (status != MOB_OK) exposure_.open = false;
  return status;
}

mob_status_t Epochs::start(std::span<const mob_rank_t> targets) {
  constexpr const char* kCall = "mob_epoch_start";
  if (const mob_status_t status =
          open(kCall, "an access epoch (mob_epoch_start() without mob_epoch_complete())", access_,
               targets)) {
    return status;
  }
  size_t next = 0;  // targets before it are known to have posted
  const auto has_posted = [&](mob_rank_t member) {
    const Peer& target = peer(member);
    return is_beyond(target.heard->posted, target.posts_taken);
  };
  const auto all_posted = [&] {
    for (; next < access_.group.size(); ++next) {
      if (!has_posted(access_.group[next])) return false;
    }
    return true;
  };
  if (!all_posted()) [[unlikely]] {
    GroupWatch watch(*this, kCall, access_.group,
                     [&](mob_rank_t member) { return !has_posted(member); });
    if (const mob_status_t status =
            services_.waiter.wait_until(all_posted, &watch, os::Wakeup::kUnfenced)) {
      access_.open = false;
      return status;
    }
  }
  for (const mob_rank_t member : access_.group) {
    Peer& target = peer(member);
    ++target.posts_taken;
    if (target.told == nullptr) [[unlikely]] {
      services_.scheduler.open_epoch(team_->map().world_rank(member), hint_);
    }
  }
  return MOB_OK;
}

mob_status_t Epochs::set_schedule(std::optional<schedule::Policy> hint) {
  if (access_.open) {
    return fail(MOB_ERR_STATE,
                "mob_epoch_schedule: inside an access epoch; mob_epoch_complete() ends it");
  }
  hint_ = hint;
  return MOB_OK;
}

// Tells the targets on other hosts, or those on this host.
inline mob_status_t Epochs::tell_completed(bool elsewhere) {
  mob_status_t status =
      elsewhere && services_.network.is_open() ? services_.router.order_transfers() : MOB_OK;
  for (const mob_rank_t member : access_.group) {
    Peer& target = peer(member);
    if ((target.told == nullptr) != elsewhere) continue;
    if (elsewhere) services_.scheduler.close_epoch(team_->map().world_rank(member));
    const mob_status_t told = tell(member, &Words::completed, ++target.completes_sent);
    if (status == MOB_OK) status = told;
  }
  return status;
}

mob_status_t Epochs::complete() {
  constexpr const char* kCall = "mob_epoch_complete";
  if (!access_.open) {
    return fail(MOB_ERR_STATE, "%s: no access epoch is open; mob_epoch_start() opens one", kCall);
  }
  // Completes transfers of the thread's other contexts, because nothing orders them before the
  // flags.
  const mob_status_t others = services_.completion.complete_others(kCall, access_.ranks);
  // Targets on other hosts get the flag in one message behind the transfers, so they need not wait
  // for the answers to those.
  mob_status_t status = team_->spans_hosts() ? tell_completed(true) : MOB_OK;
  const mob_status_t completed = services_.completion.complete_all(kCall);
  if (completed != MOB_OK) status = completed;
  const mob_status_t told = tell_completed(false);
  access_.open = false;
  if (status == MOB_OK) status = told;
  return status != MOB_OK ? status : others;
}

inline bool Epochs::has_completed(mob_rank_t member) {
  const Peer& origin = peer(member);
  return is_beyond(origin.heard->completed, origin.completes_taken);
}

// Whether all origins of the exposure have completed. Those before `*next` are known to have.
inline bool Epochs::all_completed(size_t* next) {
  for (; *next < exposure_.group.size(); ++*next) {
    if (!has_completed(exposure_.group[*next])) return false;
  }
  return true;
}

inline void Epochs::end_exposure() {
  for (const mob_rank_t member : exposure_.group) ++peer(member).completes_taken;
  exposure_.open = false;
}

mob_status_t Epochs::wait() {
  constexpr const char* kCall = "mob_epoch_wait";
  if (!exposure_.open) {
    return fail(MOB_ERR_STATE, "%s: no exposure epoch is open; mob_epoch_post() opens one", kCall);
  }
  size_t next = 0;
  mob_status_t status = MOB_OK;
  if (!all_completed(&next)) {
    GroupWatch watch(*this, kCall, exposure_.group,
                     [&](mob_rank_t member) { return !has_completed(member); });
    status = services_.waiter.wait_until([&] { return all_completed(&next); }, &watch,
                                         os::Wakeup::kUnfenced);
  }
  // A handler may not wait. Then the exposure stays open.
  if (status != MOB_ERR_STATE) end_exposure();
  return status;
}

mob_status_t Epochs::test(int* done) {
  if (!exposure_.open) {
    return fail(MOB_ERR_STATE,
                "mob_epoch_test: no exposure epoch is open; mob_epoch_post() opens one");
  }
  size_t next = 0;
  *done = all_completed(&next) || (services_.waiter.poll() && all_completed(&next)) ? 1 : 0;
  if (*done != 0) end_exposure();
  return MOB_OK;
}

mob_status_t Epochs::fence() {
  constexpr const char* kCall = "mob_epoch_fence";
  const bool inside = access_.open || exposure_.open;
  // Takes part also when called out of place, because the other members wait.
  const mob_rank_t everywhere = Completion::kAll;
  const mob_status_t others = services_.completion.complete_others(kCall, {&everywhere, 1});
  const mob_status_t status = team_->complete_and_meet(kCall, Team::Kind::kFence);
  if (!inside) return status != MOB_OK ? status : others;
  return fail(MOB_ERR_STATE, "%s: inside %s; %s ends it", kCall,
              access_.open ? "an access epoch" : "an exposure epoch",
              access_.open ? "mob_epoch_complete()" : "mob_epoch_wait()");
}

}  // namespace mobius::engine
