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
// not touched yet are made, or will be. True also where the kernel cannot say (before Linux 5.14).
bool is_accessible(uintptr_t address, size_t bytes, bool write);

// Addresses from `start` to before `end`.
struct Stretch {
  uintptr_t start;
  uintptr_t end;
};
// The same, and if so the whole pages around those bytes of which it is true as well: a mapping and
// its neighbours, or just the pages of the bytes, whatever could be learnt at once. Unless it
// `may_make` pages it says no where only making them would tell.
bool is_accessible(uintptr_t address, size_t bytes, bool write, Stretch* around,
                   bool may_make = true);

// Why these whole pages cannot become shared memory, for the end of a sentence; null if they can:
// they are mapped, private, readable and writable, and no stack that is known.
const char* why_not_shareable(uintptr_t start, size_t bytes);

// Where in shared memory pages are, or go to.
struct SharedPlace {
  int descriptor;  // a memfd
  uint64_t offset;
};

// Makes whole pages a mapping of a place that holds zeros, where `copy`, which is mapped there
// already, gets their contents. Where `anonymous` says that what nobody has touched is zero, such
// pages take no memory. After an error they are as before.
mob_status_t make_shared(uintptr_t start, size_t bytes, bool anonymous, SharedPlace place,
                         void* copy);

// Makes whole pages that make_shared() moved private memory again, with what they hold now. After
// an error they are as before. Also in a child of fork(), for which the parent's stay shared.
mob_status_t make_private(uintptr_t start, size_t bytes, SharedPlace place);

// Maps a place at an address. False if something is there, or if the heap or the stack of the
// program may want to grow there.
bool map_where_free(uintptr_t start, size_t bytes, SharedPlace place);
void unmap(uintptr_t start, size_t bytes);

}  // namespace mobius::os
