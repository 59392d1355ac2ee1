// SPDX-License-Identifier: BSD-3-Clause

// The symmetric heap: a heap of Möbius over all PEs. It takes address space when it is made, and
// memory when blocks are allocated.

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "front.h"
#include "symmetric.h"

namespace mobius::shmem {
namespace {

constexpr size_t kChunkBytes = size_t{2} << 20;
mob_heap_t heap = nullptr;
std::vector<ptrdiff_t> offsets;
uintptr_t heap_start = 0;
size_t heap_room = 0;
// The largest alignment that a block can have in all PEs at once.
size_t common_alignment = kChunkBytes;
// Blocks of larger alignment than Möbius gives: by the address that the program has.
struct WideBlock {
  void* whole;
  size_t bytes;
};
std::map<void*, WideBlock> wide_blocks;

constexpr size_t kMostAlignment = size_t{64} << 20;
constexpr size_t kLeastRoom = size_t{1} << 20;
constexpr size_t kMostRoom = size_t{1} << 40;

// "512M", "1.5g", "1073741824".
size_t read_size(const char* name, const char* text, const char* call) {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  double unit = 1;
  if (end != text && *end != '\0') {
    constexpr char kUnits[] = "kmgt";
    const char* found = std::strchr(kUnits, std::tolower(static_cast<unsigned char>(*end)));
    if (found != nullptr && *found != '\0') {
      for (const char* each = kUnits; each <= found; ++each) unit *= 1024;
      ++end;
      if (std::tolower(static_cast<unsigned char>(*end)) == 'b') ++end;
    }
  }
  const double bytes = number * unit;
  if (end == text || *end != '\0' || !(bytes >= 1) || bytes > static_cast<double>(kMostRoom)) {
    die(call, "%s=%s: give a number of bytes, with K, M, G or T behind it if you like, up to 1T",
        name, text);
  }
  return std::max(static_cast<size_t>(bytes), kLeastRoom);
}

// The size that this PE asks for. Without a wish, a part may grow to four times an equal share of
// the host's memory, since PEs seldom need alike; more would cost time at the start of many PEs.
size_t wanted_room(const char* call, bool* is_wish) {
  for (const char* name : {"SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE"}) {
    if (const char* text = std::getenv(name)) {
      *is_wish = true;
      return read_size(name, text, call);
    }
  }
  *is_wish = false;
  const auto memory =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto pes = static_cast<size_t>(mob_host_size());
  return std::clamp(pes > 4 ? memory / pes * 4 : memory, kLeastRoom, kMostRoom);
}

struct Wish {
  uint64_t room;
  uint64_t is_wish;
};

// PE 0's wish counts.
void agree_on(Wish* wish, const char* call) {
  check(mob_broadcast(MOB_TEAM_WORLD, 0, wish, sizeof *wish), call);
}

// Makes the heap; returns the room in each part of it. The PEs of a job nearly always wish for the
// same, and then need not agree first.
size_t create(const char* call) {
  bool is_wish = false;
  Wish wish = {};
  wish.room = wanted_room(call, &is_wish);
  wish.is_wish = is_wish ? 1 : 0;
  bool have_agreed = false;
  for (size_t room = wish.room;; room /= 2) {
    // Parts lie behind each other: their sizes decide which alignments they have in common.
    if (room >= kMostAlignment) room = room / kMostAlignment * kMostAlignment;
    const mob_status_t status = mob_heap_create(MOB_TEAM_WORLD, 0, room, &heap);
    if (status == MOB_OK) return room;
    // All PEs get an error, and none makes a heap.
    if (!have_agreed) {
      agree_on(&wish, call);
      have_agreed = true;
      if (status == MOB_ERR_ARGUMENT) {
        room = 2 * wish.room;
        continue;
      }
    }
    // With many PEs the address space is too small.
    if (wish.is_wish != 0) {
      die(call, "no room for SHMEM_SYMMETRIC_SIZE=%llu in each of %d PEs: %s",
          static_cast<unsigned long long>(wish.room), mob_size(), mob_last_error());
    }
    if (room / 2 < kLeastRoom) die_of(call);
  }
}

// A full heap is told by the first PE of each host, in a line that names the setting.
void* give(mob_status_t status, void* block, size_t bytes, const char* call) {
  if (status == MOB_OK) return block;
  if (status != MOB_ERR_MEMORY && status != MOB_ERR_PEER) die_of(call);
  if (mob_host_rank() == 0) {
    size_t has = 0;
    size_t used = 0;
    static_cast<void>(mob_heap_bytes(heap, &has, &used));
    std::fprintf(stderr,
                 "%s: PE %d: no room for %zu bytes in the symmetric heap: %zu of its %zu bytes are "
                 "in blocks; SHMEM_SYMMETRIC_SIZE sets its size (%s)\n",
                 call, mob_rank(), bytes, used, heap_room, mob_last_error());
  }
  return nullptr;
}

}  // namespace

char* find_in_heap(const void* here, int pe) {
  const auto address = reinterpret_cast<uintptr_t>(here);
  if (address - heap_start >= heap_room) return nullptr;
  return reinterpret_cast<char*>(address +
                                 static_cast<uintptr_t>(offsets[static_cast<size_t>(pe)]));
}

bool offset_in_heap(const void* here, size_t* offset) {
  *offset = reinterpret_cast<uintptr_t>(here) - heap_start;
  return *offset < heap_room;
}

void open_heap(const char* call) {
  // The heap of an earlier initialisation, which is not worth the time at the end of a program.
  if (heap != nullptr) check(mob_heap_destroy(std::exchange(heap, nullptr)), call);
  const size_t room = (create(call) + kChunkBytes - 1) & ~(kChunkBytes - 1);
  const auto pes = static_cast<size_t>(mob_size());
  std::vector<uintptr_t> starts(pes);
  for (size_t pe = 0; pe < pes; ++pe) {
    void* start = nullptr;
    check(mob_heap_address(heap, static_cast<mob_rank_t>(pe), nullptr, &start), call);
    starts[pe] = reinterpret_cast<uintptr_t>(start);
  }
  heap_start = starts[static_cast<size_t>(mob_rank())];
  offsets.assign(pes, 0);
  for (size_t pe = 0; pe < pes; ++pe) {
    offsets[pe] = static_cast<ptrdiff_t>(starts[pe] - heap_start);
  }
  common_alignment = kMostAlignment;
  for (const ptrdiff_t offset : offsets) {
    while (static_cast<size_t>(offset) % common_alignment != 0) common_alignment /= 2;
  }
  heap_room = room;
  shmem_state_.heap = heap_start;
  shmem_state_.heap_bytes = heap_room;
  shmem_state_.offsets = offsets.data();
}

mob_status_t free_block(void* block) {
  if (const auto wide = wide_blocks.find(block); wide != wide_blocks.end()) {
    block = wide->second.whole;
    wide_blocks.erase(wide);
  }
  return mob_heap_free(heap, block);
}

mob_status_t resize_block(void* block, size_t bytes, void** result) {
  const auto wide = wide_blocks.find(block);
  if (wide == wide_blocks.end()) return mob_heap_realloc(heap, block, bytes, result);
  void* moved = nullptr;
  if (bytes != 0) {
    const mob_status_t status = mob_heap_malloc(heap, bytes, &moved);
    if (status != MOB_OK) return status;
    std::memcpy(moved, block, std::min(bytes, wide->second.bytes));
  }
  *result = moved;
  return free_block(block);
}

// Möbius frees the memory when the job ends.
void close_heap() {
  heap_room = 0;
  wide_blocks.clear();
}

}  // namespace mobius::shmem

using namespace mobius::shmem;  // NOLINT(google-build-using-namespace): this is the C face of it

namespace {

void* allocate(size_t alignment, size_t bytes, const char* call) {
  check_started(call);
  if (bytes == 0) return nullptr;
  void* block = nullptr;
  const mob_status_t status = mob_heap_align(heap, alignment, bytes, &block);
  return give(status, block, bytes, call);
}

}  // namespace

SHMEM_TWIN(void*, malloc, (size_t size)) { return allocate(0, size, "shmem_malloc"); }

SHMEM_TWIN(void*, malloc_with_hints, (size_t size, long)) {
  return allocate(0, size, "shmem_malloc_with_hints");
}

SHMEM_TWIN(void*, align, (size_t alignment, size_t size)) {
  constexpr const char* kCall = "shmem_align";
  check_started(kCall);
  if (size == 0) return nullptr;
  if (alignment > kChunkBytes && alignment <= common_alignment &&
      (alignment & (alignment - 1)) == 0 && size + alignment > size) {
    auto* const block = static_cast<char*>(allocate(kChunkBytes, size + alignment, kCall));
    if (block == nullptr) return nullptr;
    void* const aligned = block + (-reinterpret_cast<uintptr_t>(block) & (alignment - 1));
    wide_blocks[aligned] = {block, size};
    return aligned;
  }
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > kChunkBytes) {
    if (debugs())
      die(kCall, "alignment %zu is not a power of two up to %zu", alignment, common_alignment);
    return nullptr;
  }
  return allocate(alignment, size, kCall);
}

SHMEM_TWIN(void*, calloc, (size_t count, size_t size)) {
  constexpr const char* kCall = "shmem_calloc";
  check_started(kCall);
  if (count == 0 || size == 0) return nullptr;
  void* block = nullptr;
  const mob_status_t status = mob_heap_calloc(heap, count, size, &block);
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
  return give(status, block, bytes, kCall);
}

SHMEM_TWIN(void*, realloc, (void* ptr, size_t size)) {
  constexpr const char* kCall = "shmem_realloc";
  check_started(kCall);
  void* block = nullptr;
  const mob_status_t status = resize_block(ptr, size, &block);
  return give(status, block, size, kCall);
}

SHMEM_TWIN(void, free, (void* ptr)) {
  constexpr const char* kCall = "shmem_free";
  check_started(kCall);
  if (ptr != nullptr) check(free_block(ptr), kCall);
}

extern "C" {

void* shmalloc(size_t size) { return pshmem_malloc(size); }
void* shrealloc(void* ptr, size_t size) { return pshmem_realloc(ptr, size); }
void* shmemalign(size_t alignment, size_t size) { return pshmem_align(alignment, size); }
void shfree(void* ptr) { pshmem_free(ptr); }

}  // extern "C"
