// SPDX-License-Identifier: BSD-3-Clause
#include "windows/spares.h"

#include <cstring>
#include <utility>

#include "binding/real.h"
#include "windows/window.h"

namespace mobius::mpi {
namespace {

// Programs that make windows again and again have few at a time.
constexpr size_t kMostSpares = 4;
// More is not kept from the program's next allocations, and clearing costs as much as making it.
constexpr uint64_t kMostSpareBytes = uint64_t{1} << 20;

// All members decide alike, by the sizes of all.
void keep_memory(Window* window, Spare* spare) {
  uint64_t sum = 0;
  for (int i = 0; i < window->size; ++i) sum += window->targets[i].bytes;
  if (window->memory == nullptr || sum > kMostSpareBytes) return;
  for (int i = 0; i < window->size; ++i) spare->bytes.push_back(window->targets[i].bytes);
  const uint64_t mine = window->targets[window->rank].bytes;
  if (mine != 0) {
    remove_own_memory(window->base);
    std::memset(window->base, 0, mine);
  }
  spare->flavor = window->flavor;
  spare->memory = std::exchange(window->memory, nullptr);
}

void mark_changed(MPI_Win& win) {
  if (Window* window = find_window(win)) window->is_changed = true;
}

}  // namespace

bool keep_as_spare(Window* window) {
  Members& members = *window->members;
  // These are alike at all members.
  if (!members.is_kept || window->has_threads || window->locked != nullptr) return false;
  const int32_t mine = !window->is_changed && members.spares.size() < kMostSpares ? 1 : 0;
  int32_t all = 0;
  if (mob_allreduce(members.team, MOB_MIN, MOB_INT32, &mine, &all, 1) != MOB_OK || all == 0) {
    return false;
  }
  Spare spare{window->carrier,
              std::exchange(window->epoch, nullptr),
              std::exchange(window->own_locks, nullptr),
              {},
              nullptr,
              0,
              {}};
  for (int i = 0; i < window->size; ++i) spare.locks.push_back(window->targets[i].locks);
  keep_memory(window, &spare);
  members.spares.push_back(std::move(spare));
  return true;
}

void free_spare(Spare* spare) {
  static_cast<void>(real::Win_free(&spare->carrier));
  if (spare->memory != nullptr) static_cast<void>(mob_mem_free(spare->memory));
  static_cast<void>(mob_epoch_free(spare->epoch));
  static_cast<void>(mob_local_free(spare->own_locks));
}

void free_spares(Members* members) {
  for (Spare& spare : members->spares) free_spare(&spare);
  members->spares.clear();
}

}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

// A carrier to which the program has given something is not used again: its next user would find
// it.

MOBIUS_MPI_TWIN(Win_set_attr)(MPI_Win win, int keyval, void* value) {
  mark_changed(win);
  return real::Win_set_attr(win, keyval, value);
}

MOBIUS_MPI_TWIN(Win_set_name)(MPI_Win win, const char* name) {
  mark_changed(win);
  return real::Win_set_name(win, name);
}

MOBIUS_MPI_TWIN(Win_set_errhandler)(MPI_Win win, MPI_Errhandler handler) {
  mark_changed(win);
  return real::Win_set_errhandler(win, handler);
}
