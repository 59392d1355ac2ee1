// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The part of a host's segment (job/control.h) that the engines of its processes share beside the
// user's memory: one block per process and the table of chunks. Valid as zeros.

#include <mobius/job.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/segment/locks/atomic_zones.h"
#include "engine/segment/locks/private_atomic_zones.h"
#include "engine/segment/message_wire.h"
#include "engine/segment/range_table.h"
#include "job/control.h"
#include "os/sync/brief_lock.h"
#include "os/sync/hybrid_lock.h"
#include "transport/shm/accumulate.h"

namespace mobius::engine {

// Parts of the window start on multiples of this: one entry of the chunk table, one huge page.
inline constexpr unsigned kChunkShift = 21;
inline constexpr size_t kChunkBytes = size_t{1} << kChunkShift;
static_assert(kChunkBytes == AtomicZones::kChunkBytes);

// The state of one process that other processes write or read.
struct ProcessBlock {
  // Rung when something happened that a thread of this process may be sleeping for.
  struct alignas(64) Doorbell {
    std::atomic<uint32_t> bell;
    std::atomic<uint32_t> sleepers;
    // The processor on which the waiting thread ran last, plus 1; 0 if that is unknown or several
    // threads wait. Kept up to date where the process has delegation slots (rma/delegation.h).
    std::atomic<uint32_t> processor;
    // The state of the progress thread: how many threads poll in its place, and whether it sleeps
    // (progress/progress.h), and the word it sleeps on. In a line of its own: every wait of the
    // process writes here, and every process that rings reads the line above.
    alignas(64) std::atomic<uint32_t> attention;
    std::atomic<uint32_t> thread_bell;
    // The number of claims of other hosts on locks that this process hosts (remote/remote_locks.h).
    // A process that releases such a lock wakes this one.
    std::atomic<uint32_t> claims;
  } doorbell;
  // accumulate_locks.h; the zones are those of memory outside the window.
  struct alignas(64) Stripe {
    alignas(8) os::BriefLockWord lock;
    PrivateAtomicZones words;
  } stripes[transport::kLockStripes];
  static_assert(sizeof(Stripe) == 64);
  Inbox inbox;
  RangeTable exposures;  // exposures.h
  RangeTable remaps;     // remaps.h
  // Where the process' delegation slots are: their offset in the window, plus 1 (rma/delegation.h).
  std::atomic<uint64_t> delegation_slots;
  // 1: an origin found no waiting thread and took another path; the owner clears it.
  std::atomic<uint32_t> delegation_missed;
  // 1: the process is in mob_finalize() and takes no part in collective calls any more.
  std::atomic<uint32_t> is_ending;
  // Where the process keeps its entries for inlined operations, once one of them is of another
  // process' remapped memory, which the owner may take back; 1 while an entry is made
  // (rma/exposed/remap_views.h).
  std::atomic<uint32_t> is_entering;
  std::atomic<uint64_t> entries;
};
inline constexpr size_t kProcessBlockBytes = 8192;
static_assert(sizeof(ProcessBlock) <= kProcessBlockBytes);

// One chunk of the window. A region is a run of chunks that one process owns; the entry of its
// first chunk has its bytes, the others point to the first.
struct ChunkEntry {
  std::atomic<uint64_t> bytes;  // of the part, in the entry of its first chunk
  std::atomic<uint32_t> first;  // index of the part's first chunk, plus 1; 0: not part of any
  // Of the region, in the entry of its first chunk: the host index of its owner in the low
  // kOwnerBits, above it how often a region was made here, so that a process that opened an earlier
  // region notices.
  std::atomic<uint32_t> owner_and_generation;
  AtomicZones words;
};
inline constexpr unsigned kOwnerBits = 12;
static_assert(job::kMostLocalPeers <= 1 << kOwnerBits);

struct ChunkTableHeader {
  alignas(64) os::HybridLockWord lock;  // for those who claim and release
  std::atomic<uint64_t> high_water;     // chunks from here on were never used
  std::atomic<uint64_t> lowest_free;    // chunks below are all used
  // For processes that reserve much memory: between the look at what is left and the reservation no
  // other process of the host reserves.
  alignas(64) os::HybridLockWord reserve_lock;
};

// Offsets in the segment.
inline constexpr size_t kProcessBlocksOffset = job::kEngineOffset + (size_t{1} << 20);
inline constexpr size_t kChunkTableOffset = size_t{64} << 20;
inline constexpr size_t kNotificationsOffset = size_t{768} << 20;  // notifications.h
static_assert(kProcessBlocksOffset + job::kMostLocalPeers * kProcessBlockBytes <=
              kChunkTableOffset);

// Copies share one mapping, which lasts as long as any of them.
class SegmentLayout {
 public:
  // Maps the region of a window with `chunks` chunks.
  mob_status_t map(int segment, size_t chunks);
  // Reserves what process `index` needs of it.
  static mob_status_t reserve(int segment, mob_rank_t index);
  void close();

  ChunkTableHeader& chunk_table() const { return *at<ChunkTableHeader>(job::kEngineOffset); }
  ChunkEntry* chunks() const { return at<ChunkEntry>(kChunkTableOffset); }
  ProcessBlock& process(mob_rank_t index) const {
    return *at<ProcessBlock>(kProcessBlocksOffset +
                             static_cast<size_t>(index) * kProcessBlockBytes);
  }

 private:
  template <typename T>
  T* at(size_t segment_offset) const {
    return reinterpret_cast<T*>(memory_ + (segment_offset - job::kEngineOffset));
  }

  unsigned char* memory_ = nullptr;
  std::shared_ptr<void> mapping_;
};

}  // namespace mobius::engine
