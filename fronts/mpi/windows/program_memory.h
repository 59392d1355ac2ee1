// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The program's own memory as a target: what MPI_Win_create() and MPI_Win_attach() are given. Where
// its pages can be moved into shared memory they are, so that processes of the host reach it as
// they reach memory of MPI_Win_allocate(); else the kernel copies.

#include <mobius/mobius.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "binding/abi.h"

namespace mobius::mpi {

// Whole pages that were exposed, for as many windows as use them.
struct Exposure;

// Memory as a target: whose it is, and where that process has it. The part of a shared window that
// a process sees may lie in memory of another one.
struct Placed {
  mob_rank_t owner;
  void* address;
  bool is_copied = false;  // it stays private to its process: the kernel copies to and from it
};

// Makes memory a target. False if Möbius cannot; nothing is kept then.
bool expose_memory(void* address, size_t bytes, std::vector<Exposure*>* exposures, Placed* placed);
void withdraw_memory(std::vector<Exposure*>* exposures);

// Memory that Möbius gave, which is a target by itself.
enum class OwnKind : uint8_t { kNone, kAllocated, kWindow };  // by MPI_Alloc_mem(), or a window
void add_own_memory(const void* address, size_t bytes, Placed placed, OwnKind kind);
// What begins there.
OwnKind own_memory_at(const void* address);
void remove_own_memory(const void* address);

// Before the job ends.
void forget_program_memory();

}  // namespace mobius::mpi
