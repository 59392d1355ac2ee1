// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared pages that become the program's own without being copied: a private mapping of their place
// in shared memory. The kernel copies a page when the program writes to it, and the place keeps
// what it had. To share the pages again only takes what the program has written meanwhile.
//
// The program does with such memory what it likes: unmaps it, maps something else there, moves or
// protects it, gives it back to malloc(). So the kernel's list of mappings, not the address, says
// what is a view: this library maps shared memory privately for nothing else. Two things would
// differ from other private memory, and are prevented:
//
// - After madvise(MADV_DONTNEED) the program finds zeros in private memory, and would find the
//   place's contents in a view. Views are locked in memory (page by page, as they are used), where
//   the kernel refuses that call, as it may with all memory.
// - mremap() would let a view grow into what follows the place. A view is two mappings, which the
//   kernel does not let grow as one; realloc() then copies.

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>

#include "os/memory/pages.h"

namespace mobius::os {

// Makes whole pages that make_shared() moved to a place a view of it, if they all still are where
// they were, and there are at least two. False if not; they are as before then. Threads may write
// to them meanwhile.
bool make_view(uintptr_t start, size_t bytes, SharedPlace place);

// Shares the pages of a view again, with their current contents. False if not all of them are where
// they were, or the program has protected some; they are as before then. No code may write to them
// meanwhile. Allocates nothing.
bool share_view(uintptr_t start, size_t bytes, SharedPlace place);

// Copies what is left of the views of a place, wherever it is by now: nothing depends on the place
// any more. After an error some may be left. No code may write to them meanwhile. Allocates
// nothing.
mob_status_t end_views(SharedPlace place, size_t bytes);

// For a child of fork(): copies what is left of pages at `start` that were moved to a place, shared
// or a view. After an error some may be left. Allocates nothing.
mob_status_t leave_place(uintptr_t start, size_t bytes, SharedPlace place);

}  // namespace mobius::os
