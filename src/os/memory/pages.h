// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Pages of the program that change from private to shared memory and back, at their own address and
// with their contents. No code may write to them between the copy and the change; neither function
// does, and neither allocates memory meanwhile.

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mobius::os {

uintptr_t page_bytes();
// The start of the page of an address.
uintptr_t page_start(uintptr_t address);

// Whether this process can read or, with `write`, write all of these bytes. Pages that were not
// touched yet count if they can be allocated, and may be allocated by the call. True also if the
// kernel cannot tell (before Linux 5.14).
bool is_accessible(uintptr_t address, size_t bytes, bool write);

// The addresses [start, end).
struct AddressRange {
  uintptr_t start;
  uintptr_t end;
};
// As above. If true, `around` gets whole pages around the bytes for which it also holds: a mapping
// and its neighbours, or only the pages of the bytes, as far as one query tells. Unless it
// `may_make` pages, it returns false where only allocating them would tell.
bool is_accessible(uintptr_t address, size_t bytes, bool write, AddressRange* around,
                   bool may_make = true);

// The reason why these whole pages cannot become shared memory, as the end of a sentence; null if
// they can: they are mapped, private, readable and writable, and not a known stack.
const char* why_not_shareable(uintptr_t start, size_t bytes);

// The place in shared memory where pages are, or to which they move.
struct SharedPlace {
  int descriptor;  // a memfd
  uint64_t offset;
};

// Tells libraries that watch the C library's mmap() and related calls, in order to know which
// memory is registered with a device, that the pages of a range are about to be replaced. Call it
// before the threads of the process are stopped for that.
void announce_move(uintptr_t start, size_t bytes);

// Moves whole pages to a place in shared memory that holds zeros: copies their contents there, then
// maps the place over the pages. If `anonymous`, pages that were never touched are zero and take no
// memory. After an error the pages are as before.
mob_status_t make_shared(uintptr_t start, size_t bytes, bool anonymous, SharedPlace place);

// Enters the pages that moved and were not empty into this process' page table, which is cheaper
// than a page fault at the first access to each.
void map_used_pages(uintptr_t start, size_t bytes, SharedPlace place);
// The same for all pages of a range, which has them all.
void map_pages(uintptr_t start, size_t bytes);

// Makes whole pages that make_shared() moved private memory again, with their current contents.
// After an error they are as before. Works in a child of fork() too; the parent's pages stay
// shared.
mob_status_t make_private(uintptr_t start, size_t bytes, SharedPlace place);

// The parts of a range of moved pages that are still mappings of the file of `place`: the program
// may have unmapped others, or put mappings of its own there, although it must not before they are
// withdrawn. Lowest first. Allocates.
std::vector<AddressRange> still_shared(uintptr_t start, size_t bytes, SharedPlace place);

// As make_private(), for the parts of the range that begins at `start` and moved to `place`.
mob_status_t make_private(std::span<const AddressRange> parts, uintptr_t start, SharedPlace place);

// Maps a place at an address. False if the range is in use, or if the program's heap or stack may
// want to grow into it.
bool map_where_free(uintptr_t start, size_t bytes, SharedPlace place);
void unmap(uintptr_t start, size_t bytes);

}  // namespace mobius::os
