// SPDX-License-Identifier: BSD-3-Clause
#include "windows/members.h"

#include <algorithm>
#include <mutex>

#include "binding/bootstrap.h"
#include "binding/real.h"

namespace mobius::mpi {
namespace {

int do_not_copy(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

// The MPI may call it late, when not all processes are there: those below that end it free.
int leave_alone(MPI_Comm, int, void*, void*) { return MPI_SUCCESS; }

std::atomic<int> members_keyval = MPI_KEYVAL_INVALID;

int make_keyval() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  int keyval = members_keyval.load(std::memory_order_relaxed);
  if (keyval == MPI_KEYVAL_INVALID &&
      real::Comm_create_keyval(do_not_copy, leave_alone, &keyval, nullptr) == MPI_SUCCESS) {
    members_keyval.store(keyval, std::memory_order_release);
  }
  return keyval;
}

struct KeptMembers {
  std::mutex mutex;
  std::vector<Members*> all;
};

KeptMembers& kept() {
  static KeptMembers instance;
  return instance;
}

void free_if_unused(Members* members) {
  if (members->windows > 0 || members->is_kept) return;
  if (members->team != MOB_TEAM_NONE) static_cast<void>(mob_team_free(members->team));
  delete members;
}

}  // namespace

Members* kept_members(MPI_Comm comm) {
  const int keyval = members_keyval.load(std::memory_order_acquire);
  void* value = nullptr;
  int flag = 0;
  if (keyval == MPI_KEYVAL_INVALID ||
      real::Comm_get_attr(comm, keyval, static_cast<void*>(&value), &flag) != MPI_SUCCESS) {
    return nullptr;
  }
  return flag != 0 ? static_cast<Members*>(value) : nullptr;
}

void keep_members(MPI_Comm comm, Members* members) {
  members->is_kept = real::Comm_set_attr(comm, make_keyval(), members) == MPI_SUCCESS;
  if (!members->is_kept) return;
  const std::lock_guard lock(kept().mutex);
  kept().all.push_back(members);
}

namespace {

// Collective over the communicator, which is about to end.
void forget_members(const MPI_Comm* comm) {
  if (!is_joined() || comm == nullptr || *comm == MPI_COMM_NULL) return;
  Members* members = kept_members(*comm);
  if (members == nullptr) return;
  const Progressing progressing;
  free_spares(members);
  members->is_kept = false;
  {
    const std::lock_guard lock(kept().mutex);
    std::erase(kept().all, members);
  }
  static_cast<void>(real::Comm_delete_attr(*comm, members_keyval.load()));
  free_if_unused(members);
}

}  // namespace

void leave_members(Members* members) {
  --members->windows;
  free_if_unused(members);
}

void free_all_spares() {
  const std::lock_guard lock(kept().mutex);
  std::ranges::sort(kept().all, {}, &Members::name);
  for (Members* each : kept().all) free_spares(each);
}

}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Comm_free)(MPI_Comm* comm) {
  forget_members(comm);
  return real::Comm_free(comm);
}

MOBIUS_MPI_TWIN(Comm_disconnect)(MPI_Comm* comm) {
  forget_members(comm);
  return real::Comm_disconnect(comm);
}
