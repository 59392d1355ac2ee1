// SPDX-License-Identifier: BSD-3-Clause
#include "binding/sessions.h"

#include "binding/bootstrap.h"
#include "binding/program_imports.h"
#include "binding/real.h"

#ifdef MOBIUS_MPI_HAS_SESSIONS

#include <algorithm>
#include <mutex>
#include <vector>

namespace mobius::mpi {
namespace {

struct Sessions {
  std::mutex mutex;  // guards `open`
  std::vector<MPI_Session> open;
};

Sessions& sessions() {
  static Sessions instance;
  return instance;
}

}  // namespace

bool is_of_session_world(MPI_Comm comm) {
  MPI_Session session{};
  {
    Sessions& all = sessions();
    const std::lock_guard lock(all.mutex);
    if (all.open.size() != 1) return false;
    session = all.open.front();
  }
  MPI_Group everybody{};
  MPI_Group members{};
  int relation = MPI_UNEQUAL;
  if (real::Group_from_session_pset(session, "mpi://WORLD", &everybody) != MPI_SUCCESS) {
    return false;
  }
  if (real::Comm_group(comm, &members) == MPI_SUCCESS) {
    static_cast<void>(real::Group_compare(everybody, members, &relation));
    static_cast<void>(real::Group_free(&members));
  }
  static_cast<void>(real::Group_free(&everybody));
  return relation != MPI_UNEQUAL;
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

bool is_of_session_world(MPI_Comm /*comm*/) { return false; }

}  // namespace mobius::mpi

#endif
