// SPDX-License-Identifier: BSD-3-Clause
#include "binding/sessions.h"

#include "binding/bootstrap.h"
#include "binding/program_imports.h"
#include "binding/real.h"

#ifdef MOBIUS_MPI_HAS_SESSIONS

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

namespace mobius::mpi {
namespace {

struct Sessions {
  std::mutex mutex;  // guards `open`
  std::vector<MPI_Session> open;
  MPI_Session own{};  // bootstrap.cpp opens and closes it, one thread at a time
  bool has_own = false;
  std::atomic<bool> has_opened = false;
};

Sessions& sessions() {
  static Sessions instance;
  return instance;
}

// All processes of a session; MPI_GROUP_NULL if the MPI does not say.
MPI_Group world_of(MPI_Session session) {
  MPI_Group world = MPI_GROUP_NULL;
  const int result = real::Group_from_session_pset(session, "mpi://WORLD", &world);
  return result == MPI_SUCCESS ? world : MPI_GROUP_NULL;
}

MPI_Group group_of(MPI_Comm comm) {
  MPI_Group group = MPI_GROUP_NULL;
  return real::Comm_group(comm, &group) == MPI_SUCCESS ? group : MPI_GROUP_NULL;
}

void free_group(MPI_Group* group) {
  if (*group != MPI_GROUP_NULL) static_cast<void>(real::Group_free(group));
}

// The only session that is open.
bool find_only_session(MPI_Session* session) {
  Sessions& all = sessions();
  const std::lock_guard lock(all.mutex);
  if (all.open.size() != 1) return false;
  *session = all.open.front();
  return true;
}

// The processes of `theirs`, whose session's world is `their_world`, in their order, as members of
// another session's world. Both worlds are of the same processes in the same order.
MPI_Group find_again(MPI_Group theirs, MPI_Group their_world, MPI_Group world) {
  int size = 0;
  static_cast<void>(real::Group_size(theirs, &size));
  std::vector<int> members(static_cast<size_t>(size));
  std::vector<int> places(members.size());
  std::iota(members.begin(), members.end(), 0);
  MPI_Group found = MPI_GROUP_NULL;
  if (real::Group_translate_ranks(theirs, size, members.data(), their_world, places.data()) !=
          MPI_SUCCESS ||
      real::Group_incl(world, size, places.data(), &found) != MPI_SUCCESS) {
    return MPI_GROUP_NULL;
  }
  return found;
}

}  // namespace

bool has_opened_session() { return sessions().has_opened.load(std::memory_order_relaxed); }

bool is_of_session_world(MPI_Comm comm) {
  MPI_Session session{};
  if (!find_only_session(&session)) return false;
  int relation = MPI_UNEQUAL;
  MPI_Group world = world_of(session);
  MPI_Group members = group_of(comm);
  if (world != MPI_GROUP_NULL && members != MPI_GROUP_NULL) {
    static_cast<void>(real::Group_compare(world, members, &relation));
  }
  free_group(&members);
  free_group(&world);
  return relation != MPI_UNEQUAL;
}

MPI_Comm open_own_session(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Session theirs{};
  Sessions& all = sessions();
  if (!find_only_session(&theirs) ||
      real::Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &all.own) != MPI_SUCCESS) {
    return made;
  }
  all.has_own = true;
  MPI_Group their_world = world_of(theirs);
  MPI_Group world = world_of(all.own);
  MPI_Group members = group_of(comm);
  MPI_Group own_members = MPI_GROUP_NULL;
  if (their_world != MPI_GROUP_NULL && world != MPI_GROUP_NULL && members != MPI_GROUP_NULL) {
    own_members = find_again(members, their_world, world);
  }
  if (own_members != MPI_GROUP_NULL &&
      real::Comm_create_from_group(own_members, "org.mobius.windows", MPI_INFO_NULL,
                                   MPI_ERRORS_RETURN, &made) != MPI_SUCCESS) {
    made = MPI_COMM_NULL;
  }
  for (MPI_Group* group : {&own_members, &members, &world, &their_world}) free_group(group);
  return made;
}

void close_own_session() {
  Sessions& all = sessions();
  if (std::exchange(all.has_own, false)) static_cast<void>(real::Session_finalize(&all.own));
}

}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Session_init)(MPI_Info info, MPI_Errhandler errhandler, MPI_Session* session) {
  check_mpi();
  const int result = real::Session_init(info, errhandler, session);
  if (result != MPI_SUCCESS) return result;
  Sessions& all = sessions();
  const std::lock_guard lock(all.mutex);
  all.open.push_back(*session);
  all.has_opened = true;
  return result;
}

MOBIUS_MPI_TWIN(Session_finalize)(MPI_Session* session) {
  bool is_last = false;
  if (session != nullptr) {
    Sessions& all = sessions();
    const std::lock_guard lock(all.mutex);
    is_last = std::erase(all.open, *session) != 0 && all.open.empty();
  }
  if (is_last) end_job_of_session();
  return real::Session_finalize(session);
}

#else

namespace mobius::mpi {

bool has_opened_session() { return false; }
bool is_of_session_world(MPI_Comm /*comm*/) { return false; }
MPI_Comm open_own_session(MPI_Comm /*comm*/) { return MPI_COMM_NULL; }
void close_own_session() {}

}  // namespace mobius::mpi

#endif
