// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/segment_layout.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/status.h"
#include "os/memory/memfd.h"
#include "os/memory/memory_limits.h"

namespace mobius::engine {

mob_status_t SegmentLayout::map(int segment, size_t chunks) {
  const size_t bytes = kChunkTableOffset - job::kEngineOffset + chunks * sizeof(ChunkEntry);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, segment,
                      static_cast<off_t>(job::kEngineOffset));
  if (memory == MAP_FAILED) {
    return base::fail_errno(MOB_ERR_MEMORY, errno,
                            "no %zu bytes of address space beside the window of %zu bytes; %s, or "
                            "lower MOBIUS_WINDOW_BYTES",
                            bytes, chunks << kChunkShift, os::mapping_limit(errno).c_str());
  }
  madvise(memory, bytes, MADV_DONTDUMP);
  mapping_ = std::shared_ptr<void>(memory, [bytes](void* mapped) { munmap(mapped, bytes); });
  memory_ = static_cast<unsigned char*>(memory);
  return MOB_OK;
}

mob_status_t SegmentLayout::reserve(int segment, mob_rank_t index) {
  const mob_status_t status =
      os::memfd_reserve(segment, job::kEngineOffset, sizeof(ChunkTableHeader));
  if (status != MOB_OK) return status;
  return os::memfd_reserve(segment,
                           kProcessBlocksOffset + static_cast<size_t>(index) * kProcessBlockBytes,
                           kProcessBlockBytes);
}

void SegmentLayout::close() {
  memory_ = nullptr;
  mapping_.reset();
}

}  // namespace mobius::engine
