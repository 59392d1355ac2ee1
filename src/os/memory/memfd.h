// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Anonymous shared memory: it has no name in any file system, and is freed with the last process
// that maps it.

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace mobius::os {

// Makes a memfd of `bytes` bytes, sealed against shrinking so that no peer can turn a mapping into
// SIGBUS. Reserves no memory yet. `name` appears in /proc/PID/maps.
mob_status_t memfd_create_sized(const char* name, size_t bytes, int* descriptor);

// Allocates the pages of [offset, offset + bytes) now, on the NUMA node of the calling thread, so
// that using them cannot fail. MOB_ERR_STATE if `descriptor` is -1, because the program has closed
// it; MOB_ERR_MEMORY if the kernel refuses. Check available_memory() first: the kernel may start
// the out-of-memory killer instead of refusing.
mob_status_t memfd_reserve(int descriptor, uint64_t offset, size_t bytes);

// Returns the pages of [offset, offset + bytes) to the system; they read as zeros again. Does
// nothing if `descriptor` is -1, because the program has closed it.
void memfd_release(int descriptor, uint64_t offset, size_t bytes);

// The kernel's setting for huge pages in shared memory: "always", "within_size", "advise", "never",
// "deny" or "force"; empty if it has none.
std::string shared_huge_pages();

}  // namespace mobius::os
