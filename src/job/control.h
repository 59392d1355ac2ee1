// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The control block: the memory that the processes of one host share before there is any other.
// Made by the launcher (or by a job of one for itself) in an anonymous memfd, mapped by every
// process. Everything in it is valid as zeros except the header.

#include <mobius/job.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mobius::job {

inline constexpr uint64_t kControlMagic = 0x6c6f72746e6f634d;  // "Mcontrol"
inline constexpr uint32_t kControlVersion = 1;

// Largest block that HostGroup::exchange() carries per process, in bytes.
inline constexpr size_t kExchangeBytes = 48;

// One line per word that another process writes, so that arrivals do not slow down waiters.
struct BarrierBlock {
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> generation;  // futex word
  std::atomic<uint32_t> sleepers;
};

struct alignas(64) ProcessSlot {
  std::atomic<int32_t> pid;
  uint32_t unused[3];
  unsigned char exchange[kExchangeBytes];
};
static_assert(sizeof(ProcessSlot) == 64);

struct ControlHeader {
  uint64_t magic;
  uint32_t version;
  int32_t size;  // processes of the host group
};

struct ControlBlock {
  ControlHeader header;
  BarrierBlock barrier;

  // One slot per host-mate follows the block.
  ProcessSlot& slot(mob_rank_t index) { return reinterpret_cast<ProcessSlot*>(this + 1)[index]; }
};
static_assert(sizeof(ControlBlock) % alignof(ProcessSlot) == 0);

constexpr size_t control_bytes(mob_rank_t size) {
  return sizeof(ControlBlock) + static_cast<size_t>(size) * sizeof(ProcessSlot);
}

// Makes a control block for `size` processes in a new memfd with its memory reserved.
// `*descriptor` is owned by the caller.
mob_status_t control_create(mob_rank_t size, int* descriptor);

// Maps and checks a control block; `*block` stays valid until control_unmap().
mob_status_t control_map(int descriptor, ControlBlock** block);
void control_unmap(ControlBlock* block);

}  // namespace mobius::job
