// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/window/window.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "os/file/unix_socket.h"
#include "os/memory/memory_limits.h"

namespace mobius::engine {
namespace {

using base::fail;

constexpr size_t kMinimumBytes = size_t{64} << 20;

// Windows at different addresses keep their distance a multiple of this where there is room, so
// that one offset has such an alignment in every process (shmem_align()).
constexpr size_t kCommonAlignment = size_t{64} << 20;

// Places that programs, heaps, libraries and stacks leave alone on x86-64 and (the lower ones) on
// 47-bit and smaller address spaces elsewhere. Sanitizers occupy some of them. Windows of the
// default size do not overlap.
constexpr uintptr_t kCandidates[] = {
    0x600000000000, 0x680000000000, 0x300000000000, 0x380000000000, 0x200000000000, 0x280000000000,
    0x100000000000, 0x180000000000, 0x400000000000, 0x480000000000, 0x500000000000, 0x004000000000};

}  // namespace

// The index of the candidate that the job tries first. Jobs of one user begin with different ones,
// because processes of one job that connect to another map both windows (engine/guests.h). A socket
// that is bound to the place's name says that it is taken, and vanishes with the process.
size_t Window::claim_place(const job::HostGroup& group) {
  if (group.control().header.hosts > 1) return 0;  // nobody joins such jobs through a port
  for (size_t place = 0; place < std::size(kCandidates); ++place) {
    claim_.hold(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!claim_.is_held()) break;
    sockaddr_un address{};
    const socklen_t length = os::abstract_address(
        "mobius-window-" + std::to_string(geteuid()) + "-" + std::to_string(place), &address);
    if (bind(claim_.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return place;
  }
  claim_.close();
  // All are taken: any, so that two such jobs may still have different ones.
  return static_cast<size_t>(getpid()) % std::size(kCandidates);
}

mob_status_t Window::open(job::HostGroup& group, const base::Settings& settings) {
  const bool is_first = group.first() == 0;
  same_address_ = false;
  mob_status_t status = is_first ? reserve_first(group, settings) : reserve_later(group);
  if (status == MOB_OK) status = attach(group.segment());
  job::ControlBlock& control = group.control();
  bases_ = control.bases();
  control.bases()[group.index()].store(memory_.base(), std::memory_order_relaxed);
  if (is_first && group.index() == 0) {
    control.header.window_bytes.store(bytes(), std::memory_order_relaxed);
    control.header.window_base.store(same_address_ ? memory_.base() : 0, std::memory_order_relaxed);
  }
  if ((status = group.agree(status, "mob_init"))) {
    close();
    return status;
  }
  base::log(base::LogLevel::kDebug, "window of %zu bytes at 0x%zx (%s addresses)", bytes(),
            static_cast<size_t>(memory_.base()), same_address_ ? "same" : "table of");
  return status;
}

// For the processes that the job begins with. Fails in all of them, but for the last step.
mob_status_t Window::reserve_first(job::HostGroup& group, const base::Settings& settings) {
  const size_t wanted =
      settings.number(base::SettingId::kWindowBytes) & ~(uint64_t{kChunkBytes} - 1);
  size_t size = 0;
  if (const mob_status_t status = agree_on_size(group, wanted, &size)) return status;

  const base::AddressMode mode = settings.address_mode();
  // One process that was told otherwise decides for all.
  struct Choice {
    base::AddressMode mode;
    size_t place;  // of the first process
  };
  std::vector<Choice> choices;
  const size_t place = group.index() == 0 ? claim_place(group) : 0;
  if (const mob_status_t status = group.exchange(Choice{mode, place}, &choices)) return status;
  const auto any_wants = [&](base::AddressMode one) {
    return std::ranges::count(choices, one, &Choice::mode) > 0;
  };
  const bool want_table = any_wants(base::AddressMode::kTable);
  const bool insist = any_wants(base::AddressMode::kSame);
  if (insist && want_table) {
    return fail(MOB_ERR_SETTING,
                "MOBIUS_ADDRESS_MODE is 'same' in one process of the job and 'table' in another; "
                "give all the same value");
  }
  if (!want_table) {
    if (const mob_status_t status = try_same_address(group, size, choices[0].place)) return status;
  }
  if (!same_address_ && insist) {
    return fail(MOB_ERR_MEMORY,
                "MOBIUS_ADDRESS_MODE=same, but no %zu bytes of address space are free at one place "
                "in every process; use 'auto', or a smaller MOBIUS_WINDOW_BYTES",
                size);
  }
  if (!same_address_ && !memory_.reserve_anywhere(size, kCommonAlignment) &&
      !memory_.reserve_anywhere(size, kChunkBytes)) {
    return fail(MOB_ERR_MEMORY, "%zu bytes of address space could not be reserved again", size);
  }
  return MOB_OK;
}

// For spawned processes: a window like that of the processes that are there.
mob_status_t Window::reserve_later(job::HostGroup& group) {
  const job::ControlHeader& header = group.control().header;
  const size_t size = header.window_bytes.load(std::memory_order_relaxed);
  const uintptr_t base = header.window_base.load(std::memory_order_relaxed);
  same_address_ = base != 0;
  const bool is_reserved = same_address_ ? memory_.reserve_at(base, size)
                                         : memory_.reserve_anywhere(size, kCommonAlignment) ||
                                               memory_.reserve_anywhere(size, kChunkBytes);
  if (is_reserved) return MOB_OK;
  if (!same_address_) {
    return fail(MOB_ERR_MEMORY, "no %zu bytes of address space can be reserved; %s", size,
                os::mapping_limit(errno).c_str());
  }
  return fail(MOB_ERR_MEMORY,
              "the shared memory of this job takes %zu bytes at the address 0x%zx, which are not "
              "free in this process; start the job with MOBIUS_ADDRESS_MODE=table, or raise the "
              "limit on address space (ulimit -v)",
              size, static_cast<size_t>(base));
}

mob_status_t Window::open_for_threads(const job::HostGroup& group, const base::Settings& settings) {
  size_t size = settings.number(base::SettingId::kWindowBytes) & ~(uint64_t{kChunkBytes} - 1);
  while (size >= kMinimumBytes && !memory_.reserve_anywhere(size, kChunkBytes)) size /= 2;
  if (size < kMinimumBytes) {
    return fail(MOB_ERR_MEMORY,
                "no %zu bytes of address space can be reserved for shared memory; %s",
                kMinimumBytes, os::mapping_limit(errno).c_str());
  }
  same_address_ = true;  // there is one address space
  const mob_status_t status = attach(group.segment());
  if (status != MOB_OK) close();
  return status;
}

mob_status_t Window::attach(int segment) {
  const size_t table_bytes = (bytes() >> kChunkShift) * sizeof *opened_;
  void* memory = mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return base::fail_errno(MOB_ERR_MEMORY, errno,
                            "no %zu bytes of address space beside the window of %zu bytes; %s, or "
                            "lower MOBIUS_WINDOW_BYTES",
                            table_bytes, bytes(), os::mapping_limit(errno).c_str());
  }
  opened_ = static_cast<std::atomic<uint32_t>*>(memory);  // zeros: nothing is
  if (!open_chunks_.open(bytes() >> kChunkShift, most_borders())) {
    return base::fail(MOB_ERR_MEMORY, "no address space for the table of a window of %zu bytes",
                      bytes());
  }
  return memory_.attach(segment, job::kWindowOffset);
}

void Window::close() {
  if (opened_ != nullptr) munmap(opened_, (bytes() >> kChunkShift) * sizeof *opened_);
  opened_ = nullptr;
  open_chunks_.close();
  memory_.release();
  claim_.close();
  bases_ = nullptr;
}

mob_status_t Window::allow(uint64_t offset, uint64_t chunks) {
  const std::lock_guard lock(mutex_);
  return allow_locked(offset, chunks);
}

mob_status_t Window::allow_locked(uint64_t offset, uint64_t chunks) {
  const ChunkRun run = open_chunks_.to_allow({offset >> kChunkShift, chunks});
  const mob_status_t status = memory_.allow(run.first << kChunkShift, run.count << kChunkShift);
  if (status == MOB_OK) open_chunks_.set(run, true);
  return status;
}

mob_status_t Window::open_region(const Region& region) {
  const std::lock_guard lock(mutex_);
  if (const mob_status_t status = allow_locked(region.offset, chunks_of(region.bytes))) {
    return status;
  }
  opened_[region.offset >> kChunkShift].store(region.generation, std::memory_order_relaxed);
  return MOB_OK;
}

void Window::deny(uint64_t offset, uint64_t chunks) {
  const std::lock_guard lock(mutex_);
  for (uint64_t i = 0; i < chunks; ++i) {
    opened_[(offset >> kChunkShift) + i].store(0, std::memory_order_relaxed);
  }
  const ChunkRun run{offset >> kChunkShift, chunks};
  if (!open_chunks_.may_deny(run)) {
    if (std::exchange(said_many_mappings_, true)) return;
    base::log(base::LogLevel::kWarn,
              "this process has %zu mappings of shared memory, many of them between freed "
              "allocations; to leave the program enough (vm.max_map_count), freed memory stays "
              "accessible from now on, so that stray accesses to it are not noticed",
              static_cast<size_t>(open_chunks_.borders()));
    return;
  }
  memory_.deny(offset, chunks << kChunkShift);
  open_chunks_.set(run, false);
}

// The largest size that every process can reserve: halve until it fits, then take the least.
mob_status_t Window::agree_on_size(job::HostGroup& group, size_t wanted, size_t* agreed) {
  size_t size = wanted;
  int error = 0;
  while (size >= kMinimumBytes && !memory_.reserve_anywhere(size, kChunkBytes)) {
    error = errno;
    size /= 2;
  }
  memory_.release();
  std::vector<size_t> sizes;
  if (const mob_status_t status = group.exchange(size, &sizes)) return status;
  *agreed = std::ranges::min(sizes);
  if (*agreed >= kMinimumBytes) return MOB_OK;
  if (size >= kMinimumBytes) {
    return fail(MOB_ERR_MEMORY,
                "another process of this host cannot reserve %zu bytes of address space for shared "
                "memory, and says why",
                kMinimumBytes);
  }
  return fail(MOB_ERR_MEMORY, "no %zu bytes of address space can be reserved for shared memory; %s",
              kMinimumBytes, os::mapping_limit(error).c_str());
}

// Sets same_address_ if there is a place that is free in every process.
mob_status_t Window::try_same_address(job::HostGroup& group, size_t size, size_t place) {
  for (size_t i = 0; i < std::size(kCandidates); ++i) {
    const uintptr_t candidate = kCandidates[(place + i) % std::size(kCandidates)];
    const int here = memory_.reserve_at(candidate, size) ? 1 : 0;
    std::vector<int> everywhere;
    if (const mob_status_t status = group.exchange(here, &everywhere)) return status;
    same_address_ = std::ranges::count(everywhere, 0) == 0;
    if (same_address_) return MOB_OK;
    memory_.release();
  }
  return MOB_OK;
}

}  // namespace mobius::engine
