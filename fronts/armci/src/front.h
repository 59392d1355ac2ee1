// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared by the parts of the ARMCI front: errors, twins, and whether ARMCI is initialised. The
// front is thin: it checks the arguments that only ARMCI knows, translates names, and calls Möbius.

#include <mobius/mobius.h>

#include <armci.h>

// Makes ARMCI_Xyz a weak alias of PARMCI_Xyz, which must be defined before it in the same file.
#define ARMCI_TWIN(name) \
  extern "C" __attribute__((weak, alias("PARMCI_" #name))) __typeof__(PARMCI_##name) ARMCI_##name

namespace mobius::armci {

// Ends the job through ARMCI_Error(): "FUNCTION: text".
[[noreturn, gnu::format(printf, 2, 3), gnu::cold]] void die(const char* function,
                                                            const char* format, ...);

// Ends the job because a call of Möbius on behalf of a process failed.
[[noreturn, gnu::cold]] void die_of(const char* function, int proc);

inline void check(mob_status_t status, const char* function, int proc) {
  if (__builtin_expect(status != MOB_OK, 0)) die_of(function, proc);
}

// For calls that concern no single process.
void check(mob_status_t status, const char* function);

inline void check_not_negative(long value, const char* what, const char* function, int proc) {
  if (__builtin_expect(value < 0, 0)) die(function, "process %d: %s is %ld", proc, what, value);
}

inline void check_not_null(const void* pointer, const char* what, const char* function, int proc) {
  if (__builtin_expect(pointer == nullptr, 0)) {
    die(function, "process %d: %s is a null pointer", proc, what);
  }
}

// Ends the job if ARMCI is not initialised. For calls that would not reach Möbius otherwise.
void check_initialised(const char* function);

}  // namespace mobius::armci
