// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One-sided operations as Möbius' transfers: checked arguments, and memory on both sides as runs of
// bytes.

#include <mobius/mobius.h>

#include <cstdint>

#include "binding/abi.h"
#include "binding/errors.h"
#include "operations/datatype.h"
#include "windows/window.h"

namespace mobius::mpi {

// One side of an operation.
struct Side {
  void* address = nullptr;  // the origin's; the target's is found from the displacement
  int64_t count = 0;
  MPI_Datatype type{};
};

// When the program may use its buffers again.
enum class Completion {
  kLater,  // after its next synchronisation
  kNow,    // when the call returns
  kAsked,  // when its request is complete; when the call returns if the call gives no handle
};

// The first operation of a fence epoch makes it one.
[[gnu::cold]] bool opens_epoch(Window* window);

inline bool may_access(Window* window, const Target& target) {
  if ((target.open.load(std::memory_order_relaxed) |
       window->all_open.load(std::memory_order_relaxed)) != 0) [[likely]] {
    return true;
  }
  return opens_epoch(window);
}

// For flushes, before an operation is done. A get within a host needs none.
inline void note_store(const Target& target) {
  // A store here would be one more that the fence of each flush waits for.
  if (target.has_stores.load(std::memory_order_relaxed) == 0) {
    target.has_stores.store(1, std::memory_order_relaxed);
  }
}
inline void note_transfer(const Target& target) {
  target.has_transfers.store(1, std::memory_order_relaxed);
}
// After an atomic update of a word, which has completed the stores before it.
inline void note_update(const Target& target) {
  if (target.is_here && kAtomicsAreFences) {
    target.has_stores.store(0, std::memory_order_relaxed);
  } else {
    note_transfer(target);
  }
}

// The address for most calls: `count` elements of `element_bytes` each without gaps, of a target
// that may be accessed. Null for other calls, and if `element_bytes` is 0.
inline char* short_way(Window* window, int rank, MPI_Aint displacement, int64_t count,
                       size_t element_bytes, const Target** target) {
  if (static_cast<unsigned>(rank) >= static_cast<unsigned>(window->size)) [[unlikely]] {
    return nullptr;
  }
  const Target& found = window->targets[rank];
  if ((found.open.load(std::memory_order_relaxed) |
       window->all_open.load(std::memory_order_relaxed)) == 0) [[unlikely]] {
    return nullptr;
  }
  // Neither product overflows: counts that large are for the long way.
  const auto offset = static_cast<uint64_t>(displacement) * found.unit;
  const uint64_t wanted = static_cast<uint64_t>(count) * element_bytes;
  if (element_bytes == 0 || (static_cast<uint64_t>(count) >> 40) != 0 ||
      (element_bytes >> 20) != 0 || (static_cast<uint64_t>(displacement) >> 48) != 0 ||
      (found.unit >> 12) != 0 || offset > found.bytes || wanted > found.bytes - offset)
      [[unlikely]] {
    return nullptr;
  }
  *target = &found;
  return found.base + offset;
}

// Checked memory of a target; or the error, which was raised.
struct Place {
  int error = MPI_SUCCESS;
  bool is_nobody = false;  // MPI_PROC_NULL: nothing is to be done
  const Target* target = nullptr;
  char* address = nullptr;
};
Place find_place(Window* window, int rank, MPI_Aint displacement, int64_t count,
                 const Datatype& type);

// Checks count and type of a side; the class of the error, which was raised, if any.
int check_side(const Window& window, const Side& side, const Datatype** type);
// Checks the address of an origin or a result as well.
int check_buffer(const Window& window, const Side& side, const Datatype** type);

// Bytes of memory in order, as runs that are alike or as a list.
class Runs {
 public:
  Runs(void* base, int64_t count, const Datatype& type)
      : base_(static_cast<char*>(base)), count_(count), type_(type) {}

  size_t bytes() const { return static_cast<size_t>(count_) * type_.bytes; }
  bool is_solid() const { return type_.solid_bytes != 0; }
  char* base() const { return base_; }
  void list(std::vector<mob_span_t>* spans) const;

  // Runs of `bytes` in two dimensions: `counts` and `strides`, the inner one first.
  struct Grid {
    char* first;
    size_t bytes;
    size_t counts[2];
    ptrdiff_t strides[2];
  };
  bool as_grid(Grid* grid) const;

 private:
  char* base_;
  int64_t count_;
  const Datatype& type_;
};

// Fills in where the bytes of a transfer are; the lists must live as long as it.
struct Lists {
  std::vector<mob_span_t> local;
  std::vector<mob_span_t> remote;
  size_t counts[2];
  ptrdiff_t local_strides[2];
  ptrdiff_t remote_strides[2];
};
void describe_shape(mob_transfer_t* transfer, const Runs& local, const Runs& remote, Lists* lists);
Lists& lists_of_thread();

// Starts a transfer, or runs it. `*handle` is written with Completion::kAsked only.
mob_status_t start(const mob_transfer_t& transfer, Completion completion, mob_handle_t* handle);

}  // namespace mobius::mpi
