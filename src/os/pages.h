// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Pages of the program that change from private to shared memory and back, at their own address and
// with their contents. Between the copy and the change nothing may write to them; neither function
// does, nor allocates memory meanwhile.

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>

namespace mobius::os {

uintptr_t page_bytes();
// The start of the page of an address.
uintptr_t page_start(uintptr_t address);

// Whether all of some bytes can be read, or with `write` written, by this process; pages that were
// not touched yet are made. True also where the kernel cannot say (before Linux 5.14).
bool is_accessible(uintptr_t address, size_t bytes, bool write);

// Why these whole pages cannot become shared memory, for the end of a sentence; null if they can:
// they are mapped, private, readable and writable, and no stack that is known.
const char* why_not_shareable(uintptr_t start, size_t bytes);

// Makes whole pages a mapping of `descriptor` from `file_offset` on, where `copy`, which is mapped
// there already, gets their contents. After an error they are as before.
mob_status_t make_shared(uintptr_t start, size_t bytes, int descriptor, uint64_t file_offset,
                         void* copy);

// Makes whole pages private memory again, with what they hold now. After an error they are as
// before.
mob_status_t make_private(uintptr_t start, size_t bytes);

}  // namespace mobius::os
