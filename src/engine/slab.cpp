// SPDX-License-Identifier: BSD-3-Clause
#include "engine/slab.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <numeric>

#include "base/status.h"
#include "os/memfd.h"

namespace mobius::engine {

using base::fail;
using base::fail_errno;

mob_status_t PartMap::open(size_t window_bytes) {
  chunks_ = window_bytes >> kChunkShift;
  void* memory = mmap(nullptr, chunks_ * sizeof *entries_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    chunks_ = 0;
    return fail_errno(MOB_ERR_MEMORY, errno, "reserving the part map failed");
  }
  entries_ = static_cast<std::atomic<const Part*>*>(memory);  // zeros are null pointers
  return MOB_OK;
}

void PartMap::close() {
  if (entries_ != nullptr) munmap(static_cast<void*>(entries_), chunks_ * sizeof *entries_);
  entries_ = nullptr;
  chunks_ = 0;
}

void PartMap::set(const Part& part, const Part* value) {
  const uint64_t first = part.offset >> kChunkShift;
  const uint64_t end = (part.offset + part.bytes + kChunkBytes - 1) >> kChunkShift;
  // Release pairs with find(): who sees the pointer sees the part.
  for (uint64_t i = first; i < end; ++i) entries_[i].store(value, std::memory_order_release);
}

mob_status_t Slabs::open(job::HostGroup& group, Window& window) {
  group_ = &group;
  window_ = &window;
  ranges_ = RangeAllocator(window.bytes());
  return map_.open(window.bytes());
}

void Slabs::close() {
  for (const auto& slab : live_) unmap(*slab);
  live_.clear();
  map_.close();
}

mob_status_t Slabs::check_room(const std::vector<size_t>& sizes, size_t available,
                               size_t* total) const {
  *total = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > window_->bytes() || __builtin_add_overflow(*total, sizes[i], total)) {
      return fail(MOB_ERR_RANGE,
                  "mob_mem_alloc: %zu bytes at rank %zu are more than the window of %zu bytes; see "
                  "MOBIUS_WINDOW_BYTES",
                  sizes[i], i, window_->bytes());
    }
  }
  if (*total > available) {
    return fail(
        MOB_ERR_MEMORY,
        "mob_mem_alloc: the processes of this host ask for %zu bytes together, but only %zu "
        "bytes of memory are available",
        *total, available);
  }
  return MOB_OK;
}

mob_status_t Slabs::allocate(size_t bytes, bool valid_call, Slab** result) {
  struct Request {
    size_t bytes;
    size_t available;  // of the host; asked of the kernel by one process for all
    bool valid_call;
  };
  const bool leader = group_->index() == 0;
  const auto requests =
      group_->exchange(Request{bytes, leader ? os::available_memory() : 0, valid_call});
  std::vector<size_t> sizes(requests.size());
  std::ranges::transform(requests, sizes.begin(), &Request::bytes);
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].valid_call) continue;
    return fail(valid_call ? MOB_ERR_PEER : MOB_ERR_ARGUMENT,
                "mob_mem_alloc: rank %zu passed a null result pointer", i);
  }
  size_t total = 0;
  if (const mob_status_t status = check_room(sizes, requests[0].available, &total)) return status;

  auto slab = std::make_unique<Slab>();
  const size_t largest = std::max<size_t>(std::ranges::max(sizes), 1);
  const size_t stride = (largest + kChunkBytes - 1) & ~(kChunkBytes - 1);
  if (__builtin_mul_overflow(stride, sizes.size(), &slab->bytes) ||
      !ranges_.allocate(slab->bytes, &slab->offset)) {
    return fail(MOB_ERR_MEMORY,
                "mob_mem_alloc: %zu parts of up to %zu bytes do not fit into what is left of the "
                "window of %zu bytes; free allocations or raise MOBIUS_WINDOW_BYTES",
                sizes.size(), largest, window_->bytes());
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    slab->parts.emplace_back(slab->offset + i * stride, sizes[i], static_cast<mob_rank_t>(i));
  }
  if (const mob_status_t status = back_with_memory(*slab)) {
    ranges_.release(slab->offset, slab->bytes);
    return status;
  }
  for (const Part& part : slab->parts) map_.set(part, &part);
  *result = slab.get();
  const std::unique_lock lock(mutex_);
  live_.push_back(std::move(slab));
  return MOB_OK;
}

// Makes the memfd, gives it to everyone, maps it; each process reserves the pages of its own part,
// which also puts them on its NUMA node. Leaves nothing behind on failure.
mob_status_t Slabs::back_with_memory(Slab& slab) {
  int descriptor = -1;
  mob_status_t status = MOB_OK;
  if (group_->index() == 0) {
    status = os::memfd_create_sized("mobius-slab", slab.bytes, &descriptor);
  }
  if ((status = group_->agree(status, "mob_mem_alloc"))) {
    if (descriptor >= 0) ::close(descriptor);
    return status;
  }
  status = group_->share_descriptor(descriptor, &descriptor);
  if (status == MOB_OK) {
    status = window_->memory().map(slab.offset, slab.bytes, descriptor);
    const Part& own = slab.parts[static_cast<size_t>(group_->index())];
    if (status == MOB_OK) {
      status = os::memfd_reserve(descriptor, own.offset - slab.offset, own.bytes);
    }
  }
  if (descriptor >= 0) ::close(descriptor);
  status = group_->agree(status, "mob_mem_alloc");
  if (status != MOB_OK) window_->memory().unmap(slab.offset, slab.bytes);
  return status;
}

mob_status_t Slabs::release(Slab* slab) {
  // Everybody has stopped using the slab before anybody takes it away.
  group_->barrier();
  unmap(*slab);
  ranges_.release(slab->offset, slab->bytes);
  const std::unique_lock lock(mutex_);
  std::erase_if(live_, [slab](const auto& entry) { return entry.get() == slab; });
  return MOB_OK;
}

void Slabs::unmap(const Slab& slab) {
  for (const Part& part : slab.parts) map_.set(part, nullptr);
  window_->memory().unmap(slab.offset, slab.bytes);
}

bool Slabs::is_live(const Slab* slab) const {
  const std::shared_lock lock(mutex_);
  return std::ranges::any_of(live_, [slab](const auto& entry) { return entry.get() == slab; });
}

}  // namespace mobius::engine
