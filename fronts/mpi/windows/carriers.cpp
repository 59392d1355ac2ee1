// SPDX-License-Identifier: BSD-3-Clause
#include "windows/carriers.h"

#include <utility>

#include "binding/real.h"

namespace mobius::mpi {
namespace {

// One mutex, at the first process of the job.
mob_mutexes_t turns = nullptr;

// A callback of an attribute, which the MPI runs while it frees a window, may free another one.
thread_local bool has_turn __attribute__((tls_model("initial-exec"))) = false;

// Where a member of the window may have several threads: while this lives, no other carrier of such
// a window is made or freed in the job. The first member locks the mutex of the job once all
// members have come. So the members of the window that holds the mutex wait for no other window.
class Turn {
 public:
  explicit Turn(const Window& window) : window_(window) {
    if (!window.has_threads) return;
    meet();
    waits_ = !std::exchange(has_turn, true);
    if (waits_ && window.rank == 0) {
      is_locked_ = mob_mutex_lock(turns, 0, 0, nullptr) == MOB_OK;
    }
    meet();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!window_.has_threads) return;
    meet();
    if (is_locked_) static_cast<void>(mob_mutex_unlock(turns, 0, 0));
    if (waits_) has_turn = false;
  }

 private:
  void meet() const { static_cast<void>(mob_team_barrier(window_.members->team)); }

  const Window& window_;
  bool waits_ = false;
  bool is_locked_ = false;
};

}  // namespace

bool open_carriers() {
  return mob_mutexes_create(MOB_TEAM_WORLD, mob_rank() == 0 ? 1 : 0, &turns) == MOB_OK;
}

void close_carriers() { static_cast<void>(mob_mutexes_free(std::exchange(turns, nullptr))); }

int make_carrier(const Window& window, MPI_Info info, MPI_Comm comm, MPI_Win* carrier) {
  const Turn turn(window);
  if (window.size > 1) return real::Win_create(nullptr, 0, 1, info, comm, carrier);
  // Open MPI 4.1 refuses MPI_Win_create() on a communicator of one process.
  void* nothing = nullptr;
  return real::Win_allocate(0, 1, info, comm, static_cast<void*>(&nothing), carrier);
}

int free_carrier(const Window& window, MPI_Win* carrier) {
  const Turn turn(window);
  return real::Win_free(carrier);
}

}  // namespace mobius::mpi
