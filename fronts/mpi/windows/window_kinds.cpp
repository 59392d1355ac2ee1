// SPDX-License-Identifier: BSD-3-Clause

// MPI_Win_create() and its kin: each brings its memory to what window_create.h makes.

#include <algorithm>
#include <limits>

#include "binding/bootstrap.h"
#include "binding/errors.h"
#include "binding/real.h"
#include "windows/carriers.h"
#include "windows/info.h"
#include "windows/program_memory.h"
#include "windows/window_create.h"

namespace mobius::mpi {
namespace {

// Whether the arguments are right. With wrong ones the MPI is called, which reports them.
bool is_sound(MPI_Comm comm, MPI_Aint bytes, MPI_Aint unit, const void* base, const MPI_Win* win) {
  return base != nullptr && win != nullptr && comm != MPI_COMM_NULL && bytes >= 0 && unit > 0 &&
         unit <= std::numeric_limits<int>::max();
}

bool create_served(void* base, MPI_Aint bytes, MPI_Aint unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win* win, int* result) {
  const Progressing progressing;
  Making making(comm, info, MPI_WIN_FLAVOR_CREATE);
  std::vector<Exposure*> exposures;
  Placed placed{};
  const bool is_exposed =
      join_job(comm) && expose_memory(base, static_cast<size_t>(bytes), &exposures, &placed);
  Offer offer{placed.address, static_cast<uint64_t>(bytes), unit, placed.owner};
  offer.is_copied = placed.is_copied ? 1 : 0;
  if (!making.begin(offer, is_exposed, "memory that Möbius cannot make a target")) {
    withdraw_memory(&exposures);
    return false;
  }
  making.window().base = base;
  making.window().exposures = std::move(exposures);
  return making.finish(true, win, result);
}

// The part of each member, in memory of its own.
bool place_apart(const Making& making, mob_mem_t memory) {
  Window& window = const_cast<Making&>(making).window();
  for (int i = 0; i < window.size; ++i) {
    Target& target = window.targets[i];
    void* base = nullptr;
    if (mob_mem_address(memory, target.rank, 0, &base) != MOB_OK) return false;
    target.base = static_cast<char*>(base);
  }
  return true;
}

// The parts one after the other, in memory of the first member.
bool place_together(const Making& making, mob_mem_t memory) {
  Window& window = const_cast<Making&>(making).window();
  size_t at = 0;
  for (int i = 0; i < window.size; ++i) {
    Target& target = window.targets[i];
    void* base = nullptr;
    target.owner = window.targets[0].rank;
    if (mob_mem_address(memory, target.owner, at, &base) != MOB_OK) return false;
    target.base = static_cast<char*>(base);
    at += target.bytes;
  }
  return true;
}

bool allocate_served(MPI_Aint bytes, MPI_Aint unit, MPI_Info info, MPI_Comm comm, bool is_shared,
                     void* base, MPI_Win* win, int* result) {
  const Progressing progressing;
  Making making(comm, info, is_shared ? MPI_WIN_FLAVOR_SHARED : MPI_WIN_FLAVOR_ALLOCATE);
  if (!making.begin({nullptr, static_cast<uint64_t>(bytes), unit, -1}, true, "")) return false;
  Window& window = making.window();
  const bool all_here = std::all_of(window.targets.get(), window.targets.get() + window.size,
                                    [](const Target& target) { return target.is_here; });
  // The MPI's own call reports that these processes cannot have such a window.
  if (is_shared && !all_here) {
    count_left("its processes do not share memory");
    return false;
  }
  const bool together = is_shared && !asks_for_parts_apart(info);
  size_t own_bytes = static_cast<size_t>(bytes);
  if (together) {
    own_bytes = 0;
    if (window.rank == 0) {
      for (const Offer& each : making.offers()) own_bytes += each.bytes;
    }
  }
  window.memory = making.take_spare_memory();
  if (window.memory == nullptr && mob_team_alloc(window.members->team, own_bytes,
                                                 asked_alignment(info), &window.memory) != MOB_OK) {
    count_left("there is not enough shared memory for it");
    return false;
  }
  const bool is_placed =
      together ? place_together(making, window.memory) : place_apart(making, window.memory);
  const Target& mine = window.targets[window.rank];
  void* here = mine.base;
  const bool is_reached =
      is_placed && (mine.bytes == 0 || mob_ptr(mine.owner, mine.base, &here) == MOB_OK);
  window.base = here;
  if (!making.finish(is_reached, win, result)) return false;
  if (mine.bytes != 0) add_own_memory(here, mine.bytes, {mine.owner, mine.base}, OwnKind::kWindow);
  // MPI declares it as void *, but it is the address of the program's pointer.
  *static_cast<void**>(base) = here;
  return true;
}

bool create_dynamic_served(MPI_Info info, MPI_Comm comm, MPI_Win* win, int* result) {
  const Progressing progressing;
  Making making(comm, info, MPI_WIN_FLAVOR_DYNAMIC);
  if (!making.begin({nullptr, 0, 1, -1}, true, "")) return false;
  Window& window = making.window();
  window.is_dynamic = true;
  for (int i = 0; i < window.size; ++i) {
    window.targets[i].bytes = std::numeric_limits<int64_t>::max();
  }
  return making.finish(true, win, result);
}

// Finds where a member's part is in this process; for MPI_PROC_NULL, the first part that is not
// empty.
int query(const Window& window, int rank, MPI_Aint* bytes, MPI_Aint* unit, void* base) {
  auto* address = static_cast<void**>(base);
  if (rank == MPI_PROC_NULL) {
    const Target* first = std::find_if(window.targets.get(), window.targets.get() + window.size,
                                       [](const Target& target) { return target.bytes != 0; });
    rank = static_cast<int>(first - window.targets.get());
    if (rank == window.size) {
      *bytes = 0;
      *unit = 1;
      *address = nullptr;
      return MPI_SUCCESS;
    }
  }
  if (rank < 0 || rank >= window.size) return raise(window, MPI_ERR_RANK);
  if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) return raise(window, MPI_ERR_RMA_FLAVOR);
  const Target& target = window.targets[rank];
  void* here = target.base;
  const bool is_mine = rank == window.rank;
  if (is_mine) here = window.base;
  if (!is_mine && target.bytes != 0 && mob_ptr(target.owner, target.base, &here) != MOB_OK) {
    // Memory of another process that is not mapped here: as large as what can be reached of it.
    if (window.flavor == MPI_WIN_FLAVOR_SHARED) return raise(window, MPI_ERR_RMA_SHARED);
    *bytes = 0;
    *unit = static_cast<MPI_Aint>(target.unit);
    *address = nullptr;
    return MPI_SUCCESS;
  }
  *bytes = static_cast<MPI_Aint>(target.bytes);
  *unit = static_cast<MPI_Aint>(target.unit);
  *address = target.bytes != 0 ? here : nullptr;
  return MPI_SUCCESS;
}

// A window of the MPI's own may have the handle of one that was freed.
int made_by_mpi(int result, const MPI_Win* win) {
  if (result == MPI_SUCCESS) windows.note_made(*win);
  return result;
}

// The calls of the standard with an int and with an MPI_Aint for the unit. `own` is the MPI's
// function of that name.
template <typename Own, typename Unit>
int call_create(const Own& own, void* base, MPI_Aint bytes, Unit unit, MPI_Info info, MPI_Comm comm,
                MPI_Win* win) {
  int result = MPI_SUCCESS;
  if (is_sound(comm, bytes, unit, bytes != 0 ? base : win, win) &&
      create_served(base, bytes, unit, info, comm, win, &result)) {
    return result;
  }
  return made_by_mpi(own(base, bytes, unit, info, comm, win), win);
}

template <typename Own, typename Unit>
int call_allocate(const Own& own, bool is_shared, MPI_Aint bytes, Unit unit, MPI_Info info,
                  MPI_Comm comm, void* base, MPI_Win* win) {
  int result = MPI_SUCCESS;
  if (is_sound(comm, bytes, unit, base, win) &&
      allocate_served(bytes, unit, info, comm, is_shared, base, win, &result)) {
    return result;
  }
  return made_by_mpi(own(bytes, unit, info, comm, base, win), win);
}

template <typename Own, typename Unit>
int call_shared_query(const Own& own, MPI_Win win, int rank, MPI_Aint* bytes, Unit* unit,
                      void* base) {
  const Window* window = find_window(win);
  if (window == nullptr) return own(win, rank, bytes, unit, base);
  if (bytes == nullptr || unit == nullptr || base == nullptr) return raise(*window, MPI_ERR_ARG);
  MPI_Aint found = 1;
  const int result = query(*window, rank, bytes, &found, base);
  if (result == MPI_SUCCESS) *unit = static_cast<Unit>(found);
  return result;
}

// The handle is noted as freed before the MPI frees it, because the MPI may give it to a new window
// of another thread at once.
int free_of_mpi(MPI_Win* win) {
  if (win == nullptr || *win == MPI_WIN_NULL) return real::Win_free(win);
  auto handle = *win;
  windows.note_freed(handle);
  const int result = real::Win_free(win);
  if (result != MPI_SUCCESS) windows.note_made(handle);
  return result;
}

// A window may be freed after a fence if no operation has followed the fence.
bool is_in_epoch(const Window& window) {
  return (window.access != Access::kNone && window.access != Access::kFence) || window.is_exposed ||
         window.locks != 0;
}

}  // namespace
}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Win_create)
(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return call_create(real::Win_create, base, size, unit, info, comm, win);
}

MOBIUS_MPI_TWIN(Win_allocate)
(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return call_allocate(real::Win_allocate, false, size, unit, info, comm, base, win);
}

MOBIUS_MPI_TWIN(Win_allocate_shared)
(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return call_allocate(real::Win_allocate_shared, true, size, unit, info, comm, base, win);
}

MOBIUS_MPI_TWIN(Win_shared_query)
(MPI_Win win, int rank, MPI_Aint* size, int* unit, void* base) {
  return call_shared_query(real::Win_shared_query, win, rank, size, unit, base);
}

MOBIUS_MPI_TWIN(Win_create_dynamic)(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  int result = MPI_SUCCESS;
  if (comm != MPI_COMM_NULL && win != nullptr && create_dynamic_served(info, comm, win, &result))
    return result;
  return made_by_mpi(real::Win_create_dynamic(info, comm, win), win);
}

MOBIUS_MPI_TWIN(Win_attach)(MPI_Win win, void* base, MPI_Aint size) {
  Window* window = find_window(win);
  if (window == nullptr) return real::Win_attach(win, base, size);
  if (!window->is_dynamic) return raise(*window, MPI_ERR_RMA_FLAVOR);
  if (size < 0) return raise(*window, MPI_ERR_SIZE);
  if (!window->attached.attach(base, static_cast<size_t>(size))) {
    return raise(*window, MPI_ERR_RMA_ATTACH);
  }
  return MPI_SUCCESS;
}

MOBIUS_MPI_TWIN(Win_detach)(MPI_Win win, const void* base) {
  Window* window = find_window(win);
  if (window == nullptr) return real::Win_detach(win, base);
  if (!window->is_dynamic) return raise(*window, MPI_ERR_RMA_FLAVOR);
  return window->attached.detach(base) ? MPI_SUCCESS : raise(*window, MPI_ERR_RMA_ATTACH);
}

MOBIUS_MPI_TWIN(Win_free)(MPI_Win* win) {
  Window* window = win != nullptr ? find_window(*win) : nullptr;
  if (window == nullptr) return free_of_mpi(win);
  if (is_in_epoch(*window)) return raise(*window, MPI_ERR_RMA_SYNC);
  const Progressing progressing;
  // This process completes its operations in the window before any member frees its part.
  static_cast<void>(mob_flush_all());
  auto handle = *win;
  windows.note_freed(handle);
  if (keep_as_spare(window)) {
    windows.remove(window);
    release_memory(window);
    leave_members(window->members);
    windows.give_back(window);
    *win = MPI_WIN_NULL;
    return MPI_SUCCESS;
  }
  // The MPI runs the callbacks of attributes, which may still use the window.
  const int result = free_carrier(*window, win);
  if (result != MPI_SUCCESS) {
    windows.note_made(handle);
    return result;
  }
  windows.remove(window);
  release_parts(window);
  windows.give_back(window);
  return MPI_SUCCESS;
}

#ifdef MOBIUS_MPI_HAS_LARGE_COUNTS
MOBIUS_MPI_TWIN(Win_create_c)
(void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return call_create(real::Win_create_c, base, size, unit, info, comm, win);
}

MOBIUS_MPI_TWIN(Win_allocate_c)
(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return call_allocate(real::Win_allocate_c, false, size, unit, info, comm, base, win);
}

MOBIUS_MPI_TWIN(Win_allocate_shared_c)
(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return call_allocate(real::Win_allocate_shared_c, true, size, unit, info, comm, base, win);
}

MOBIUS_MPI_TWIN(Win_shared_query_c)
(MPI_Win win, int rank, MPI_Aint* size, MPI_Aint* unit, void* base) {
  return call_shared_query(real::Win_shared_query_c, win, rank, size, unit, base);
}
#endif
