// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Locks in symmetric words: of 8 bytes in C, of 4 in Fortran, whose jobs may then have 32767 PEs.

#include <cstdint>

namespace mobius::shmem {

template <typename Word>
void set_lock(Word* lock, const char* call);
// Returns 0 if the caller has the lock now, otherwise 1.
template <typename Word>
int test_lock(Word* lock, const char* call);
template <typename Word>
void clear_lock(Word* lock, const char* call);

}  // namespace mobius::shmem
