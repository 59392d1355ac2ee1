// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The predefined types of MPI as Möbius has them, and the operations on them.

#include <mobius/types.h>

#include <cstddef>
#include <cstdint>

#include "binding/abi.h"

namespace mobius::mpi {

// The kinds of type by which MPI allows operations of accumulates (MPI-4 §6.9.2).
enum class ElementKind : uint8_t { kInteger, kReal, kComplex, kLogical, kByte, kPair, kOther };

struct Element {
  ElementKind kind = ElementKind::kOther;
  bool is_known = false;  // to Möbius, as `type`
  mob_type_t type = MOB_UINT8;
  uint16_t bytes = 0;  // of data
  uint16_t extent = 0;
  uint16_t alignment = 1;
  uint32_t ops = 0;  // a bit for each mob_op_t that MPI allows on it and Möbius carries out
  // Of a pair: its two blocks, with a gap between them or behind.
  uint16_t first_bytes = 0;
  uint16_t second_offset = 0;
  uint16_t second_bytes = 0;
  MPI_Datatype handle{};

  bool can(mob_op_t op) const { return (ops >> op & 1) != 0; }
};

// That of a predefined type; null if it is none. The MPI is asked about a type only when the
// program uses it: an MPI may lack some, and asking for those ends the program. Not before
// MPI_Init().
const Element* element_of(MPI_Datatype type);
// The element of C with a size; null if there is none.
const Element* element_like(ElementKind kind, size_t bytes);

// How an operation is carried out on an element.
enum class OpKind : uint8_t { kInvalid, kMobius, kLocked };
OpKind op_kind(MPI_Op op, const Element& element, mob_op_t* translated);

}  // namespace mobius::mpi
