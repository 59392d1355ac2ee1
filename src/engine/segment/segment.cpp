// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/segment.h"

#include <utility>

#include "base/status.h"
#include "engine/segment/locks/shared_lock.h"
#include "os/memory/memfd.h"
#include "os/memory/memory_limits.h"

namespace mobius::engine {

using base::fail;

void Segment::adopt(std::shared_ptr<Window> window, const SegmentLayout& layout) {
  window_ = std::move(window);
  layout_ = layout;
}

void Segment::open_chunks() { chunks_.open(peers_, layout_, window_->bytes() >> kChunkShift); }

void Segment::close() {
  layout_.close();
  window_.reset();
}

void Segment::close_chunks(uint64_t offset, uint64_t chunks) {
  if (window_->same_address()) {
    for (mob_rank_t rank = 0; rank < peers_.bound(); ++rank) {
      target_forget_all(entry_of(rank), window_->base() + offset, chunks << kChunkShift);
    }
  }
  window_->deny(offset, chunks);
}

mob_status_t Segment::check_available(uint64_t bytes) {
  const os::AvailableMemory available = os::available_memory();
  if (bytes <= available.bytes) return MOB_OK;
  const std::string& why = available.limited_by;
  return fail(MOB_ERR_MEMORY, "%zu bytes of shared memory are needed, %zu are available%s%s",
              static_cast<size_t>(bytes), static_cast<size_t>(available.bytes),
              why.empty() ? "" : " ", why.c_str());
}

mob_status_t Segment::reserve_memory(uint64_t offset, size_t bytes) {
  constexpr size_t kChecked = size_t{1} << 20;
  if (bytes >= kChecked) {
    const LockGuard lock(peers_, layout_.chunk_table().reserve_lock);
    if (const mob_status_t status = check_available(bytes)) return status;
    return os::memfd_reserve(peers_.host().segment(), job::kWindowOffset + offset, bytes);
  }
  return os::memfd_reserve(peers_.host().segment(), job::kWindowOffset + offset, bytes);
}

void Segment::release_memory(uint64_t offset, size_t bytes) {
  os::memfd_release(peers_.host().segment(), job::kWindowOffset + offset, bytes);
}

mob_status_t Segment::explain_unreachable(const char* call, mob_rank_t rank, const void* remote,
                                          size_t bytes) const {
  const mob_rank_t index = peers_.host_index(rank);
  if (index < 0) {
    return fail(MOB_ERR_RANK,
                "%s: rank %d is on another host; its memory cannot be reached by a pointer", call,
                rank);
  }
  const uint64_t offset = reinterpret_cast<uintptr_t>(remote) - window_->base_of(index);
  Region region{};
  if (!chunks_.find(offset, &region) || region.owner != index) {
    if (bytes == 0) {
      return fail(MOB_ERR_RANGE, "%s: %p is not in any allocation of rank %d", call, remote, rank);
    }
    return fail(MOB_ERR_RANGE, "%s: %zu bytes at %p are not in any allocation of rank %d", call,
                bytes, remote, rank);
  }
  return fail(MOB_ERR_RANGE,
              "%s: %zu bytes at offset %zu do not fit into the %zu bytes that rank %d allocated "
              "there",
              call, bytes, static_cast<size_t>(offset - region.offset),
              static_cast<size_t>(region.bytes), rank);
}

}  // namespace mobius::engine
