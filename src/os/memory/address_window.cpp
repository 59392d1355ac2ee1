// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/address_window.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/status.h"
#include "os/memory/memfd.h"

namespace mobius::os {
namespace {

constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

bool AddressWindow::reserve_at(uintptr_t base, size_t bytes) {
  release();
  void* got = mmap(pointer(base), bytes, PROT_NONE, kReserve | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return false;
  if (got != pointer(base)) {  // kernels before 4.17 treat the address as a hint
    munmap(got, bytes);
    return false;
  }
  madvise(got, bytes, MADV_DONTDUMP);
  base_ = base;
  bytes_ = bytes;
  return true;
}

bool AddressWindow::reserve_anywhere(size_t bytes, size_t alignment) {
  release();
  void* got = mmap(nullptr, bytes + alignment, PROT_NONE, kReserve, -1, 0);
  if (got == MAP_FAILED) return false;
  const uintptr_t start = reinterpret_cast<uintptr_t>(got);
  const uintptr_t aligned = (start + alignment - 1) & ~(alignment - 1);
  if (aligned > start) munmap(got, aligned - start);
  if (aligned < start + alignment) munmap(pointer(aligned + bytes), start + alignment - aligned);
  madvise(pointer(aligned), bytes, MADV_DONTDUMP);
  base_ = aligned;
  bytes_ = bytes;
  return true;
}

void AddressWindow::release() {
  if (bytes_ != 0) munmap(pointer(base_), bytes_);
  base_ = 0;
  bytes_ = 0;
}

mob_status_t AddressWindow::attach(int descriptor, size_t file_offset) {
  void* got = mmap(pointer(base_), bytes_, PROT_NONE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED,
                   descriptor, static_cast<off_t>(file_offset));
  if (got == MAP_FAILED) {
    return base::fail_errno(MOB_ERR_MEMORY, errno,
                            "mapping a window of %zu bytes on shared memory failed", bytes_);
  }
  madvise(got, bytes_, MADV_DONTDUMP);
  // All of it or nothing: parts with different advice would become separate mappings for good.
  if (shared_huge_pages() == "advise") madvise(got, bytes_, MADV_HUGEPAGE);
  return MOB_OK;
}

mob_status_t AddressWindow::allow(size_t offset, size_t bytes) {
  if (mprotect(pointer(base_ + offset), bytes, PROT_READ | PROT_WRITE) == 0) return MOB_OK;
  return base::fail_errno(MOB_ERR_MEMORY, errno,
                          "opening %zu bytes of shared memory failed (see vm.max_map_count)",
                          bytes);
}

void AddressWindow::deny(size_t offset, size_t bytes) {
  mprotect(pointer(base_ + offset), bytes, PROT_NONE);
}

}  // namespace mobius::os
