// SPDX-License-Identifier: BSD-3-Clause
// How a team joins another job of its host, as its guests.

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/guest_making.h"
#include "os/sync/futex.h"

namespace mobius::engine {

using base::fail;

mob_status_t too_many_guests(const char* call) {
  return fail(MOB_ERR_STATE, "%s: this process has connected to %zu other jobs, the most", call,
              kMostGuests);
}

job::PortWait wait_for_others(Engine& home, const Team& team, uint64_t seconds) {
  const auto look = [&home, &team] {
    for (mob_rank_t member = 0; member < team.size(); ++member) {
      const mob_rank_t rank = team.map().world_rank(member);
      if (!home.peers().has_gone(rank)) continue;
      return fail(MOB_ERR_PEER, "rank %d of the team %s", rank,
                  home.peers().fate_of_lost(rank).c_str());
    }
    return MOB_OK;
  };
  return {os::now_ns() + seconds * 1'000'000'000, [&home] { home.waiter().poll(); }, look};
}

void Guest::name_own(const Team& team, mob_rank_t first_there, mob_rank_t numbers_there) {
  own_first = first_there;
  for (mob_rank_t member = 0; member < team.size(); ++member) {
    own.push_back(team.map().world_rank(member));
  }
  public_numbers.assign(static_cast<size_t>(numbers_there), -1);
  std::ranges::copy(own, public_numbers.begin() + own_first);
  inner_numbers.assign(static_cast<size_t>(std::ranges::max(own)) + 1, -1);
  for (size_t i = 0; i < own.size(); ++i) {
    inner_numbers[static_cast<size_t>(own[i])] = own_first + static_cast<mob_rank_t>(i);
  }
}

namespace {

// The root, which has asked at the port, sends this to the other members of the team.
struct Told {
  mob_status_t status = MOB_OK;
  int32_t is_far = 0;      // the jobs are to meet; nothing else is set
  mob_rank_t first = 0;    // of the guests, in the other job
  mob_rank_t others = 0;   // members of the team that accepts
  mob_rank_t numbers = 0;  // the first of theirs here
  job::Secret key{};
};

mob_status_t ask_at_port(const char* call, Engine& home, Team& team, std::string_view where,
                         const job::PortWait& wait, Told* told, job::Admission* admission) {
  const bool may_be_near = home.peers().job().hosts() == 1;
  const mob_status_t status = job::visit(call, where, team.size(), may_be_near, wait, admission);
  if (status != MOB_OK) return status;
  told->is_far = admission->far.is_far() ? 1 : 0;
  if (told->is_far != 0) return MOB_OK;
  told->first = admission->first;
  told->others = admission->others;
  told->key = admission->key;
  return home.bridges().allot(call, admission->others, &told->numbers);
}

// Makes the engine of a guest, which is in the other job when this returns.
mob_status_t join(const char* call, Engine& home, const Team& team, const Told& told,
                  job::Admission& admission, uint64_t tag, Guest& guest) {
  guest.first = told.numbers;
  guest.name_own(team, told.first, told.first + team.size());
  {
    const TagScope scope(tag);
    guest.engine = std::make_unique<Engine>();
  }
  const auto complete = [&](const Bridge& bridge) {
    for (mob_rank_t i = 0; i < bridge.parents; ++i) {
      guest.others.push_back(bridge.all->map().world_rank(i));
      guest.public_numbers[static_cast<size_t>(guest.others.back())] = guest.first + i;
    }
    if (const mob_status_t status = guest.find_windows()) return status;
    return expose_all_to(guest);
  };
  Engine::GuestSeat seat{&guest.public_numbers, complete, &home};
  seat.segment = std::exchange(admission.segment, -1);
  seat.number = told.first + team.rank();
  seat.pid_is_shared = admission.pid_is_shared;
  const mob_status_t status = guest.engine->start_as_guest(seat);
  if (status == MOB_OK) return MOB_OK;
  const std::string reason = mob_last_error();
  return fail(status, "%s: %s", call, reason.c_str());
}

}  // namespace

mob_status_t connect_to_port(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                             std::string_view where, uint64_t seconds, uint64_t* handle) {
  Engine& home = engine();
  ReservedTag tag;
  if (mine == MOB_OK && !tag) mine = too_many_guests(call);
  if (const mob_status_t status = team.agree(mine, call)) return status;
  Told told;
  job::Admission admission;
  // The descriptor is the guest's from join() on.
  struct Closer {
    job::Admission& owner;
    ~Closer() {
      if (owner.segment >= 0) close(owner.segment);
    }
  } closer{admission};
  job::PortWait wait = wait_for_others(home, team, seconds);
  if (team.rank() == root) {
    told.status = without_exceptions(
        call, [&] { return ask_at_port(call, home, team, where, wait, &told, &admission); });
  }
  mob_status_t status = hear_root(call, team, root, &told);
  if (status != MOB_OK) return status;
  if (told.is_far != 0) {
    return meet_at_port(call, home, team, root, admission.far, seconds, tag, handle);
  }
  if (team.rank() != root) {
    wait.end_ns = os::now_ns() + seconds * 1'000'000'000;
    status = job::visit_as_member(call, told.key, told.first, team.rank(), wait, &admission);
  }
  auto guest = std::make_unique<Guest>();
  if ((status = team.agree(status, call))) return status;
  status = without_exceptions(
      call, [&] { return join(call, home, team, told, admission, tag.get(), *guest); });
  // All have joined, or none has: they met in the other job.
  if (status != MOB_OK) return status;
  *handle = guest->engine->bridges().parent();
  enlist(home, tag, std::move(guest));
  return team.barrier();
}

}  // namespace mobius::engine
