// SPDX-License-Identifier: BSD-3-Clause
#include "job/control.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>

#include "base/status.h"
#include "os/memory/memfd.h"
#include "os/sync/futex.h"

namespace mobius::job {

using base::fail;
using base::fail_errno;

namespace {

mob_status_t write_at(int descriptor, const void* bytes, size_t count, size_t offset) {
  if (pwrite(descriptor, bytes, count, static_cast<off_t>(offset)) == static_cast<ssize_t>(count)) {
    return MOB_OK;
  }
  return fail_errno(MOB_ERR_SYSTEM, errno, "writing the job's control block failed");
}

// The memory of tables by the number of a process on its host.
mob_status_t reserve_tables(int descriptor, mob_rank_t first, mob_rank_t count) {
  const auto from = static_cast<size_t>(first);
  const auto more = static_cast<size_t>(count);
  const mob_status_t status = os::memfd_reserve(descriptor, kBasesOffset + from * sizeof(uint64_t),
                                                more * sizeof(uint64_t));
  if (status != MOB_OK) return status;
  return os::memfd_reserve(descriptor, kRanksOffset + from * sizeof(int32_t),
                           more * sizeof(int32_t));
}

mob_status_t write_layout(int descriptor, const Layout& layout, int host) {
  const std::vector<uint32_t> words = layout.encoded();
  const size_t bytes = words.size() * sizeof(uint32_t);
  mob_status_t status = os::memfd_reserve(descriptor, kPlacesOffset, bytes);
  if (status == MOB_OK) status = write_at(descriptor, words.data(), bytes, kPlacesOffset);
  const std::vector<int32_t> ranks = layout.ranks_of(host);
  if (status == MOB_OK) {
    status = write_at(descriptor, ranks.data(), ranks.size() * sizeof(int32_t), kRanksOffset);
  }
  return status;
}

mob_status_t create(const ControlHeader& header, const Layout* layout, int* descriptor) {
  const mob_rank_t size = header.size;
  if (size > kMostLocalPeers) {
    return fail(MOB_ERR_ARGUMENT, "a host can have %d processes of a job at most", kMostLocalPeers);
  }
  rlimit most{};
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < kSegmentBytes) {
    return fail(
        MOB_ERR_MEMORY,
        "the limit on the size of files (ulimit -f) also holds for shared memory and is too "
        "low: %llu bytes; set it to unlimited",
        static_cast<unsigned long long>(most.rlim_cur));
  }
  int fd = -1;
  if (const mob_status_t status = os::memfd_create_sized("mobius", kSegmentBytes, &fd)) {
    return status;
  }
  mob_status_t status = os::memfd_reserve(fd, 0, control_bytes(size));
  if (status == MOB_OK) status = reserve_tables(fd, 0, size);
  if (status == MOB_OK) {
    status = write_at(fd, &header, sizeof header, 0);
  }
  if (status == MOB_OK && layout != nullptr) status = write_layout(fd, *layout, header.host);
  if (status != MOB_OK) {
    close(fd);
    return status;
  }
  *descriptor = fd;
  return MOB_OK;
}

}  // namespace

mob_status_t control_create(mob_rank_t size, int* descriptor) {
  return create({kControlMagic, kControlVersion, size, size, 1, 0, size, 0, 0, size}, nullptr,
                descriptor);
}

mob_status_t control_create(const Layout& layout, int host, int* descriptor) {
  return create({kControlMagic, kControlVersion, layout.local_size_of(host), layout.size(),
                 layout.hosts(), host, layout.local_size_of(host), 0, 0, layout.size()},
                &layout, descriptor);
}

mob_status_t control_reserve(int descriptor, mob_rank_t first, mob_rank_t count) {
  mob_status_t status = os::memfd_reserve(descriptor, control_bytes(first),
                                          static_cast<size_t>(count) * sizeof(ProcessSlot));
  if (status == MOB_OK) status = reserve_tables(descriptor, first, count);
  if (status != MOB_OK) return status;
  return os::memfd_reserve(descriptor, kWorldsOffset + static_cast<size_t>(first) * sizeof(World),
                           sizeof(World));
}

mob_status_t control_reserve_places(int descriptor, mob_rank_t first, mob_rank_t count) {
  return os::memfd_reserve(descriptor,
                           kPlacesOffset + static_cast<size_t>(first) * sizeof(uint32_t),
                           static_cast<size_t>(count) * sizeof(uint32_t));
}

mob_status_t control_map(int descriptor, ControlBlock** block) {
  struct stat information{};
  if (fstat(descriptor, &information) != 0) {
    return fail_errno(MOB_ERR_SYSTEM, errno, "looking at the job's shared memory failed");
  }
  if (static_cast<size_t>(information.st_size) < kWindowOffset) {
    return fail(MOB_ERR_SYSTEM, "the job's shared memory has only %zu bytes",
                static_cast<size_t>(information.st_size));
  }
  void* memory = mmap(nullptr, kEngineOffset, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) {
    return fail_errno(MOB_ERR_MEMORY, errno, "mapping the job's control block failed");
  }
  auto* mapped = static_cast<ControlBlock*>(memory);
  const ControlHeader& header = mapped->header;
  if (header.magic != kControlMagic || header.version != kControlVersion || header.size < 1 ||
      header.size > kMostLocalPeers || header.job_size < header.size || header.hosts < 1 ||
      header.hosts > header.job_size || header.host < 0 || header.host >= header.hosts ||
      header.job_size > kMostRanks) {
    munmap(memory, kEngineOffset);
    return fail(MOB_ERR_SYSTEM,
                "the launcher's control block is of another version; use the `mobius` command that "
                "came with this library");
  }
  *block = mapped;
  return MOB_OK;
}

bool declare_dead(ProcessSlot& slot) {
  ProcessState seen = slot.state.load(std::memory_order_acquire);
  while (seen != ProcessState::kLeft && seen != ProcessState::kDead) {
    // Release pairs with the acquire in Liveness.
    if (slot.state.compare_exchange_weak(seen, ProcessState::kDead, std::memory_order_acq_rel)) {
      return true;
    }
  }
  return seen == ProcessState::kDead;
}

bool change_state(World& world, WorldState from, WorldState to) {
  // Release: a process that sees the state sees the size and the reason.
  if (!world.state.compare_exchange_strong(from, to, std::memory_order_acq_rel)) return false;
  os::futex_wake(&world.state, INT_MAX);
  return true;
}

void write_reason(int segment, const World& world, std::string_view reason) {
  char text[sizeof SpawnMemory::reason] = {};
  reason.copy(text, sizeof text - 1);
  [[maybe_unused]] const ssize_t wrote = pwrite(
      segment, text, sizeof text, static_cast<off_t>(world.memory + offsetof(SpawnMemory, reason)));
}

void control_unmap(ControlBlock* block) { munmap(block, kEngineOffset); }

}  // namespace mobius::job
