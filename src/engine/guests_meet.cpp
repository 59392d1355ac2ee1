// SPDX-License-Identifier: BSD-3-Clause
// How two teams of different jobs meet that cannot join one segment: because a job is on several
// hosts, or because they are on different ones. The roots of both have found each other at a port.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "engine/common/out_of_memory.h"
#include "engine/guest_making.h"
#include "job/layout.h"
#include "job/meeting/far_port.h"
#include "job/meeting/meeting_directory.h"
#include "os/sync/futex.h"

namespace mobius::engine {
namespace {

using base::fail;
using job::Channel;

// The root of each of the two teams sends this to the other members of its team.
struct Plan {
  mob_status_t status = MOB_OK;
  mob_rank_t parents = 0;  // the team that accepts: its members have the first ranks
  mob_rank_t children = 0;
  mob_rank_t collector = 0;  // the rank of the process with the port
  job::Secret key{};
  char addresses[job::kPortTextBytes] = {};

  mob_rank_t size() const { return parents + children; }
};

// Numbers for processes of other jobs, by which this process alone names them. No process of a job
// has such a high one.
std::atomic<mob_rank_t> next_number = job::kMostRanks;
constexpr mob_rank_t kNumbersEnd = (1 << MOB_RANK_INDEX_BITS_) - 1;

// The same first number in all members of the team.
mob_status_t take_numbers(const char* call, Team& team, mob_rank_t count, mob_rank_t* first) {
  std::vector<mob_rank_t> all;
  if (const mob_status_t status = team.exchange(next_number.load(), &all)) return status;
  *first = std::ranges::max(all);
  if (count > kNumbersEnd - *first) {
    return fail(MOB_ERR_RANGE,
                "%s: this job has connected with so many processes of other jobs that no numbers "
                "for more are left",
                call);
  }
  next_number.store(*first + count);
  return MOB_OK;
}

void tell_addresses(const job::PortText& port, Plan* plan) {
  const std::string text = port.far_text(sizeof plan->addresses - 1);
  std::snprintf(plan->addresses, sizeof plan->addresses, "%s", text.c_str());
}

// Makes the engine of the guest, which is in the meeting when this returns.
mob_status_t join_meeting(const char* call, Engine& home, const Team& team, const Plan& plan,
                          job::MeetingSeat place, uint64_t tag, Guest& guest) {
  const bool accepts = place.rank < plan.parents;
  guest.is_meeting = true;
  guest.id = plan.key;
  guest.name_own(team, accepts ? 0 : plan.parents, plan.size());
  const mob_rank_t first_other = accepts ? plan.parents : 0;
  const mob_rank_t others = accepts ? plan.children : plan.parents;
  for (mob_rank_t i = 0; i < others; ++i) {
    guest.others.push_back(first_other + i);
    guest.public_numbers[static_cast<size_t>(first_other + i)] = guest.first + i;
  }
  {
    const TagScope scope(tag);
    guest.engine = std::make_unique<Engine>();
  }
  const auto complete = [&](const Bridge&) {
    if (const mob_status_t status = guest.find_windows()) return status;
    return expose_all_to(guest);
  };
  Engine::GuestSeat seat{&guest.public_numbers, complete, &home};
  seat.meeting = &place;
  seat.parents = plan.parents;
  const mob_status_t status = guest.engine->start_as_guest(seat);
  if (status == MOB_OK) return MOB_OK;
  const std::string reason = mob_last_error();
  return fail(status, "%s: %s", call, reason.c_str());
}

// All processes of both teams have connected to the one with the port, or `status` says why this
// one has not.
mob_status_t meet(const char* call, Engine& home, Team& team, const Plan& plan, mob_rank_t rank,
                  std::vector<Channel> channels, mob_status_t status, ReservedTag& tag,
                  uint64_t* handle) {
  if ((status = team.agree(status, call))) return status;
  auto guest = std::make_unique<Guest>();
  const mob_rank_t others = rank < plan.parents ? plan.children : plan.parents;
  if ((status = take_numbers(call, team, others, &guest->first))) return status;
  auto directory = std::make_unique<job::MeetingDirectory>(
      rank, plan.size(), std::move(channels), [&home] { home.waiter().poll(); },
      home.settings().number(base::SettingId::kJoinSeconds));
  job::MeetingDirectory& kept = *directory;  // the engine's, from now on
  job::MeetingSeat place;
  place.directory = std::move(directory);
  place.secret = job::derive(plan.key, "job");
  place.rank = rank;
  place.size = plan.size();
  place.is_virtual = home.peers().job().is_virtual();
  place.virtual_host = place.is_virtual ? home.peers().job().own_host() : 0;
  status = without_exceptions(call, [&] {
    return join_meeting(call, home, team, plan, std::move(place), tag.get(), *guest);
  });
  if (status != MOB_OK) return status;
  kept.settle();
  *handle = guest->engine->bridges().parent();
  enlist(home, tag, std::move(guest));
  return team.barrier();
}

// For the members but the root.
mob_status_t visit_as_member(const char* call, const Plan& plan, mob_rank_t rank,
                             const job::PortWait& wait, std::vector<Channel>* channels) {
  job::PortText port;
  if (!job::parse_far_text(plan.addresses, &port.addresses)) {
    return fail(MOB_ERR_PEER, "%s: the port has no address", call);
  }
  job::FarAnswer answer;
  const job::FarGreeting greeting{job::MessageType::kMember, rank, plan.size(), plan.key};
  const mob_status_t status = job::visit_far(call, port.addresses, greeting, wait, &answer);
  if (status == MOB_OK) channels->push_back(std::move(answer.channel));
  return status;
}

}  // namespace

mob_status_t meet_at_port(const char* call, Engine& home, Team& team, mob_rank_t root,
                          const job::PortText& port, uint64_t seconds, ReservedTag& tag,
                          uint64_t* handle) {
  const job::PortWait wait = wait_for_others(home, team, seconds);
  Plan plan;
  std::vector<Channel> channels;
  if (team.rank() == root) {
    plan.status = without_exceptions(call, [&] {
      job::FarAnswer answer;
      const job::FarGreeting greeting{job::MessageType::kConnect, team.rank(), team.size(),
                                      port.key};
      const mob_status_t met = job::visit_far(call, port.addresses, greeting, wait, &answer);
      if (met != MOB_OK) return met;
      plan.parents = answer.size;
      plan.children = team.size();
      plan.collector = answer.rank;
      plan.key = answer.meeting;
      tell_addresses(port, &plan);
      channels.push_back(std::move(answer.channel));
      return MOB_OK;
    });
  }
  mob_status_t status = hear_root(call, team, root, &plan);
  if (status != MOB_OK) return status;
  const mob_rank_t rank = plan.parents + team.rank();
  if (team.rank() != root) {
    status = without_exceptions(call, [&] {
      return visit_as_member(call, plan, rank, wait_for_others(home, team, seconds), &channels);
    });
  }
  return meet(call, home, team, plan, rank, std::move(channels), status, tag, handle);
}

namespace {

// What the root does that has been visited: it gathers all processes of both teams.
mob_status_t hold_meeting(const char* call, Engine& home, Team& team, job::Port& port,
                          job::Visitor& visitor, const Plan& plan,
                          const std::function<mob_status_t()>& look,
                          std::vector<Channel>* channels) {
  job::PortWait wait =
      wait_for_others(home, team, home.settings().number(base::SettingId::kJoinSeconds));
  const auto look_at_team = wait.look;
  wait.look = [&] {
    if (const mob_status_t status = look_at_team()) return status;
    return look ? look() : MOB_OK;
  };
  return port.hold_meeting(call, wait, visitor.far, plan.key, team.rank(), plan.parents,
                           plan.size(), channels);
}

// Whether a process that accepts may meet those that have come.
mob_status_t check_may_meet(const char* call, const Team& team, const ReservedTag& tag) {
  if (!tag) return too_many_guests(call);
  if (!team.services().peers.is_guest()) return MOB_OK;
  return fail(MOB_ERR_STATE, "%s: the team is of another job, with which this one has connected",
              call);
}

}  // namespace

mob_status_t accept_at_port(const char* call, Team& team, mob_rank_t root, mob_status_t mine,
                            Bridges& bridges, job::Port* port, uint64_t seconds, uint64_t* handle,
                            const std::function<mob_status_t()>& look) {
  job::Visitor visitor;
  bool is_far = false;
  mob_status_t status =
      bridges.accept(call, team, root, mine, port, seconds, look, handle, &visitor, &is_far);
  const auto refuse = [&](mob_status_t why) {
    const std::string text = mob_last_error();
    if (visitor.is_far) job::Port::refuse(port->key(), visitor, text.c_str());
    return fail(why, "%s", text.c_str());
  };
  if (status != MOB_OK) return refuse(status);
  if (!is_far) return MOB_OK;
  Engine& home = engine();
  ReservedTag tag;
  status = team.agree(check_may_meet(call, team, tag), call);
  if (status != MOB_OK) return refuse(status);
  Plan plan;
  if (team.rank() == root) {
    const job::FarVisitor& far = visitor.far;
    plan.parents = team.size();
    plan.children = far.count;
    plan.collector = root;
    plan.key = job::meeting_key(port->key(), far.challenge, far.nonce);
    tell_addresses(port->text(), &plan);
    if (plan.size() > job::kMostRanks) {
      plan.status = fail(MOB_ERR_RANGE, "%s: %d processes would meet, more than the %d of a job",
                         call, plan.size(), job::kMostRanks);
    }
  }
  if ((status = hear_root(call, team, root, &plan))) return refuse(status);
  std::vector<Channel> channels;
  status = without_exceptions(call, [&] {
    return team.rank() == root
               ? hold_meeting(call, home, team, *port, visitor, plan, look, &channels)
               : visit_as_member(call, plan, team.rank(), wait_for_others(home, team, seconds),
                                 &channels);
  });
  return meet(call, home, team, plan, team.rank(), std::move(channels), status, tag, handle);
}

}  // namespace mobius::engine
