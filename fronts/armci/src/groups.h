// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Groups. An ARMCI_Group has ARMCI-MPI's layout, which depends on the MPI that a program was
// compiled with. A communicator of 4 or 8 bytes comes first, which Global Arrays reads. In every
// layout bytes 8 to 15 belong to the library; here they hold the number of a group.

#include <map>
#include <mutex>

#include "front.h"
#include "mpi_beside.h"

namespace mobius::armci {

// A team that makes a collective call, or the caller alone.
struct Party {
  mob_team_t team = MOB_TEAM_NONE;  // none: the caller alone
};

struct Group {
  mob_team_t team = MOB_TEAM_NONE;  // none: the caller is not a member
  // SCOPE_NODE and SCOPE_MASTERS of the group.
  Party node;
  Party masters;
  mpi_beside::Comm comm = 0;  // 0: the program uses no MPI
};

class Groups {
 public:
  // Both are collective over the job. `comm` is the communicator of the world, or 0.
  void open(mpi_beside::Comm comm, const char* function);
  void close();

  // The group of a handle; ends the job if there is none. Valid until release().
  const Group& get(const ARMCI_Group* group, const char* function);
  // As get(), and ends the job if the caller is not a member.
  const Group& get_mine(const ARMCI_Group* group, const char* function);

  // Makes a group of the team that the caller has split off (or of none), and writes its handle.
  // Collective over `parent`; members that pass the same colour are in one team.
  void add(const Group& parent, mob_team_t team, int colour, ARMCI_Group* group,
           const char* function);
  // Frees a group; collective over it.
  void release(ARMCI_Group* group, const char* function);

  void world(ARMCI_Group* group);
  void set_default(const ARMCI_Group* group, const char* function);
  void get_default(ARMCI_Group* group);

 private:
  void find_scopes(Group* group, const char* function);
  void write_handle(ARMCI_Group* group, int number);  // requires the lock

  std::mutex mutex_;  // guards the members below
  std::map<int, Group> groups_;
  int last_ = 0;
  int default_ = 0;
};

Groups& groups();

// The participants of a call on a scope of a group.
Party party_of(int scope, const ARMCI_Group* group, const char* function);

}  // namespace mobius::armci
