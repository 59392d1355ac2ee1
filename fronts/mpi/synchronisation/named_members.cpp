// SPDX-License-Identifier: BSD-3-Clause
#include "synchronisation/named_members.h"

#include <atomic>
#include <numeric>

#include "binding/real.h"
#include "windows/window.h"

namespace mobius::mpi {
namespace {

// Groups that the program has freed, plus one. A thread that has got a handle that was in use
// before has it from the MPI, and so sees the count of the free.
constinit std::atomic<uint64_t> frees = 1;

bool translate(const Window& window, MPI_Group group, NamedMembers* members) {
  int size = 0;
  // The MPI would raise its error through the handler of MPI_COMM_WORLD, not of the window.
  if (group == MPI_GROUP_NULL) return false;
  if (real::Group_size(group, &size) != MPI_SUCCESS) return false;
  members->places.resize(static_cast<size_t>(size));
  members->ranks.resize(static_cast<size_t>(size));
  if (size == 0) return true;
  MPI_Group all{};
  if (real::Win_get_group(window.carrier, &all) != MPI_SUCCESS) return false;
  std::vector<int> numbers(static_cast<size_t>(size));
  std::iota(numbers.begin(), numbers.end(), 0);
  const int translated =
      real::Group_translate_ranks(group, size, numbers.data(), all, members->places.data());
  static_cast<void>(real::Group_free(&all));
  if (translated != MPI_SUCCESS) return false;
  for (size_t i = 0; i < members->places.size(); ++i) {
    const int place = members->places[i];
    if (place < 0 || place >= window.size) return false;
    members->ranks[i] = window.targets[place].rank;
  }
  return true;
}

}  // namespace

bool find_members(const Window& window, MPI_Group group, NamedMembers* members) {
  const uint64_t now = frees.load(std::memory_order_relaxed);
  if (members->frees == now && members->group == number_of(group)) [[likely]] {
    return true;
  }
  members->frees = 0;
  if (!translate(window, group, members)) return false;
  members->group = number_of(group);
  members->frees = now;
  return true;
}

}  // namespace mobius::mpi

using namespace mobius::mpi;  // NOLINT(google-build-using-namespace): this is the C face of it

MOBIUS_MPI_TWIN(Group_free)(MPI_Group* group) {
  frees.fetch_add(1, std::memory_order_relaxed);
  return real::Group_free(group);
}
