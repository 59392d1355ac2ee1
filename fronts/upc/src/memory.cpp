// SPDX-License-Identifier: BSD-3-Clause

// Dynamic shared memory.
//
// The global heap serves upc_global_alloc() and upc_all_alloc(). A block has the same offset in all
// areas. The bookkeeping lies before each block, in the area of thread 0, and every thread reads
// and changes it there under a mutex. upc_alloc() takes memory of Möbius that is the caller's
// alone.

#include <unistd.h>
#include <upc.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "front.h"

namespace mobius::upc {
namespace {

constexpr const char* kStart = "start";
constexpr uint64_t kDefaultHeap = uint64_t{64} << 20;
constexpr uint64_t kLeastHeap = uint64_t{1} << 20;
constexpr uint64_t kMostHeap = uint64_t{1} << 40;

// Before each block of the global heap, in thread 0. Blocks of an extent lie behind each other.
struct Tag {
  uint64_t state;
  uint64_t bytes;           // of the block, with its tag
  uint64_t bytes_before;    // of the block before it in the extent; 0: none
  uint64_t next, previous;  // free blocks; 0: none
  uint64_t unused[3];
};
constexpr uint64_t kTagBytes = sizeof(Tag);
static_assert(kTagBytes == 64);
constexpr uint64_t kUsed = 0x6d6f62757063b10c;
constexpr uint64_t kFree = 0x6d6f62757063f4ee;
constexpr uint64_t kEnd = 0x6d6f62757063e4d0;
// Less is not worth a block of its own.
constexpr uint64_t kLeastBlock = 2 * kTagBytes;

mob_mutexes_t mutex = nullptr;
std::map<uint64_t, uint64_t> own_blocks;   // of upc_alloc(): address and bytes
std::map<uint64_t, uint64_t> own_objects;  // static objects outside the area
uint64_t heap_start = 0;                   // offset of the first extent
uint64_t heap_bytes = 0;                   // as the setting says

uint64_t* tag_word(uint64_t tag, size_t field) {
  return reinterpret_cast<uint64_t*>(remote(0, tag + field));
}

uint64_t read(uint64_t tag, size_t field) {
  uint64_t value = 0;
  check(mob_get8(0, tag_word(tag, field), &value), "shared heap");
  return value;
}

void write(uint64_t tag, size_t field, uint64_t value) {
  check(mob_put8(0, tag_word(tag, field), value), "shared heap");
}

// A thread on another host reads what it wrote only after a flush.
void settle() { check(mob_flush(0), "shared heap"); }

#define READ(tag, field) read(tag, offsetof(Tag, field))
#define WRITE(tag, field, value) write(tag, offsetof(Tag, field), value)

uint64_t read_head() {
  uint64_t value = 0;
  check(mob_get8(0, header_word(0, offsetof(Header, words)), &value), "shared heap");
  return value;
}

void write_head(uint64_t tag) {
  check(mob_put8(0, header_word(0, offsetof(Header, words)), tag), "shared heap");
}

void insert(uint64_t tag) {
  const uint64_t head = read_head();
  WRITE(tag, state, kFree);
  WRITE(tag, next, head);
  WRITE(tag, previous, 0);
  if (head != 0) WRITE(head, previous, tag);
  write_head(tag);
  settle();
}

void take_out(uint64_t tag) {
  const uint64_t next = READ(tag, next);
  const uint64_t previous = READ(tag, previous);
  if (previous != 0) {
    WRITE(previous, next, next);
  } else {
    write_head(next);
  }
  if (next != 0) WRITE(next, previous, previous);
  settle();
}

class HeapLock {
 public:
  HeapLock() { check(mob_mutex_lock(mutex, kHeapMutex, 0, nullptr), "shared heap"); }
  ~HeapLock() { static_cast<void>(mob_mutex_unlock(mutex, kHeapMutex, 0)); }
  HeapLock(const HeapLock&) = delete;
  HeapLock& operator=(const HeapLock&) = delete;
};

// Returns the offset of a block with room for `bytes`; 0: none.
uint64_t take(uint64_t bytes) {
  const uint64_t wanted = (bytes + 2 * kTagBytes - 1) / kTagBytes * kTagBytes;
  const HeapLock lock;
  for (uint64_t tag = read_head(); tag != 0; tag = READ(tag, next)) {
    const uint64_t has = READ(tag, bytes);
    if (has < wanted) continue;
    take_out(tag);
    if (has - wanted >= kLeastBlock) {
      const uint64_t rest = tag + wanted;
      WRITE(tag, bytes, wanted);
      WRITE(rest, bytes, has - wanted);
      WRITE(rest, bytes_before, wanted);
      WRITE(tag + has, bytes_before, has - wanted);
      insert(rest);
    }
    WRITE(tag, state, kUsed);
    settle();
    return tag + kTagBytes;
  }
  return 0;
}

void give_back(uint64_t offset, const char* call) {
  uint64_t tag = offset - kTagBytes;
  const HeapLock lock;
  const bool is_possible = offset % kTagBytes == 0 && offset >= heap_start + kTagBytes;
  const uint64_t state = is_possible ? READ(tag, state) : 0;
  if (state == kFree) {
    die(call, "the block at offset %llu of the shared heap is free already: it was freed twice",
        static_cast<unsigned long long>(offset));
  }
  if (state != kUsed) {
    die(call,
        "the pointer (thread 0, offset %llu) is no block of upc_global_alloc(), upc_all_alloc() or "
        "upc_alloc(), or the bytes before the block were overwritten",
        static_cast<unsigned long long>(offset));
  }
  uint64_t bytes = READ(tag, bytes);
  const uint64_t before = READ(tag, bytes_before);
  const uint64_t behind = tag + bytes;
  if (READ(behind, state) == kFree) {
    take_out(behind);
    bytes += READ(behind, bytes);
  }
  if (before != 0 && READ(tag - before, state) == kFree) {
    WRITE(tag, state, kFree);  // for whoever frees it again
    tag -= before;
    take_out(tag);
    bytes += before;
  }
  WRITE(tag, bytes, bytes);
  WRITE(tag + bytes, bytes_before, bytes);
  insert(tag);
}

// Adds a piece of the areas to the heap. Called by thread 0.
void add_extent(uint64_t offset, uint64_t bytes) {
  const uint64_t usable = bytes / kTagBytes * kTagBytes - kTagBytes;
  const HeapLock lock;
  WRITE(offset + usable, state, kEnd);
  WRITE(offset, bytes, usable);
  WRITE(offset, bytes_before, 0);
  WRITE(offset + usable, bytes_before, usable);
  insert(offset);
}

// "64MB", "1.5g"; a number alone is of megabytes, as in Berkeley UPC.
uint64_t read_size(const char* text) {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  double unit = 1 << 20;
  if (end != text && *end != '\0') {
    constexpr char kUnits[] = "bkmgt";
    const char* found = std::strchr(kUnits, std::tolower(static_cast<unsigned char>(*end)));
    if (found != nullptr) {
      unit = 1;
      for (const char* each = kUnits; each < found; ++each) unit *= 1024;
      ++end;
      if (std::tolower(static_cast<unsigned char>(*end)) == 'b') ++end;
    }
  }
  const double bytes = number * unit;
  if (end == text || *end != '\0' || !(bytes >= 0) || bytes > static_cast<double>(kMostHeap)) {
    die(kStart,
        "UPC_SHARED_HEAP_SIZE=%s: give a number of megabytes, or one with K, M, G or T behind it, "
        "up to 1T",
        text);
  }
  return std::max(static_cast<uint64_t>(bytes), kLeastHeap);
}

uint64_t wanted_heap() {
  uint64_t bytes = 0;
  if (mythread() == 0) {
    if (const char* text = std::getenv("UPC_SHARED_HEAP_SIZE")) {
      bytes = read_size(text);
    } else {
      const uint64_t memory = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                              static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
      const uint64_t share = memory / 8 / static_cast<uint64_t>(mob_host_size());
      bytes = std::max(std::min(kDefaultHeap, share), kLeastHeap);
    }
  }
  check(mob_broadcast(MOB_TEAM_WORLD, 0, &bytes, sizeof bytes), kStart);
  return bytes;
}

uint64_t offset_of(const void* block) {
  return reinterpret_cast<uint64_t>(block) - mob_upc_origins_[mythread()];
}

// Collective. False if the areas cannot grow by that much.
bool grow(uint64_t bytes) {
  const uint64_t extent = bytes + 4 * kTagBytes;
  void* const block = heap_block(extent, false);
  if (block == nullptr) return false;
  if (mythread() == 0) add_extent(offset_of(block), extent);
  return true;
}

void tell_full(const char* call, uint64_t bytes) {
  std::fprintf(
      stderr,
      "%s: thread %d: no room for %llu bytes in each thread's part of the shared heap of "
      "%llu bytes; UPC_SHARED_HEAP_SIZE sets its size, and upc_all_alloc() makes it grow\n",
      call, mythread(), static_cast<unsigned long long>(bytes),
      static_cast<unsigned long long>(heap_bytes));
}

// Returns the bytes that each thread needs. False if there are none, or too many, which is told if
// `tells` is true.
bool count_bytes(size_t blocks, size_t block, bool tells, uint64_t* bytes, const char* call) {
  check_started(call);
  const auto all = static_cast<uint64_t>(threads());
  const uint64_t rows = blocks / all + (blocks % all != 0 ? 1 : 0);
  if (__builtin_mul_overflow(rows, block, bytes) || *bytes > kMostHeap) {
    if (tells) {
      std::fprintf(stderr, "%s: thread %d: %zu blocks of %zu bytes are more than any memory\n",
                   call, mythread(), blocks, block);
    }
    return false;
  }
  return *bytes != 0;
}

// Blocks of upc_alloc() that other threads have freed: a list through their first words.
void free_what_others_freed(const char* call) {
  uint64_t* const head = header_word(static_cast<uint32_t>(mythread()), offsetof(Header, freed));
  if (__atomic_load_n(head, __ATOMIC_RELAXED) == 0) return;
  uint64_t block = 0;
  check(mob_swap8(mythread(), head, 0, &block), call);
  while (block != 0) {
    if (own_blocks.erase(block) == 0) {
      die(call, "another thread has freed a block of this one twice (address 0x%llx)",
          static_cast<unsigned long long>(block));
    }
    void* const memory = reinterpret_cast<void*>(block);
    std::memcpy(&block, memory, sizeof block);
    check(mob_local_free(memory), call);
  }
}

void free_own_block(uint64_t address, const char* call) {
  free_what_others_freed(call);
  if (own_blocks.erase(address) == 0) {
    die(call,
        "the pointer (thread %d, address 0x%llx) is no block of shared memory, or was freed before",
        mythread(), static_cast<unsigned long long>(address));
  }
  check(mob_local_free(reinterpret_cast<void*>(address)), call);
}

void free_block_of_other(mob_upc_ptr_t p, const char* call) {
  uint64_t* const head = header_word(p.thread, offsetof(Header, freed));
  const auto owner = static_cast<mob_rank_t>(p.thread);
  uint64_t first = 0;
  check(mob_get8(owner, head, &first), call);
  for (;;) {
    if (mob_put8(owner, remote(p), first) != MOB_OK) {
      die(call, "the pointer (thread %u, address %p) is no block of shared memory: %s", p.thread,
          static_cast<void*>(remote(p)), mob_last_error());
    }
    check(mob_flush(owner), call);
    uint64_t old = 0;
    check(mob_compare_swap8(owner, head, first, reinterpret_cast<uint64_t>(remote(p)), &old), call);
    if (old == first) return;
    first = old;
  }
}

void free_pointer(mob_upc_ptr_t p, const char* call) {
  check_started(call);
  if (mob_upc_is_null(p)) return;
  check_pointer(p, call, "ptr");
  // Everything of the caller in the block is done before others may get it.
  check(mob_flush_all(), call);
  if (p.offset < area_bytes()) {
    if (p.thread != 0 || p.phase != 0) {
      die(call, "ptr (thread %u, offset %llu) is not the start of a block: that is in thread 0",
          p.thread, static_cast<unsigned long long>(p.offset));
    }
    give_back(p.offset, call);
  } else if (mob_upc_is_mine(p)) {
    free_own_block(reinterpret_cast<uint64_t>(remote(p)), call);
  } else {
    free_block_of_other(p, call);
  }
}

bool is_in(const std::map<uint64_t, uint64_t>& blocks, uint64_t address, uint64_t bytes) {
  auto found = blocks.upper_bound(address);
  if (found == blocks.begin()) return false;
  --found;
  return address + bytes <= found->first + found->second;
}

}  // namespace

void note_object(const void* address, uint64_t bytes) {
  own_objects[reinterpret_cast<uint64_t>(address)] = bytes;
}

mob_mutexes_t thread_mutexes() { return mutex; }

void open_memory() {
  check(mob_mutexes_create(MOB_TEAM_WORLD, kPointerMutex + 1, &mutex), kStart);
  heap_bytes = wanted_heap();
  void* const block = heap_block(heap_bytes, false);
  if (block == nullptr) {
    die(kStart,
        "no memory for a shared heap of %llu bytes in each of %d threads: set "
        "UPC_SHARED_HEAP_SIZE to less (%s)",
        static_cast<unsigned long long>(heap_bytes), threads(), mob_last_error());
  }
  heap_start = offset_of(block);
  if (mythread() == 0) add_extent(heap_start, heap_bytes);
}

bool is_in_area(mob_upc_ptr_t p, uint64_t bytes) {
  if (bytes == 0) return true;
  const auto address = reinterpret_cast<uint64_t>(remote(p));
  if (p.offset < area_bytes()) {
    if (p.offset + bytes <= heap_start + heap_bytes) return true;
  } else if (mob_upc_is_mine(p)) {
    return is_in(own_blocks, address, bytes) || is_in(own_objects, address, bytes);
  }
  // Möbius knows the memory that there is, but not the blocks in it.
  char byte = 0;
  const auto rank = static_cast<mob_rank_t>(p.thread);
  return mob_get(rank, remote(p), &byte, 1) == MOB_OK &&
         mob_get(rank, remote(p) + bytes - 1, &byte, 1) == MOB_OK;
}

}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

mob_upc_ptr_t upc_global_alloc(size_t nblocks, size_t nbytes) {
  constexpr const char* kCall = "upc_global_alloc";
  uint64_t bytes = 0;
  if (!count_bytes(nblocks, nbytes, true, &bytes, kCall)) return mob_upc_null();
  const uint64_t offset = take(bytes);
  if (offset == 0) tell_full(kCall, bytes);
  return mob_upc_pointer(offset, 0, 0);
}

mob_upc_ptr_t upc_all_alloc(size_t nblocks, size_t nbytes) {
  constexpr const char* kCall = "upc_all_alloc";
  uint64_t bytes = 0;
  if (!count_bytes(nblocks, nbytes, mythread() == 0, &bytes, kCall)) return mob_upc_null();
  uint64_t given[] = {0, bytes};
  if (mythread() == 0) given[0] = take(bytes);
  check(mob_broadcast(MOB_TEAM_WORLD, 0, given, sizeof given), kCall);
  if (given[1] != bytes) {
    die(kCall,
        "thread 0 asks for %llu bytes in each thread, this one for %llu: the arguments must "
        "be the same in all threads",
        static_cast<unsigned long long>(given[1]), static_cast<unsigned long long>(bytes));
  }
  if (given[0] == 0) {
    if (!grow(bytes)) {
      if (mythread() == 0) {
        std::fprintf(stderr, "%s: thread 0: no memory for %llu bytes in each of %d threads (%s)\n",
                     kCall, static_cast<unsigned long long>(bytes), threads(), mob_last_error());
      }
      return mob_upc_null();
    }
    if (mythread() == 0) given[0] = take(bytes);
    check(mob_broadcast(MOB_TEAM_WORLD, 0, given, sizeof given), kCall);
  }
  return mob_upc_pointer(given[0], 0, 0);
}

mob_upc_ptr_t upc_alloc(size_t nbytes) {
  constexpr const char* kCall = "upc_alloc";
  check_started(kCall);
  if (nbytes == 0) return mob_upc_null();
  free_what_others_freed(kCall);
  void* block = nullptr;
  if (nbytes > kMostHeap || mob_local_alloc(nbytes, kTagBytes, &block) != MOB_OK) {
    std::fprintf(stderr, "%s: thread %d: no memory for %zu bytes (%s)\n", kCall, mythread(), nbytes,
                 mob_last_error());
    return mob_upc_null();
  }
  own_blocks[reinterpret_cast<uint64_t>(block)] = nbytes;
  return mob_upc_pointer(offset_of(block), static_cast<uint32_t>(mythread()), 0);
}

mob_upc_ptr_t upc_local_alloc(size_t nblocks, size_t nbytes) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(nblocks, nbytes, &bytes)) bytes = kMostHeap + 1;
  return upc_alloc(bytes);
}

void upc_free(mob_upc_ptr_t ptr) { free_pointer(ptr, "upc_free"); }

void upc_all_free(mob_upc_ptr_t ptr) {
  constexpr const char* kCall = "upc_all_free";
  check_started(kCall);
  library_barrier(kCall);
  if (ptr.thread == static_cast<uint32_t>(mythread())) free_pointer(ptr, kCall);
}

size_t upc_threadof(mob_upc_ptr_t ptr) { return mob_upc_threadof(ptr); }
size_t upc_phaseof(mob_upc_ptr_t ptr) { return mob_upc_phaseof(ptr); }
mob_upc_ptr_t upc_resetphase(mob_upc_ptr_t ptr) { return mob_upc_resetphase(ptr); }
size_t upc_addrfield(mob_upc_ptr_t ptr) { return mob_upc_addrfield(ptr); }
size_t upc_affinitysize(size_t totalsize, size_t nbytes, size_t threadid) {
  return mob_upc_affinitysize(totalsize, nbytes, threadid);
}
void upc_global_exit(int status) { mob_upc_global_exit(status); }

}  // extern "C"
