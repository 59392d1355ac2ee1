// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Anonymous shared memory: no name in any file system, gone with the last process that maps it.

#include <mobius/status.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace mobius::os {

// A new memfd of `bytes` bytes, sealed against shrinking so that no peer can turn a mapping into
// SIGBUS. No memory is reserved yet. `name` shows in /proc/PID/maps.
mob_status_t memfd_create_sized(const char* name, size_t bytes, int* descriptor);

// Allocates the pages of [offset, offset + bytes) now, on the NUMA node of the calling thread, so
// that using them cannot fail. MOB_ERR_MEMORY when the kernel refuses. Compare available_memory()
// first: the kernel may rather wake the out-of-memory killer than refuse.
mob_status_t memfd_reserve(int descriptor, uint64_t offset, size_t bytes);

// Gives the pages of [offset, offset + bytes) back to the system; they read as zeros again.
void memfd_release(int descriptor, uint64_t offset, size_t bytes);

// When the kernel uses huge pages for shared memory: "always", "within_size", "advise", "never",
// "deny" or "force"; empty where it has none.
std::string shared_huge_pages();

// Bytes that this process could still allocate: the least of the host's available memory and what
// its control groups leave.
uint64_t available_memory();

}  // namespace mobius::os
