// SPDX-License-Identifier: BSD-3-Clause
#include "windows/spares.h"

#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "binding/real.h"
#include "windows/window.h"

namespace mobius::mpi {
namespace {

// Programs that make windows again and again have few at a time.
constexpr size_t kMostSpares = 4;
// More is not kept from the program's next allocations. To clear memory takes a fraction of the
// time that the kernel needs to take it away and to give it again page by page.
constexpr uint64_t kMostSpareBytes = uint64_t{32} << 20;

uint64_t bytes_of(const std::vector<Spare>& spares) {
  uint64_t sum = 0;
  for (const Spare& spare : spares) {
    if (spare.memory == nullptr) continue;
    sum += std::accumulate(spare.bytes.begin(), spare.bytes.end(), uint64_t{0});
  }
  return sum;
}

// All members decide alike, by the sizes of all.
void keep_memory(Window* window, Spare* spare) {
  if (window->memory == nullptr) return;
  uint64_t sum = bytes_of(window->members->spares);
  for (int i = 0; i < window->size; ++i) {
    spare->bytes.push_back(window->targets[i].bytes);
    if (__builtin_add_overflow(sum, window->targets[i].bytes, &sum)) return;
  }
  if (sum > kMostSpareBytes) return;
  const uint64_t mine = window->targets[window->rank].bytes;
  if (mine != 0) {
    remove_own_memory(window->base);
    std::memset(window->base, 0, mine);
  }
  spare->flavor = window->flavor;
  spare->memory = std::exchange(window->memory, nullptr);
}

// The next window must not show a name or an error handler that the program gave to this one.
void renew_carrier(const Window& window) {
  if (window.has_handler) {
    static_cast<void>(real::Win_set_errhandler(window.carrier, MPI_ERRORS_ARE_FATAL));
  }
  if (window.first_name) {
    static_cast<void>(real::Win_set_name(window.carrier, window.first_name->c_str()));
  }
}

std::string name_of(MPI_Win carrier) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  static_cast<void>(real::Win_get_name(carrier, name, &length));
  return name;
}

}  // namespace

bool keep_as_spare(Window* window) {
  Members& members = *window->members;
  // All members have the same values of these.
  if (!members.is_kept || window->has_threads || window->locked != nullptr) return false;
  const int32_t mine = !window->is_changed && members.spares.size() < kMostSpares ? 1 : 0;
  int32_t all = 0;
  if (mob_allreduce(members.team, MOB_MIN, MOB_INT32, &mine, &all, 1) != MOB_OK || all == 0) {
    return false;
  }
  renew_carrier(*window);
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

// The carrier is not kept then: an attribute may have a callback, which the MPI runs when it frees
// the carrier.
MOBIUS_MPI_TWIN(Win_set_attr)(MPI_Win win, int keyval, void* value) {
  if (Window* window = find_window(win)) window->is_changed = true;
  return real::Win_set_attr(win, keyval, value);
}

MOBIUS_MPI_TWIN(Win_set_name)(MPI_Win win, const char* name) {
  Window* const window = find_window(win);
  if (window != nullptr && !window->has_threads && !window->first_name) {
    window->first_name = name_of(win);
  }
  return real::Win_set_name(win, name);
}

MOBIUS_MPI_TWIN(Win_set_errhandler)(MPI_Win win, MPI_Errhandler handler) {
  Window* const window = find_window(win);
  if (window != nullptr && !window->has_threads) window->has_handler = true;
  return real::Win_set_errhandler(win, handler);
}
