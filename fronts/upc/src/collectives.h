// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared by the collective calls.

#include <mobius_upc/pointer.h>
#include <upc_types.h>

namespace mobius::upc {

// Ends the job if `flags` contradicts itself, or the program is not in main().
void check_flags(upc_flag_t flags, const char* call);
// The barriers that `flags` asks for, at the begin and the end of a collective call.
void enter(upc_flag_t flags, const char* call);
void leave(upc_flag_t flags, const char* call);

// Ends the job if a pointer is not the start of an array over all threads.
void check_blocks(mob_upc_ptr_t p, const char* call, const char* argument);

// Combines value `b` into `a`, by an operation of upc_types.h. False if the type lacks it.
template <typename T>
bool combine(upc_op_t op, T* a, T b);

}  // namespace mobius::upc

#include <upc_collective.h>

#include <type_traits>

namespace mobius::upc {

template <typename T>
bool combine(upc_op_t op, T* a, T b) {
  switch (op) {
    case UPC_ADD:
      *a = static_cast<T>(*a + b);
      return true;
    case UPC_MULT:
      // Of unsigned values: short ones would overflow as int.
      if constexpr (std::is_integral_v<T>) {
        *a = static_cast<T>(static_cast<unsigned long>(*a) * static_cast<unsigned long>(b));
      } else {
        *a = *a * b;
      }
      return true;
    case UPC_LOGAND:
      *a = static_cast<T>(*a != T{} && b != T{});
      return true;
    case UPC_LOGOR:
      *a = static_cast<T>(*a != T{} || b != T{});
      return true;
    case UPC_MIN:
      *a = b < *a ? b : *a;
      return true;
    case UPC_MAX:
      *a = *a < b ? b : *a;
      return true;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case UPC_AND:
        *a = static_cast<T>(*a & b);
        return true;
      case UPC_OR:
        *a = static_cast<T>(*a | b);
        return true;
      case UPC_XOR:
        *a = static_cast<T>(*a ^ b);
        return true;
      default:
        break;
    }
  }
  return false;
}

}  // namespace mobius::upc
