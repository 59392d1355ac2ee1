// SPDX-License-Identifier: BSD-3-Clause

// Fences, and MPI_Win_post(), start, complete, wait and test.

#include "binding/bootstrap.h"
#include "binding/errors.h"
#include "binding/real.h"
#include "windows/window.h"

namespace mobius::mpi {
namespace {

bool has_passive_access(const Window& window) {
  return window.locks != 0 || window.access == Access::kLockedAll;
}

constexpr int kFenceAssertions =
    MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
constexpr int kPostAssertions = MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT;

int fence(Window* window, int assertion) {
  if ((assertion & ~kFenceAssertions) != 0) return raise(*window, MPI_ERR_ASSERT);
  if (has_passive_access(*window) || window->access == Access::kStarted || window->is_exposed) {
    return raise(*window, MPI_ERR_RMA_SYNC);
  }
  const Progressing progressing;
  const mob_status_t status = mob_epoch_fence(window->epoch);
  window->all_open.store(0, std::memory_order_relaxed);
  window->access = (assertion & MPI_MODE_NOSUCCEED) != 0 ? Access::kNone : Access::kFence;
  return raise_if(status, *window);
}

void set_open(Window* window, const NamedMembers& members, uint8_t open) {
  for (const int place : members.places) {
    window->targets[place].open.store(open, std::memory_order_relaxed);
  }
}

int start_access(Window* window, MPI_Group group, int assertion) {
  if ((assertion & ~MPI_MODE_NOCHECK) != 0) return raise(*window, MPI_ERR_ASSERT);
  if (has_passive_access(*window) || window->access == Access::kStarted ||
      window->access == Access::kFenceUsed) {
    return raise(*window, MPI_ERR_RMA_SYNC);
  }
  NamedMembers& members = window->started;
  if (!find_members(*window, group, &members)) return raise(*window, MPI_ERR_GROUP);
  const Progressing progressing;
  const mob_status_t status = mob_epoch_start(window->epoch, members.ranks.data(),
                                              static_cast<mob_rank_t>(members.ranks.size()));
  if (status != MOB_OK) return raise_status(*window, status);
  set_open(window, members, 1);
  window->access = Access::kStarted;
  return MPI_SUCCESS;
}

int complete_access(Window* window) {
  if (window->access != Access::kStarted) return raise(*window, MPI_ERR_RMA_SYNC);
  set_open(window, window->started, 0);
  window->access = Access::kNone;
  const Progressing progressing;
  return raise_if(mob_epoch_complete(window->epoch), *window);
}

int post(Window* window, MPI_Group group, int assertion) {
  if ((assertion & ~kPostAssertions) != 0) return raise(*window, MPI_ERR_ASSERT);
  if (window->is_exposed) return raise(*window, MPI_ERR_RMA_SYNC);
  NamedMembers& members = window->posted;
  if (!find_members(*window, group, &members)) return raise(*window, MPI_ERR_GROUP);
  const Progressing progressing;
  const mob_status_t status = mob_epoch_post(window->epoch, members.ranks.data(),
                                             static_cast<mob_rank_t>(members.ranks.size()));
  if (status != MOB_OK) return raise_status(*window, status);
  window->is_exposed = true;
  return MPI_SUCCESS;
}

int wait(Window* window) {
  if (!window->is_exposed) return raise(*window, MPI_ERR_RMA_SYNC);
  const Progressing progressing;
  const mob_status_t status = mob_epoch_wait(window->epoch);
  window->is_exposed = false;
  return raise_if(status, *window);
}

int test(Window* window, int* flag) {
  if (flag == nullptr) return raise(*window, MPI_ERR_ARG);
  if (!window->is_exposed) return raise(*window, MPI_ERR_RMA_SYNC);
  const mob_status_t status = mob_epoch_test(window->epoch, flag);
  if (status != MOB_OK) return raise_status(*window, status);
  if (*flag != 0) {
    window->is_exposed = false;
  } else {
    let_mpi_progress();
  }
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Win_fence)(int assertion, MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? fence(window, assertion) : real::Win_fence(assertion, win);
}

MOBIUS_MPI_TWIN(Win_start)(MPI_Group group, int assertion, MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? start_access(window, group, assertion)
                           : real::Win_start(group, assertion, win);
}

MOBIUS_MPI_TWIN(Win_complete)(MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? complete_access(window) : real::Win_complete(win);
}

MOBIUS_MPI_TWIN(Win_post)(MPI_Group group, int assertion, MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? post(window, group, assertion) : real::Win_post(group, assertion, win);
}

MOBIUS_MPI_TWIN(Win_wait)(MPI_Win win) {
  Window* window = find_window(win);
  return window != nullptr ? wait(window) : real::Win_wait(win);
}

MOBIUS_MPI_TWIN(Win_test)(MPI_Win win, int* flag) {
  Window* window = find_window(win);
  return window != nullptr ? test(window, flag) : real::Win_test(win, flag);
}
