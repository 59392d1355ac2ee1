// SPDX-License-Identifier: BSD-3-Clause

// Memory that is made and freed in the middle of a program.

#include <algorithm>
#include <cstring>

#include "random/report.h"
#include "random/together_runner.h"

namespace random_program {

namespace {

constexpr size_t kPageBytes = 4096;

unsigned char* bytes_at(void* address) { return static_cast<unsigned char*>(address); }

}  // namespace

mob_heap_t TogetherRunner::heap_of(const Together& together) const {
  const auto lane = static_cast<size_t>(lane_);
  return together.heap == lane_ ? places_.heaps[lane] : heaps_.at(together.heap);
}

void TogetherRunner::create_heap(const Together& together) {
  check(mob_heap_create(team_of(together), together.heap_bytes, together.most_heap_bytes,
                        &heaps_[together.heap]),
        "mob_heap_create");
  check_heap(together);
}

void TogetherRunner::destroy_heap(const Together& together) {
  check(mob_heap_destroy(heap_of(together)), "mob_heap_destroy");
  heaps_.erase(together.heap);
  for (const int block : together.lost) blocks_.erase(block);
}

void TogetherRunner::check_heap(const Together& together) {
  size_t bytes = 0;
  size_t used = 0;
  check(mob_heap_bytes(heap_of(together), &bytes, &used), "mob_heap_bytes");
  if (used == together.used && bytes >= used) return;
  report("a heap of " + std::to_string(bytes) + " bytes has " + std::to_string(used) +
         " in blocks, not " + std::to_string(together.used));
}

void TogetherRunner::allocate(const Together& together) {
  const mob_team_t team = team_of(together);
  Block& block = blocks_[together.block];
  block.places.resize(static_cast<size_t>(shape_.ranks));
  void* pointer = nullptr;
  bool is_filled = false;
  switch (together.memory) {
    case Memory::kHeap:
      allocate_in_heap(together, &block);
      is_filled = together.manner == Manner::kZeroed;
      break;
    case Memory::kLocal:
      check(mob_local_alloc(together.bytes, together.alignment, &pointer), "mob_local_alloc");
      block.own = bytes_at(pointer);
      break;
    case Memory::kExposed:
      expose(together, &block);
      break;
    case Memory::kAllocated:
      check(mob_team_alloc(team, together.bytes, together.alignment, &block.allocation),
            "mob_team_alloc");
      block.own = bytes_at(mob_mem_local(block.allocation));
      is_filled = together.manner == Manner::kZeroed;
      break;
  }
  if (together.alignment > 0 && together.lead == 0 && together.memory != Memory::kExposed &&
      (together.memory != Memory::kHeap || together.manner == Manner::kAligned) &&
      reinterpret_cast<uintptr_t>(block.own) % together.alignment != 0) {
    report("block " + std::to_string(together.block) + " is not aligned as asked");
  }
  if (!is_filled) fill_block(together, rank_, block.own);
  find(together, &block);
  if (!is_filled) check(mob_team_barrier(team), "mob_team_barrier");
}

void TogetherRunner::allocate_in_heap(const Together& together, Block* block) {
  const mob_heap_t heap = heap_of(together);
  const size_t bytes = together.lead + together.bytes;
  void* pointer = nullptr;
  switch (together.manner) {
    case Manner::kPlain:
      check(mob_heap_malloc(heap, bytes, &pointer), "mob_heap_malloc");
      break;
    case Manner::kZeroed: {
      const size_t count = bytes % 4 == 0 ? 4 : bytes % 3 == 0 ? 3 : 1;
      check(mob_heap_calloc(heap, count, bytes / count, &pointer), "mob_heap_calloc");
      break;
    }
    case Manner::kAligned:
      check(mob_heap_align(heap, together.alignment, bytes, &pointer), "mob_heap_align");
      break;
    case Manner::kRealloc:
      check(mob_heap_realloc(heap, nullptr, bytes, &pointer), "mob_heap_realloc");
      break;
  }
  block->own = bytes_at(pointer) + together.lead;
  check_heap(together);
}

void TogetherRunner::expose(const Together& together, Block* block) {
  // Pages that move belong to the block alone.
  const size_t whole = places_.expose_flags != 0 ? kPageBytes : 16;
  const size_t bytes = (together.bytes + whole - 1) / whole * whole;
  block->memory.resize(bytes + whole);
  const size_t skew = reinterpret_cast<uintptr_t>(block->memory.data()) % whole;
  block->own = block->memory.data() + (whole - skew) % whole;
  check(mob_expose(block->own, together.bytes, places_.expose_flags, &block->exposed),
        "mob_expose");
}

void TogetherRunner::withdraw(Block* block) {
  check(mob_withdraw(block->exposed), "mob_withdraw");
  block->exposed = nullptr;
}

// Gets the places of the block in the other members.
void TogetherRunner::find(const Together& together, Block* block) {
  const mob_rank_t self = together.member(rank_);
  std::vector<void*> all(together.size());
  size_t stride = 0;
  switch (together.memory) {
    case Memory::kHeap:
      for (size_t m = 0; m < all.size(); ++m) {
        check(mob_heap_address(heap_of(together), together.members[m], block->own, &all[m]),
              "mob_heap_address");
      }
      check(mob_heap_stride(heap_of(together), &stride), "mob_heap_stride");
      for (size_t m = 0; m < all.size() && stride > 0; ++m) {
        const auto distance = (static_cast<ptrdiff_t>(m) - self) * static_cast<ptrdiff_t>(stride);
        if (bytes_at(all[m]) - block->own != distance) report("a heap's stride is wrong");
      }
      break;
    case Memory::kAllocated:
      for (size_t m = 0; m < all.size(); ++m) {
        check(mob_mem_address(block->allocation, together.members[m], 0, &all[m]),
              "mob_mem_address");
      }
      break;
    default:
      check(mob_publish(team_of(together), block->own, all.data()), "mob_publish");
  }
  for (size_t m = 0; m < all.size(); ++m) {
    block->places[static_cast<size_t>(together.members[m])] = bytes_at(all[m]);
  }
  if (all[static_cast<size_t>(self)] != block->own) report("a block is not where it is");
}

void TogetherRunner::resize(const Together& together) {
  const mob_team_t team = team_of(together);
  Block& block = blocks_.at(together.block);
  void* pointer = block.own;
  if (together.memory == Memory::kHeap) {
    pointer = block.own - together.lead;
    check(mob_heap_realloc(heap_of(together), pointer, together.lead + together.bytes, &pointer),
          "mob_heap_realloc");
    block.own = bytes_at(pointer) + together.lead;
    check_heap(together);
  } else {
    check(mob_team_barrier(team), "mob_team_barrier");  // no member uses it any more
    if (together.memory == Memory::kLocal) {
      check(mob_local_realloc(pointer, together.bytes, &pointer), "mob_local_realloc");
      block.own = bytes_at(pointer);
    } else {
      withdraw(&block);
      Bytes kept(block.own, block.own + std::min(together.before, together.bytes));
      expose(together, &block);
      std::memcpy(block.own, kept.data(), kept.size());
    }
  }
  fill_block(together, rank_, block.own);
  find(together, &block);
  if (together.memory == Memory::kHeap) check(mob_team_barrier(team), "mob_team_barrier");
}

void TogetherRunner::look(const Together& together, const Model& model) {
  const mob_team_t team = team_of(together);
  check(mob_team_barrier(team), "mob_team_barrier");
  const Bytes& expected =
      model.result(together.number, static_cast<size_t>(together.member(rank_)));
  const unsigned char* own = blocks_.at(together.block).own;
  if (!std::equal(expected.begin(), expected.end(), own)) {
    report("block " + std::to_string(together.block) + " is not what was put");
  }
  check(mob_team_barrier(team), "mob_team_barrier");
}

void TogetherRunner::drop(const Together& together) {
  const mob_team_t team = team_of(together);
  Block& block = blocks_.at(together.block);
  void* pointer = block.own - together.lead;
  switch (together.memory) {
    case Memory::kHeap:
      if (together.manner == Manner::kRealloc) {
        check(mob_heap_realloc(heap_of(together), pointer, 0, &pointer), "mob_heap_realloc");
        if (pointer != nullptr) report("a block of no bytes is somewhere");
      } else {
        check(mob_heap_free(heap_of(together), pointer), "mob_heap_free");
      }
      check_heap(together);
      break;
    case Memory::kLocal:
      check(mob_team_barrier(team), "mob_team_barrier");
      check(mob_local_free(pointer), "mob_local_free");
      break;
    case Memory::kExposed:
      check(mob_team_barrier(team), "mob_team_barrier");
      withdraw(&block);
      break;
    case Memory::kAllocated:
      check(mob_mem_free(block.allocation), "mob_mem_free");
      break;
  }
  blocks_.erase(together.block);
}

}  // namespace random_program
