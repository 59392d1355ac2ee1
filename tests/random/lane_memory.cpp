// SPDX-License-Identifier: BSD-3-Clause

// Memory that is made and freed in the middle of a program.

#include <algorithm>

#include "model/elements.h"
#include "random/lane.h"
#include "random/layout.h"

namespace random_program {

namespace {

constexpr size_t kMostBlocks = 5;
constexpr size_t kMiB = size_t{1} << 20;

size_t rounded(size_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

LaneBuilder::Heap& LaneBuilder::heap_of(const Block& block) {
  return *std::find_if(heaps_.begin(), heaps_.end(),
                       [&block](const Heap& heap) { return heap.number == block.heap; });
}

Together LaneBuilder::start(Call call, const Block& block) {
  Together together = start(call, team_of(block.team));
  together.block = block.number;
  together.memory = block.memory;
  together.heap = block.heap;
  together.lead = block.lead;
  together.bytes = together.before = block.bytes;
  return together;
}

// Other actors than before, with another use.
std::vector<Segment> LaneBuilder::new_uses(const Block& block) {
  const std::vector<mob_rank_t>& members = team_of(block.team).members;
  std::vector<Segment> segments;
  for (const mob_rank_t rank : members) {
    Segment segment;
    segment.rank = rank;
    segment.block = block.number;
    segment.members = members;
    segment.range = {0, block.bytes};
    segment.owner = shape_.actor_of(random_.pick(members), number_);
    const size_t die = random_.below(100);
    segment.use = die < 55   ? Use::kPrivate
                  : die < 65 ? Use::kReadOnly
                  : die < 80 ? Use::kElements
                             : Use::kShared;
    if (segment.use == Use::kElements || segment.use == Use::kShared) {
      // Any bytes are integers, and combine exactly.
      segment.type = static_cast<mob_type_t>(random_.below(MOB_FLOAT));
      segment.op = commuting_op(random_, segment.type);
      segment.range.bytes -= block.bytes % mobius_test::bytes_of(segment.type);
    }
    segments.push_back(std::move(segment));
  }
  return segments;
}

void LaneBuilder::add_heap() {
  if (heaps_.size() > 2) return;
  Together heap = start(Call::kCreateHeap, random_.pick(teams_));
  heap.heap = numbers_.heaps++;
  heap.heap_bytes = random_.chance(75) ? 0 : random_.between(1, kMiB);
  heap.most_heap_bytes = kMostHeapBytes;
  heaps_.push_back({heap.heap, heap.team, 0});
  push(std::move(heap));
}

void LaneBuilder::destroy_heap(size_t which) {
  const Heap heap = heaps_[which];
  if (is_lanes(heap.number)) return;
  Together end = start(Call::kDestroyHeap, team_of(heap.team));
  end.heap = heap.number;
  for (const Block& block : blocks_) {
    if (block.heap == heap.number) end.lost.push_back(block.number);
  }
  std::erase_if(blocks_, [&heap](const Block& block) { return block.heap == heap.number; });
  heaps_.erase(heaps_.begin() + static_cast<ptrdiff_t>(which));
  push(std::move(end));
}

void LaneBuilder::add_block() {
  if (blocks_.size() == kMostBlocks) return;
  const size_t die = random_.below(100);
  Block block{numbers_.blocks++, 0, -1, Memory::kHeap, 0, random_.between(1, 900), {}};
  block.memory = die < 50   ? Memory::kHeap
                 : die < 70 ? Memory::kLocal
                 : die < 90 ? Memory::kExposed
                            : Memory::kAllocated;
  // The calls that free it are made by one thread of a rank.
  if (block.memory == Memory::kAllocated && number_ > 0) block.memory = Memory::kLocal;
  if (block.memory == Memory::kLocal && !shape_.is_one_job) block.memory = Memory::kExposed;
  Heap* heap = nullptr;
  if (block.memory == Memory::kHeap) {
    heap = &heaps_[random_.below(heaps_.size())];
    block.heap = heap->number;
    block.team = heap->team;
    if (random_.chance(3)) block.lead = rounded(random_.between(kMiB / 2, kMiB));
  } else {
    block.team = random_.pick(teams_).number;
  }
  Together together = start(Call::kAllocate, block);
  together.before = 0;
  together.manner = static_cast<Manner>(random_.below(4));
  if (random_.chance(50)) together.alignment = size_t{1} << random_.between(4, 12);
  if (heap != nullptr) together.used = heap->used += rounded(block.lead + block.bytes);
  block.segments = new_uses(block);
  together.segments = block.segments;
  blocks_.push_back(std::move(block));
  push(std::move(together));
}

void LaneBuilder::add_resize() {
  Block& block = blocks_[random_.below(blocks_.size())];
  if (block.memory == Memory::kAllocated) return;
  Together together = start(Call::kResize, block);
  if (block.heap >= 0) heap_of(block).used -= rounded(block.lead + block.bytes);
  together.bytes = block.bytes = random_.between(1, random_.chance(80) ? 900 : 5000);
  if (block.heap >= 0) {
    together.used = heap_of(block).used += rounded(block.lead + block.bytes);
  }
  together.segments = block.segments = new_uses(block);
  push(std::move(together));
}

void LaneBuilder::add_hand_over() {
  Block& block = blocks_[random_.below(blocks_.size())];
  Together together = start(Call::kHandOver, block);
  together.segments = block.segments = new_uses(block);
  push(std::move(together));
}

void LaneBuilder::add_look() { push(start(Call::kLook, blocks_[random_.below(blocks_.size())])); }

void LaneBuilder::drop_block(size_t which) {
  const Block& block = blocks_[which];
  Together together = start(Call::kDrop, block);
  together.manner = random_.chance(30) ? Manner::kRealloc : Manner::kPlain;
  if (block.heap >= 0) {
    together.used = heap_of(block).used -= rounded(block.lead + block.bytes);
  }
  blocks_.erase(blocks_.begin() + static_cast<ptrdiff_t>(which));
  push(std::move(together));
}

}  // namespace random_program
