// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// System calls on pages, past the C library. Other libraries replace the C library's mmap(),
// mremap() and munmap() with functions that call back (UCX and libfabric, for their caches of
// registered memory). While pages move, such a callback would change memory that was copied
// already, or wait for a thread that is stopped.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "os/memory/pages.h"

namespace mobius::os::raw {

inline void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

inline void* map(void* address, size_t bytes, int flags, int descriptor, uint64_t offset) {
  const long got = syscall(SYS_mmap, address, bytes, PROT_READ | PROT_WRITE, flags, descriptor,
                           static_cast<long>(offset));
  return got == -1 ? MAP_FAILED : pointer(static_cast<uintptr_t>(got));
}

inline bool move_mapping(void* from, size_t bytes, uintptr_t to) {
  return syscall(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != -1;
}

inline void unmap(void* address, size_t bytes) { syscall(SYS_munmap, address, bytes); }

inline bool protect(void* address, size_t bytes, int protection) {
  return syscall(SYS_mprotect, address, bytes, protection) == 0;
}

inline bool advise(void* address, size_t bytes, int advice) {
  return syscall(SYS_madvise, address, bytes, advice) == 0;
}

// Writes pages to an offset of a place. Where the file has no pages yet, the kernel gives it each
// with the contents in it: a copy through a mapping takes a page fault for each, which clears it
// first. Returns the error.
inline int write(SharedPlace place, size_t offset, uintptr_t from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const long got = syscall(SYS_pwrite64, place.descriptor, from + done, bytes - done,
                             static_cast<long>(place.offset + offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? errno : ENOSPC;
    done += static_cast<size_t>(got);
  }
  return 0;
}

// Whole pages of a heap contain bytes that AddressSanitizer forbids to touch, and memcpy() would
// check.
[[gnu::no_sanitize("address", "thread")]] inline void copy(void* to, const void* from,
                                                           size_t bytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  auto* target = static_cast<volatile uint64_t*>(to);
  const auto* source = static_cast<const volatile uint64_t*>(from);
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) target[i] = source[i];
#else
  std::memcpy(to, from, bytes);
#endif
}

// Values of MADV_POPULATE_READ and _WRITE, for older headers.
inline constexpr int kPopulateRead = 22;
inline constexpr int kPopulateWrite = 23;

}  // namespace mobius::os::raw
