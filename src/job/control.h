// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The segment, an anonymous memfd in which the processes of a host share memory, and its first
// bytes, the control block. The launcher makes it (a job of one makes its own) and every process
// maps it. It is larger than any host's memory and sparse: pages exist only where they were
// reserved. Zeros are a valid state of everything in it except the header.
//
//   0            control block: header, barrier, one slot per process
//   kPlacesOffset  the place of each rank, in a job on several hosts
//   kEngineOffset  the engine's shared state beside the window (engine/segment/host_memory.h)
//   kWindowOffset  the window: memory of the user (engine/segment/window/window.h)

#include <mobius/job.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "job/layout.h"
#include "os/cpu/topology.h"
#include "os/sync/crowding.h"

namespace mobius::job {

inline constexpr uint64_t kControlMagic = 0x6c6f72746e6f634d;  // "Mcontrol"
inline constexpr uint32_t kControlVersion = 7;

inline constexpr size_t kPlacesOffset = size_t{1} << 20;
inline constexpr size_t kEngineOffset = size_t{2} << 20;
inline constexpr size_t kWindowOffset = size_t{1} << 30;
// Holds the largest window that MOBIUS_WINDOW_BYTES allows.
inline constexpr size_t kSegmentBytes = kWindowOffset + (size_t{64} << 40);

// Largest value that HostGroup::exchange() carries per process.
inline constexpr size_t kExchangeBytes = 44;

// The words are on separate cache lines, so that arrivals do not slow down waiters.
struct BarrierBlock {
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> generation;  // futex word
  std::atomic<uint32_t> sleepers;
};

// The state of a process, as it and the others record it.
enum class ProcessState : uint32_t {
  kAbsent,
  kLive,
  kLeaving,  // waits in mob_finalize() for the others
  kLeft,
  kDead
};

struct alignas(64) ProcessSlot {
  std::atomic<int32_t> pid;
  std::atomic<ProcessState> state;
  // Of the process; tells it apart from a later one with the same pid. 0: other processes see it
  // under another pid or not at all.
  std::atomic<uint64_t> start_time;
  os::Crowding::Place processor;
  unsigned char exchange[kExchangeBytes];
  os::ProcessorSet processors;  // those it was allowed to run on when it joined
};
static_assert(sizeof(ProcessSlot) == 64 + sizeof(os::ProcessorSet));

// Marks a process that has ended as dead, for all processes to see; false if it had left in order.
bool declare_dead(ProcessSlot& slot);

// The most processes that one host can have: their slots fit before kPlacesOffset.
inline constexpr mob_rank_t kMostLocalPeers = 4096;

struct ControlHeader {
  uint64_t magic;
  uint32_t version;
  int32_t size;  // processes of the host group
  int32_t job_size;
  int32_t hosts;
  int32_t host;  // the number of this host
  int32_t reserved;
};

struct ControlBlock {
  ControlHeader header;
  BarrierBlock barrier;

  // One word per rank, in a job on several hosts.
  const uint32_t* places() const {
    return reinterpret_cast<const uint32_t*>(reinterpret_cast<const char*>(this) + kPlacesOffset);
  }
  // One slot per process of the host follows the block.
  ProcessSlot& slot(mob_rank_t index) { return reinterpret_cast<ProcessSlot*>(this + 1)[index]; }
};
static_assert(sizeof(ControlBlock) % alignof(ProcessSlot) == 0);

constexpr size_t control_bytes(mob_rank_t size) {
  return sizeof(ControlBlock) + static_cast<size_t>(size) * sizeof(ProcessSlot);
}

static_assert(control_bytes(kMostLocalPeers) <= kPlacesOffset);
static_assert(kPlacesOffset + size_t{kMostRanks} * sizeof(uint32_t) <= kEngineOffset);

// Makes a segment with a control block for a job of `size` processes on one host and reserves the
// block's memory. The caller owns `*descriptor`.
mob_status_t control_create(mob_rank_t size, int* descriptor);
// The same for one host of a job on several.
mob_status_t control_create(const Layout& layout, int host, int* descriptor);

// Maps and checks the control block of a segment; `*block` stays valid until control_unmap().
mob_status_t control_map(int descriptor, ControlBlock** block);
void control_unmap(ControlBlock* block);

}  // namespace mobius::job
