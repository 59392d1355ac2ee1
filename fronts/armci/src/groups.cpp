// SPDX-License-Identifier: BSD-3-Clause
#include "groups.h"

#include <cstring>
#include <vector>

#include "armcix.h"
#include "topology.h"

namespace mobius::armci {
namespace {

// Bytes 8 to 15 of a handle.
struct Name {
  int number;
  uint32_t magic;
};
constexpr size_t kNameOffset = 8;
constexpr uint32_t kMagic = 0x47524d41;  // "AMRG"
constexpr int kNobody = 0;               // stands for a group of which the caller is not a member
constexpr int kWorld = 1;
static_assert(sizeof(mpi_beside::Comm) <= kNameOffset && sizeof(Name) == 8);

int read_name(const ARMCI_Group* group, const char* function) {
  check_initialised(function);
  check_not_null(group, "the group", function, mob_rank());
  Name name;
  std::memcpy(&name, reinterpret_cast<const char*>(group) + kNameOffset, sizeof name);
  if (name.magic != kMagic) die(function, "rank %d: not a group", mob_rank());
  return name.number;
}

void create(int size, const int* pid_list, ARMCI_Group* group, const ARMCI_Group* parent,
            const char* function) {
  check_not_null(group, "the new group", function, mob_rank());
  const Group& from = groups().get_mine(parent, function);
  mob_team_t team = MOB_TEAM_NONE;
  if (size != 0) check(mob_team_split_list(from.team, pid_list, size, &team), function);
  groups().add(from, team, 0, group, function);
}

}  // namespace

Groups& groups() {
  static Groups instance;
  return instance;
}

void Groups::open(mpi_beside::Comm comm, const char* function) {
  Group world;
  world.team = MOB_TEAM_WORLD;
  world.comm = comm;
  find_scopes(&world, function);
  const std::lock_guard lock(mutex_);
  groups_.clear();
  groups_.emplace(kNobody, Group{});
  groups_.emplace(kWorld, world);
  last_ = kWorld;
  default_ = kWorld;
}

void Groups::close() {
  const std::lock_guard lock(mutex_);
  groups_.clear();
}

// With one domain, the normal case, the scopes need no teams of their own.
void Groups::find_scopes(Group* group, const char* function) {
  const int me = mob_rank();
  const mob_rank_t size = mob_team_size(group->team);
  // First member of each domain.
  std::vector<int> first(static_cast<size_t>(topology().domains()), -1);
  int used = 0;
  for (mob_rank_t i = 0; i < size; ++i) {
    mob_rank_t proc = 0;
    check(mob_team_translate(group->team, i, MOB_TEAM_WORLD, &proc), function);
    int& there = first[static_cast<size_t>(topology().domain_of(proc, function))];
    if (there >= 0) continue;
    there = proc;
    ++used;
  }
  const int domain = topology().domain_of(me, function);
  const bool is_master = first[static_cast<size_t>(domain)] == me;
  if (used == 1) {
    group->node.team = group->team;
  } else if (used == size) {
    group->masters.team = group->team;
  } else {
    check(mob_team_split(group->team, domain, 0, &group->node.team), function);
    check(mob_team_split(group->team, is_master ? 0 : -1, 0, &group->masters.team), function);
  }
}

const Group& Groups::get(const ARMCI_Group* group, const char* function) {
  const int number = read_name(group, function);
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(number);
  if (found == groups_.end()) {
    die(function, "rank %d: group %d was freed", mob_rank(), number);
  }
  return found->second;
}

const Group& Groups::get_mine(const ARMCI_Group* group, const char* function) {
  const Group& found = get(group, function);
  if (found.team == MOB_TEAM_NONE) {
    die(function, "rank %d is not a member of the group", mob_rank());
  }
  return found;
}

void Groups::add(const Group& parent, mob_team_t team, int colour, ARMCI_Group* group,
                 const char* function) {
  Group made;
  made.team = team;
  const bool is_member = team != MOB_TEAM_NONE;
  if (parent.comm != 0) {
    mpi_beside::split(parent.comm, is_member ? colour : -1, is_member ? mob_team_rank(team) : 0,
                      &made.comm);
  }
  if (is_member) find_scopes(&made, function);
  const std::lock_guard lock(mutex_);
  if (is_member) groups_.emplace(++last_, made);
  write_handle(group, is_member ? last_ : kNobody);
}

void Groups::write_handle(ARMCI_Group* group, int number) {
  const Name name{number, kMagic};
  const mpi_beside::Comm comm = groups_[number].comm;
  std::memcpy(group, &comm, sizeof comm);
  std::memcpy(reinterpret_cast<char*>(group) + kNameOffset, &name, sizeof name);
}

void Groups::release(ARMCI_Group* group, const char* function) {
  const int number = read_name(group, function);
  if (number == kNobody) return;
  if (number == kWorld) die(function, "rank %d: the world cannot be freed", mob_rank());
  const Group freed = get(group, function);
  {
    const std::lock_guard lock(mutex_);
    groups_.erase(number);
    if (default_ == number) default_ = kWorld;
  }
  for (const Party& party : {freed.node, freed.masters}) {
    if (party.team != freed.team) check(mob_team_free(party.team), function);
  }
  check(mob_team_free(freed.team), function);
  if (freed.comm != 0) mpi_beside::release(freed.comm);
  const std::lock_guard lock(mutex_);
  write_handle(group, kNobody);
}

void Groups::world(ARMCI_Group* group) {
  const std::lock_guard lock(mutex_);
  write_handle(group, kWorld);
}

void Groups::set_default(const ARMCI_Group* group, const char* function) {
  get(group, function);
  const std::lock_guard lock(mutex_);
  default_ = read_name(group, function);
}

void Groups::get_default(ARMCI_Group* group) {
  const std::lock_guard lock(mutex_);
  write_handle(group, default_);
}

Party party_of(int scope, const ARMCI_Group* group, const char* function) {
  const Group& found = groups().get_mine(group, function);
  switch (scope) {
    case SCOPE_ALL:
      return {found.team};
    case SCOPE_NODE:
      return found.node;
    case SCOPE_MASTERS:
      return found.masters;
    default:
      die(function, "rank %d: %d is not a scope; see armci_scope_e", mob_rank(), scope);
  }
}

}  // namespace mobius::armci

using namespace mobius::armci;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void PARMCI_Group_create(int size, int* pid_list, ARMCI_Group* group) {
  check_initialised("ARMCI_Group_create");
  ARMCI_Group parent;
  groups().get_default(&parent);
  create(size, pid_list, group, &parent, "ARMCI_Group_create");
}

void PARMCI_Group_create_child(int size, int* pid_list, ARMCI_Group* group, ARMCI_Group* parent) {
  create(size, pid_list, group, parent, "ARMCI_Group_create_child");
}

void PARMCI_Group_free(ARMCI_Group* group) { groups().release(group, "ARMCI_Group_free"); }

int PARMCI_Group_rank(ARMCI_Group* group, int* rank) {
  const Group& found = groups().get(group, "ARMCI_Group_rank");
  *rank = found.team != MOB_TEAM_NONE ? mob_team_rank(found.team) : -1;
  return *rank >= 0 ? 0 : 1;
}

void PARMCI_Group_size(ARMCI_Group* group, int* size) {
  const Group& found = groups().get(group, "ARMCI_Group_size");
  *size = found.team != MOB_TEAM_NONE ? mob_team_size(found.team) : 0;
}

void PARMCI_Group_set_default(ARMCI_Group* group) {
  groups().set_default(group, "ARMCI_Group_set_default");
}

void PARMCI_Group_get_default(ARMCI_Group* group) {
  check_initialised("ARMCI_Group_get_default");
  groups().get_default(group);
}

void PARMCI_Group_get_world(ARMCI_Group* group) {
  check_initialised("ARMCI_Group_get_world");
  groups().world(group);
}

int PARMCI_Absolute_id(ARMCI_Group* group, int group_rank) {
  constexpr const char* kName = "ARMCI_Absolute_id";
  mob_rank_t proc = -1;
  const Group& found = groups().get_mine(group, kName);
  check(mob_team_translate(found.team, group_rank, MOB_TEAM_WORLD, &proc), kName, group_rank);
  return proc;
}

void PARMCI_GroupFence(ARMCI_Group* group) {
  constexpr const char* kName = "ARMCI_GroupFence";
  mob_team_t team = groups().get_mine(group, kName).team;
  for (mob_rank_t i = 0; i < mob_team_size(team); ++i) {
    mob_rank_t proc = -1;
    check(mob_team_translate(team, i, MOB_TEAM_WORLD, &proc), kName, i);
    check(mob_flush(proc), kName, proc);
  }
}

int ARMCIX_Group_split(ARMCI_Group* parent, int color, int key, ARMCI_Group* group) {
  constexpr const char* kName = "ARMCIX_Group_split";
  mob_team_t team = MOB_TEAM_NONE;
  check_not_null(group, "the new group", kName, mob_rank());
  const Group& from = groups().get_mine(parent, kName);
  check(mob_team_split(from.team, color, key, &team), kName);
  groups().add(from, team, color, group, kName);
  return 0;
}

int ARMCIX_Group_dup(ARMCI_Group* parent, ARMCI_Group* group) {
  return ARMCIX_Group_split(parent, 0, 0, group);
}

ARMCI_TWIN(Group_create);
ARMCI_TWIN(Group_create_child);
ARMCI_TWIN(Group_free);
ARMCI_TWIN(Group_rank);
ARMCI_TWIN(Group_size);
ARMCI_TWIN(Group_set_default);
ARMCI_TWIN(Group_get_default);
ARMCI_TWIN(Group_get_world);
ARMCI_TWIN(Absolute_id);
ARMCI_TWIN(GroupFence);

}  // extern "C"
