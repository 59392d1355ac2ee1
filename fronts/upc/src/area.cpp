// SPDX-License-Identifier: BSD-3-Clause

// Where the shared areas come from: one symmetric heap of Möbius over all threads. It takes address
// space when it is made, and memory for the blocks that it gives.

#include <unistd.h>

#include <algorithm>

#include "front.h"

namespace mobius::upc {
namespace {

constexpr const char* kStart = "start";
constexpr uint64_t kMostRoom = uint64_t{1} << 40;
mob_heap_t heap = nullptr;

}  // namespace

uint64_t open_heap(uint64_t first_bytes) {
  // Thread 0 decides. Room costs address space, of which many threads have less each.
  uint64_t room =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto here = static_cast<uint64_t>(mob_host_size());
  if (here > 4) room = room / here * 4;
  room = std::min(std::max(room, 2 * first_bytes), kMostRoom);
  check(mob_broadcast(MOB_TEAM_WORLD, 0, &room, sizeof room), kStart);
  while (mob_heap_create(MOB_TEAM_WORLD, 0, room, &heap) != MOB_OK) {
    room /= 2;
    if (room < first_bytes) die_of(kStart);
  }
  return room;
}

void* heap_block(uint64_t bytes, bool is_zero) {
  void* block = nullptr;
  const mob_status_t status =
      is_zero ? mob_heap_calloc(heap, 1, bytes, &block) : mob_heap_align(heap, 64, bytes, &block);
  if (status == MOB_OK) return block;
  if (status != MOB_ERR_MEMORY && status != MOB_ERR_PEER) die_of("shared memory");
  if (is_zero) die(kStart, "no memory for static shared objects: %s", mob_last_error());
  return nullptr;
}

void* heap_address(int thread, const void* block) {
  void* there = nullptr;
  check(mob_heap_address(heap, thread, block, &there), kStart);
  return there;
}

}  // namespace mobius::upc
