// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The part of a host's segment (job/control.h) that the engines of its processes share beside the
// user's memory: one block per process and the table of chunks. Valid as zeros.

#include <mobius/job.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/segment/message_wire.h"
#include "engine/segment/range_table.h"
#include "engine/segment/private_atomic_zones.h"
#include "engine/segment/atomic_zones.h"
#include "job/control.h"
#include "os/hybrid_lock.h"
#include "transport/shm/accumulate.h"

namespace mobius::engine {

// Parts of the window start on multiples of this: one entry of the chunk table, one huge page.
inline constexpr unsigned kChunkShift = 21;
inline constexpr size_t kChunkBytes = size_t{1} << kChunkShift;
static_assert(kChunkBytes == AtomicZones::kChunkBytes);

// What others write or read of one process.
struct ProcessBlock {
  // Rung when something happened that a thread of this process may sleep for.
  struct alignas(64) Doorbell {
    std::atomic<uint32_t> bell;
    std::atomic<uint32_t> sleepers;
    // Where the thread that waits has run last: the processor's number, plus 1; 0: nobody knows, or
    // several wait. Kept up to date where there is a desk (desk.h).
    std::atomic<uint32_t> processor;
    // Of the progress thread: who need not wake it because they poll, and whether it sleeps
    // (engine/progress/progress.h); and what it sleeps on. Every wait of the process writes here,
    // where all that tell it something look at the line above.
    alignas(64) std::atomic<uint32_t> attention;
    std::atomic<uint32_t> thread_bell;
    // RemoteLocks of other hosts on locks that the process hosts, and that it waits for on their behalf
    // (claims.h): who releases such a lock wakes it.
    std::atomic<uint32_t> claims;
  } doorbell;
  // stripes.h; the marks are of memory that does not lie in the window.
  struct alignas(64) Stripe {
    os::HybridLockWord lock;
    PrivateAtomicZones words;
  } stripes[transport::kLockStripes];
  static_assert(sizeof(Stripe) == 64);
  Inbox inbox;
  RangeTable exposures;  // exposures.h
  RangeTable remaps;     // remaps.h
  // Where the process' desk is: its offset in the window, plus 1 (desk.h).
  std::atomic<uint64_t> desk;
  // 1: somebody came to it while no thread waited, and went another way; its owner clears it.
  std::atomic<uint32_t> missed_at_desk;
  // 1: it is in mob_finalize(), and takes no part in collective calls any more.
  std::atomic<uint32_t> is_ending;
  // Where it has its entries for inlined operations, once one is of moved memory of another, whose
  // owner takes that back; 1 while one is made (moved_views.h).
  std::atomic<uint32_t> is_entering;
  std::atomic<uint64_t> entries;
};
inline constexpr size_t kProcessBlockBytes = 8192;
static_assert(sizeof(ProcessBlock) <= kProcessBlockBytes);

// One chunk of the window. A part is a run of chunks that one process owns; its first chunk says
// how many bytes it has, the others point to the first.
struct ChunkEntry {
  std::atomic<uint64_t> bytes;  // of the part, in the entry of its first chunk
  std::atomic<uint32_t> first;  // index of the part's first chunk, plus 1; 0: not part of any
  // Of the part, in the entry of its first chunk: host index of its owner below kOwnerBits, above
  // how often a part was made here, so that who opened an earlier one notices.
  std::atomic<uint32_t> owner_and_generation;
  AtomicZones words;
};
inline constexpr unsigned kOwnerBits = 12;
static_assert(job::kMostLocalPeers <= 1 << kOwnerBits);

struct ChunkTableHeader {
  alignas(64) os::HybridLockWord lock;  // for those who claim and release
  std::atomic<uint64_t> high_water;     // chunks from here on were never used
  std::atomic<uint64_t> lowest_free;    // chunks below are all used
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
