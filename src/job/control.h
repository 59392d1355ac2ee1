// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The segment: the one anonymous memfd in which the processes of a host share memory, and its first
// bytes, the control block. Made by the launcher (or by a job of one for itself); every process
// maps it. It is larger than any host's memory and almost all of it a hole: pages exist where they
// were reserved. Everything in it is valid as zeros except the header.
//
//   0            control block: header, barrier, one slot per process
//   kPlacesOffset  where each rank of the job is, if it is on several hosts
//   kEngineOffset  what the engine shares beside the window (engine/segment/host_memory.h)
//   kWindowOffset  the window: memory of the user (engine/segment/window.h)

#include <mobius/job.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "job/layout.h"
#include "os/crowding.h"
#include "os/topology.h"

namespace mobius::job {

inline constexpr uint64_t kControlMagic = 0x6c6f72746e6f634d;  // "Mcontrol"
inline constexpr uint32_t kControlVersion = 7;

inline constexpr size_t kPlacesOffset = size_t{1} << 20;
inline constexpr size_t kEngineOffset = size_t{2} << 20;
inline constexpr size_t kWindowOffset = size_t{1} << 30;
// Holds the largest window that MOBIUS_WINDOW_BYTES allows.
inline constexpr size_t kSegmentBytes = kWindowOffset + (size_t{64} << 40);

// Largest block that HostGroup::exchange() carries per process, in bytes.
inline constexpr size_t kExchangeBytes = 44;

// One line per word that another process writes, so that arrivals do not slow down waiters.
struct BarrierBlock {
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> generation;  // futex word
  std::atomic<uint32_t> sleepers;
};

// What the others know about a process.
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
  // Of the process, so that a reused pid is told apart; 0 when the others cannot look it up.
  std::atomic<uint64_t> start_time;
  os::Crowding::Place processor;
  unsigned char exchange[kExchangeBytes];
  os::ProcessorSet processors;  // that it could run on when it joined
};
static_assert(sizeof(ProcessSlot) == 64 + sizeof(os::ProcessorSet));

// Makes it known to all that a process, which has ended, did not leave in order; false if it did.
bool declare_dead(ProcessSlot& slot);

// Processes that a host group can ever have, also after it has grown: what fits before the engine's
// part of the segment.
inline constexpr mob_rank_t kMostHostMates = 4096;

struct ControlHeader {
  uint64_t magic;
  uint32_t version;
  int32_t size;  // processes of the host group
  int32_t job_size;
  int32_t hosts;
  int32_t host;  // which of them this is
  int32_t reserved;
};

struct ControlBlock {
  ControlHeader header;
  BarrierBlock barrier;

  // One word per rank of a job of several hosts.
  const uint32_t* places() const {
    return reinterpret_cast<const uint32_t*>(reinterpret_cast<const char*>(this) + kPlacesOffset);
  }
  // One slot per host-mate follows the block.
  ProcessSlot& slot(mob_rank_t index) { return reinterpret_cast<ProcessSlot*>(this + 1)[index]; }
};
static_assert(sizeof(ControlBlock) % alignof(ProcessSlot) == 0);

constexpr size_t control_bytes(mob_rank_t size) {
  return sizeof(ControlBlock) + static_cast<size_t>(size) * sizeof(ProcessSlot);
}

static_assert(control_bytes(kMostHostMates) <= kPlacesOffset);
static_assert(kPlacesOffset + size_t{kMostRanks} * sizeof(uint32_t) <= kEngineOffset);

// Makes a segment with the control block of `size` processes, the whole job, whose memory is
// reserved. `*descriptor` is owned by the caller.
mob_status_t control_create(mob_rank_t size, int* descriptor);
// The same for one host of a job.
mob_status_t control_create(const Layout& layout, int host, int* descriptor);

// Maps and checks the control block of a segment; `*block` stays valid until control_unmap().
mob_status_t control_map(int descriptor, ControlBlock** block);
void control_unmap(ControlBlock* block);

}  // namespace mobius::job
