// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The segment, an anonymous memfd in which the processes of a host share memory, and its first
// bytes, the control block. The launcher makes it (a job of one makes its own) and every process
// maps it. It is larger than any host's memory and sparse: pages exist only where they were
// reserved. Zeros are a valid state of everything in it except the header.
//
//   0            control block: header, barrier, one slot per process
//   kPlacesOffset  the place of each rank, in a job on several hosts
//   kBasesOffset   where each process has its window
//   kRanksOffset   the rank of each process of this host, in a job on several hosts
//   kWorldsOffset  the processes that were started later, by the number of the first of each spawn
//   kEngineOffset  the engine's shared state beside the window (engine/segment/segment_layout.h)
//   kWindowOffset  the window: memory of the user (engine/segment/window/window.h)

#include <mobius/job.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "job/layout.h"
#include "os/cpu/topology.h"
#include "os/sync/crowding.h"

namespace mobius::job {

inline constexpr uint64_t kControlMagic = 0x6c6f72746e6f634d;  // "Mcontrol"
inline constexpr uint32_t kControlVersion = 10;

inline constexpr size_t kPlacesOffset = size_t{1} << 20;
inline constexpr size_t kBasesOffset = kPlacesOffset + (size_t{64} << 10);
inline constexpr size_t kRanksOffset = kBasesOffset + (size_t{32} << 10);
inline constexpr size_t kWorldsOffset = kPlacesOffset + (size_t{128} << 10);
inline constexpr size_t kEngineOffset = size_t{2} << 20;
inline constexpr size_t kWindowOffset = size_t{1} << 30;
// Holds the largest window that MOBIUS_WINDOW_BYTES allows.
inline constexpr size_t kSegmentBytes = kWindowOffset + (size_t{64} << 40);

// Largest value that HostGroup::exchange() carries per process.
inline constexpr size_t kExchangeBytes = 40;

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
  mob_rank_t world;             // the number of the first process of its world
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
  // Numbers given out: those of this host's processes, dead ones and spawned ones too, are below.
  std::atomic<int32_t> numbers;
  // Of the window, as the first world agreed: its size, and its address if all have the same, else
  // 0.
  std::atomic<uint64_t> window_bytes;
  std::atomic<uint64_t> window_base;
  // In a job on several hosts: numbers given out on all of them. The places of lower ones are
  // written.
  std::atomic<int32_t> job_numbers;
};

enum class WorldState : uint32_t {
  kNone,
  kAsked,    // the processes are being started
  kStarted,  // their number is final, and they join
  kJoined,
  kFailed,  // it is given up, and they are being ended
  kEnded    // all of them have ended, after kFailed
};

// The processes of one spawn: their *world*. They have consecutive numbers. The record lies at the
// number of the first. Only the process that spawns and the one that starts them change it, but for
// the barrier.
//
// A job on several hosts keeps this record beside its directory (bootstrap/directory.h). Each host
// with processes of the world has one more, for these alone: its numbers, size and parent are those
// of the host. The launcher changes that one, and the members of the bridge when all have met.
struct World {
  alignas(64) std::atomic<WorldState> state;  // futex word
  int32_t size;                               // final from kStarted on; before as many as asked for
  int32_t least;                              // fewer than that cannot be started: the spawn fails
  int32_t spawner;                            // the process that asked for them
  int32_t parent;                             // the first number of that one's world
  // 1: the processes and those of the parent world wait for each other at the end of the job.
  std::atomic<uint32_t> is_connected;
  // 1: the processes came through a port (port.h). They are another job's, and nobody starts or
  // ends them for this one.
  std::atomic<uint32_t> is_foreign;
  mob_status_t failure;  // why the spawn fails, with the reason in the SpawnMemory
  uint64_t memory;       // offset in the segment of the SpawnMemory
  uint64_t bridge;       // offset in the window of what both worlds share (engine/dynamic/bridge.h)
  // In the record of a host: the numbers in the whole job.
  int32_t number;
  int32_t total;
  // … and where the members of the bridge on this host meet, if one of the processes that spawned
  // is here: a chunk of the window, plus 1. 0: not known yet.
  std::atomic<uint32_t> area;
  // … and 1, when all have joined, if the process that asked for them is here.
  std::atomic<uint32_t> have_joined;
  BarrierBlock barrier;
};

// What is needed to start the processes of a world, and why that failed. The text of the request
// follows (job/spawn_request.h).
struct SpawnMemory {
  uint64_t request_bytes;
  char reason[248];  // zero-terminated; while the state is kAsked or kStarted, written before it
                     // becomes kFailed
};

// Changes the state of a world and wakes the threads that wait for it. False, without a change, if
// the state is not `from`.
bool change_state(World& world, WorldState from, WorldState to);

// Writes into a world's SpawnMemory why the spawn fails. The text is cut off where the room ends.
void write_reason(int segment, const World& world, std::string_view reason);

struct ControlBlock {
  ControlHeader header;
  BarrierBlock barrier;

  // One word per rank, in a job on several hosts.
  uint32_t* places() {
    return reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(this) + kPlacesOffset);
  }
  // The rank of each process of this host, by its index here; several hosts only.
  int32_t* ranks() {
    return reinterpret_cast<int32_t*>(reinterpret_cast<char*>(this) + kRanksOffset);
  }
  // The address of the window in each process of this host, by number.
  std::atomic<uint64_t>* bases() {
    return reinterpret_cast<std::atomic<uint64_t>*>(reinterpret_cast<char*>(this) + kBasesOffset);
  }
  // The record of the spawn whose first process has this number.
  World& world(mob_rank_t first) {
    return reinterpret_cast<World*>(reinterpret_cast<char*>(this) + kWorldsOffset)[first];
  }
  // One slot per process of the host follows the block.
  ProcessSlot& slot(mob_rank_t index) { return reinterpret_cast<ProcessSlot*>(this + 1)[index]; }
};
static_assert(sizeof(ControlBlock) % alignof(ProcessSlot) == 0);

constexpr size_t control_bytes(mob_rank_t size) {
  return sizeof(ControlBlock) + static_cast<size_t>(size) * sizeof(ProcessSlot);
}

static_assert(control_bytes(kMostLocalPeers) <= kPlacesOffset);
static_assert(kPlacesOffset + size_t{kMostRanks} * sizeof(uint32_t) <= kBasesOffset);
static_assert(kBasesOffset + size_t{kMostLocalPeers} * sizeof(uint64_t) <= kRanksOffset);
static_assert(kRanksOffset + size_t{kMostLocalPeers} * sizeof(int32_t) <= kWorldsOffset);
static_assert(kWorldsOffset + size_t{kMostLocalPeers} * sizeof(World) <= kEngineOffset);

// Makes a segment with a control block for a job of `size` processes on one host and reserves the
// block's memory. The caller owns `*descriptor`.
mob_status_t control_create(mob_rank_t size, int* descriptor);
// The same for one host of a job on several.
mob_status_t control_create(const Layout& layout, int host, int* descriptor);

// Reserves the memory of the control block for `count` more processes from number `first` on, and
// for their world. On several hosts these are numbers of the host.
mob_status_t control_reserve(int descriptor, mob_rank_t first, mob_rank_t count);
// The same for the places of `count` more numbers of a job on several hosts.
mob_status_t control_reserve_places(int descriptor, mob_rank_t first, mob_rank_t count);

// Maps and checks the control block of a segment; `*block` stays valid until control_unmap().
mob_status_t control_map(int descriptor, ControlBlock** block);
void control_unmap(ControlBlock* block);

}  // namespace mobius::job
