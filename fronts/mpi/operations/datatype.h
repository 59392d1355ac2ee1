// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// MPI's datatypes as lists of bytes: each is described once, from its envelope and contents, and
// remembered until it is freed.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "binding/abi.h"
#include "operations/element.h"

namespace mobius::mpi {

// Bytes of one element type that lie together.
struct Block {
  ptrdiff_t offset;
  size_t bytes;
  const Element* element;
};

struct Datatype {
  // A transfer of few bytes in a row reads the first fields of its datatype and no others.
  std::atomic<uintptr_t> handle = 0;
  std::atomic<Datatype*> next = nullptr;
  size_t solid_bytes = 0;            // if the data has no gaps, also not to the next; else 0
  const Element* element = nullptr;  // that all of it is made of; null: of several, or empty

  size_t bytes = 0;  // of data
  ptrdiff_t extent = 0;
  ptrdiff_t low = 0;          // where the data begins …
  ptrdiff_t high = 0;         // … and ends
  std::vector<Block> blocks;  // in the order of the type map
  // The blocks are alike, `stride` apart.
  bool is_regular = false;
  ptrdiff_t stride = 0;
};

class Datatypes {
 public:
  // Null: it is none, or cannot be described.
  const Datatype* find(MPI_Datatype type) {
    const uintptr_t handle = number_of(type);
    Datatype* known = slots_[hash(handle)].load(std::memory_order_acquire);
    while (known != nullptr && known->handle.load(std::memory_order_relaxed) != handle)
        [[unlikely]] {
      known = known->next.load(std::memory_order_acquire);
    }
    return known != nullptr ? known : describe_new(type);
  }

  // The MPI is about to free it.
  void forget(MPI_Datatype type);

 private:
  static constexpr unsigned kBits = 10;
  static size_t hash(uintptr_t handle) {
    return (handle ^ handle >> 8 ^ handle >> 18) & ((size_t{1} << kBits) - 1);
  }

  [[gnu::cold]] const Datatype* describe_new(MPI_Datatype type);
  Datatype* add(MPI_Datatype type);
  bool remember_to_forget(MPI_Datatype type);

  std::atomic<Datatype*> slots_[size_t{1} << kBits]{};
  std::mutex mutex_;  // guards changes of the chains, and what follows
  int keyval_ = MPI_KEYVAL_INVALID;
  std::vector<Datatype*> free_;
};

extern constinit Datatypes datatypes;

// The type map of a datatype that is not predefined, as blocks; false if it has what is not known
// here. For datatype.cpp.
bool flatten(MPI_Datatype type, std::vector<Block>* blocks);

// The bytes of a predefined type that has no gaps, as its handle alone tells; 0: ask find().
inline size_t bytes_by_handle([[maybe_unused]] MPI_Datatype type) {
#ifdef MOBIUS_MPI_MPICH
  const auto handle = static_cast<uint32_t>(type);
  return (handle >> 24) == 0x4c ? (handle >> 8) & 0xff : 0;
#else
  return 0;
#endif
}

// The bytes of one element if there are no gaps between elements; 0: there are, or it is none.
inline size_t solid_bytes(MPI_Datatype type) {
  if (const size_t bytes = bytes_by_handle(type)) return bytes;
  const Datatype* known = datatypes.find(type);
  return known != nullptr ? known->solid_bytes : 0;
}

}  // namespace mobius::mpi
