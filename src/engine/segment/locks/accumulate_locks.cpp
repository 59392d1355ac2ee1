// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/locks/accumulate_locks.h"

#include <algorithm>
#include <bit>

#include "engine/segment/locks/shared_lock.h"
#include "engine/segment/segment.h"

namespace mobius::engine {
namespace {

using transport::kLockBlockBytes;
using transport::kWordZoneBytes;
using transport::WordsIn;

// How often a process admits a zone, a block or a chunk of a region before it admits the next
// larger unit. Each time costs a few hundred nanoseconds, and makes accumulates of integers slow in
// what was admitted.
constexpr uint32_t kTimesByZone = 8;
constexpr uint32_t kTimesByBlock = 16;
constexpr uint32_t kTimesByChunk = 24;

// How far around a word the search for admitted memory goes: in chunks, and in blocks outside of
// the window.
constexpr uint64_t kMostChunksAround = 4096;
constexpr uint64_t kMostBlocksAround = 4096;

// The context of the transport's calls to lock(), unlock() and words().
struct Held {
  AccumulateLocks& stripes;
  Peers& peers;
  mob_rank_t host_index;
  ProcessBlock& process;

  static const Held& of(void* context) { return *static_cast<Held*>(context); }
};

void lock(void* context, unsigned stripe) {
  const Held& held = Held::of(context);
  BriefLockGuard::lock(held.peers, held.process.stripes[stripe].lock);
}

void unlock(void* context, unsigned stripe) {
  os::unlock(Held::of(context).process.stripes[stripe].lock);
}

WordsIn words(void* context, uintptr_t block) {
  const Held& held = Held::of(context);
  return held.stripes.words_in(held.host_index, block);
}

uint64_t stripes_of(uintptr_t address, uint64_t bytes) {
  if (bytes >= transport::kLockStripes * kLockBlockBytes) return UINT64_MAX;
  uint64_t stripes = 0;
  for (uintptr_t block = address / kLockBlockBytes;
       block <= (address + bytes - 1) / kLockBlockBytes; ++block) {
    stripes |= uint64_t{1} << transport::lock_stripe(block * kLockBlockBytes);
  }
  return stripes;
}

// The blocks of a chunk that overlap [begin, end) of the window.
uint32_t blocks_in(uint64_t chunk, uint64_t begin, uint64_t end) {
  const uint64_t start = chunk << kChunkShift;
  const unsigned first = begin <= start ? 0 : AtomicZones::block_of(begin);
  const unsigned last = end >= start + kChunkBytes ? 31 : AtomicZones::block_of(end - 1);
  return AtomicZones::kAllBlocks >> (31 - last) & AtomicZones::kAllBlocks << first;
}

// The zones around one of a block that are admitted like it, and next to each other: bytes from the
// start of the block on.
struct Zones {
  uint64_t begin;
  uint64_t end;
};
Zones admitted_zones(WordsIn words, uintptr_t address) {
  const auto zone = static_cast<unsigned>(address % kLockBlockBytes / kWordZoneBytes);
  const uint64_t admitted = words.admitted | uint64_t{1} << zone;
  const auto above = static_cast<unsigned>(std::countr_one(admitted >> zone));
  const auto below = static_cast<unsigned>(std::countl_one(admitted << (63 - zone)));
  return {(zone + 1 - below) * kWordZoneBytes, (zone + above) * kWordZoneBytes};
}

}  // namespace

WordsIn AccumulateLocks::words_in(mob_rank_t host_index, uintptr_t address) const {
  const uint64_t offset = address - segment_.window().base_of(host_index);
  if (offset < segment_.window().bytes()) {
    return segment_.chunks().words(offset >> kChunkShift).of_block(offset);
  }
  if (is_at_home(host_index, address)) [[unlikely]] {
    return home_->words_in(home_->own_index(), address);
  }
  return segment_.process(host_index)
      .stripes[transport::lock_stripe(address)]
      .words.of_block(address);
}

mob_rank_t AccumulateLocks::own_index() const { return segment_.peers().host().index(); }

bool AccumulateLocks::is_at_home(mob_rank_t host_index, uintptr_t address) const {
  return home_ != nullptr && host_index == own_index() &&
         address - segment_.window().base_of(host_index) >= segment_.window().bytes();
}

// Several processes may admit the same memory at once, and one may die at it: each process that
// needs it completes the admission itself.
void AccumulateLocks::admit(mob_rank_t host_index, uintptr_t address) {
  const uint64_t offset = address - segment_.window().base_of(host_index);
  Region region{};
  if (offset < segment_.window().bytes() && segment_.chunks().find(offset, &region)) {
    admit_in_window(host_index, offset, region);
  } else if (is_at_home(host_index, address)) {
    home_->admit(home_->own_index(), address);
  } else {
    admit_outside(host_index, address);
  }
}

// So often by now.
uint32_t AccumulateLocks::count_admission(const Region& region) {
  Admissions& of_region = admissions_[(region.offset >> kChunkShift) % kRemembered];
  // Counts of two threads may fall into one; that changes little.
  if (of_region.region.exchange(region.offset + 1, std::memory_order_relaxed) !=
      region.offset + 1) {
    of_region.times.store(0, std::memory_order_relaxed);
  }
  return of_region.times.fetch_add(1, std::memory_order_relaxed) + 1;
}

void AccumulateLocks::admit_in_window(mob_rank_t host_index, uint64_t offset,
                                      const Region& region) {
  const uintptr_t base = segment_.window().base_of(host_index);
  const ChunkTable& chunks = segment_.chunks();
  const uint32_t times = count_admission(region);
  AtomicZones& own = chunks.words(offset >> kChunkShift);
  if (times <= kTimesByZone && own.zone_arrives(offset)) {
    wait_for_stripes(host_index, base + offset, 1);
    own.zone_is_admitted(offset);
    return;
  }
  // Whole blocks that hold a byte of the region; nothing else lies in the rest of the last block.
  const uint64_t unit = times <= kTimesByBlock ? kLockBlockBytes : kChunkBytes;
  uint64_t begin = region.offset;
  uint64_t end = region.offset + std::max<uint64_t>(region.bytes, 1);
  if (times <= kTimesByChunk) {
    begin = offset & ~(unit - 1);
    end = std::min(end, begin + unit);
  }
  for (uint64_t chunk = begin >> kChunkShift; chunk << kChunkShift < end; ++chunk) {
    chunks.words(chunk).blocks_arrive(blocks_in(chunk, begin, end));
  }
  wait_for_stripes(host_index, base + begin, end - begin);
  for (uint64_t chunk = begin >> kChunkShift; chunk << kChunkShift < end; ++chunk) {
    chunks.words(chunk).blocks_are_admitted(blocks_in(chunk, begin, end));
  }
}

// Waits until every holder of a lock of that memory at the time of the call has released it.
void AccumulateLocks::wait_for_stripes(mob_rank_t host_index, uintptr_t address, uint64_t bytes) {
  ProcessBlock& process = segment_.process(host_index);
  for (uint64_t left = stripes_of(address, bytes); left != 0; left &= left - 1) {
    const BriefLockGuard after_the_last_without(segment_.peers(),
                                                process.stripes[std::countr_zero(left)].lock);
  }
}

void AccumulateLocks::admit_outside(mob_rank_t host_index, uintptr_t address) {
  PrivateAtomicZones& marks =
      segment_.process(host_index).stripes[transport::lock_stripe(address)].words;
  marks.arrives(address);
  wait_for_stripes(host_index, address, 1);
  marks.is_admitted(address);
}

AccumulateLocks::Zone AccumulateLocks::admitted_outside(mob_rank_t host_index, uintptr_t address,
                                                        uintptr_t begin, uintptr_t end) const {
  const auto clipped = [&](uintptr_t first, uintptr_t last) {
    first = std::max(first, begin);
    return Zone{first, std::min(last, end) - first};
  };
  const ProcessBlock& process = segment_.process(host_index);
  if (!process.stripes[transport::lock_stripe(address)].words.is_whole()) {
    const uintptr_t block = address & ~(kLockBlockBytes - 1);
    const Zones zones = admitted_zones(words_in(host_index, address), address);
    return clipped(block + zones.begin, block + zones.end);
  }
  uint64_t whole = 0;
  for (unsigned stripe = 0; stripe < transport::kLockStripes; ++stripe) {
    whole |= uint64_t{process.stripes[stripe].words.is_whole()} << stripe;
  }
  const auto is_admitted = [&](uintptr_t at) {
    return (whole >> transport::lock_stripe(at) & 1) != 0;
  };
  if (whole == UINT64_MAX) return clipped(begin, end);
  const uintptr_t most = kMostBlocksAround * kLockBlockBytes;
  const uintptr_t lowest = std::max(begin, address > most ? address - most : 0);
  const uintptr_t highest = std::min(end, address + most);
  uintptr_t first = address & ~(kLockBlockBytes - 1);
  uintptr_t last = first + kLockBlockBytes;
  while (first > lowest && is_admitted(first - kLockBlockBytes)) first -= kLockBlockBytes;
  while (last < highest && is_admitted(last)) last += kLockBlockBytes;
  return clipped(first, last);
}

AccumulateLocks::Zone AccumulateLocks::admitted_around(const Region& region,
                                                       uint64_t offset) const {
  const ChunkTable& chunks = segment_.chunks();
  const auto is_admitted = [&](uint64_t at) {
    const uint32_t blocks = chunks.words(at >> kChunkShift).admitted_blocks();
    return (blocks >> AtomicZones::block_of(at) & 1) != 0;
  };
  uint64_t begin = offset & ~(kLockBlockBytes - 1);
  uint64_t end = begin + kLockBlockBytes;
  const uint64_t region_end = region.offset + region.bytes;
  if (!is_admitted(begin)) {
    const Zones zones =
        admitted_zones(chunks.words(offset >> kChunkShift).of_block(offset), offset);
    end = std::min(begin + zones.end, region_end);
    begin += zones.begin;
    return {begin, end - begin};
  }
  // By chunks where a chunk begins or ends, and all of it is.
  const uint64_t most = kMostChunksAround << kChunkShift;
  const uint64_t lowest = std::max(region.offset, offset > most ? offset - most : 0);
  const uint64_t highest = std::min(region_end, offset + most);
  const auto whole = [&](uint64_t chunk) {
    return chunks.words(chunk).admitted_blocks() == AtomicZones::kAllBlocks;
  };
  while (begin > lowest) {
    const bool at_chunk = begin % kChunkBytes == 0;
    if (at_chunk && whole((begin >> kChunkShift) - 1)) {
      begin -= kChunkBytes;
    } else if (is_admitted(begin - kLockBlockBytes)) {
      begin -= kLockBlockBytes;
    } else {
      break;
    }
  }
  while (end < highest) {
    const bool at_chunk = end % kChunkBytes == 0;
    if (at_chunk && whole(end >> kChunkShift)) {
      end += kChunkBytes;
    } else if (is_admitted(end)) {
      end += kLockBlockBytes;
    } else {
      break;
    }
  }
  begin = std::max(begin, region.offset);
  return {begin, std::min(end, region_end) - begin};
}

bool AccumulateLocks::accumulate_few(mob_rank_t host_index, uintptr_t address, size_t bytes,
                                     const transport::Rows& rows, size_t count,
                                     const transport::Combination& what,
                                     const transport::ElementOp& element) {
  if (address % element.alignment != 0 || what.op == MOB_NO_OP) return false;
  const uintptr_t last = address + bytes - element.bytes;
  if (address / kLockBlockBytes != last / kLockBlockBytes) return false;
  ProcessBlock::Stripe& stripe =
      segment_.process(host_index).stripes[transport::lock_stripe(address)];
  if (element.atomic == nullptr) {
    const BriefLockGuard lock(segment_.peers(), stripe.lock);
    element.plain(rows, count, what.scale, what.fetched);
    return true;
  }
  const uint64_t offset = address - segment_.window().base_of(host_index);
  const AtomicZones* const marks = offset < segment_.window().bytes()
                                       ? &segment_.chunks().words(offset >> kChunkShift)
                                       : nullptr;
  const auto words = [&] {
    return marks != nullptr ? marks->of_block(offset) : stripe.words.of_block(address);
  };
  const uint64_t zones = transport::word_zones(address, bytes);
  if ((zones & ~words().admitted) == 0) {
    element.atomic(rows, count, what.scale, what.fetched);
    return true;
  }
  // An update of a word: that is to be admitted.
  if (what.fetched != nullptr && bytes == element.bytes) return false;
  // Zone by zone, where it is worth it; here all elements are combined alike.
  constexpr size_t kMostAlike = 64;
  if (rows.count * count > kMostAlike && (zones & words().arriving) != 0) return false;
  const BriefLockGuard lock(segment_.peers(), stripe.lock);
  // As transport::accumulate() has it.
  const bool is_alone = (zones & words().arriving) == 0 && what.op != MOB_REPLACE;
  (is_alone ? element.plain : element.atomic)(rows, count, what.scale, what.fetched);
  return true;
}

void AccumulateLocks::accumulate(mob_rank_t host_index, const transport::Shape& shape,
                                 ptrdiff_t remote_delta,
                                 const transport::Combination& combination) {
  if (is_at_home(host_index, shape.lowest)) [[unlikely]] {
    home_->accumulate(home_->own_index(), shape, remote_delta, combination);
    return;
  }
  Held held{*this, segment_.peers(), host_index, segment_.process(host_index)};
  const transport::LockTable table{&held, &lock, &unlock, &words};
  transport::accumulate(shape, remote_delta, combination, table);
}

}  // namespace mobius::engine
