// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Shared by the parts of the run-time library of UPC: errors, the shared areas, steps of the start.
// The front is thin: it translates pointers to shared memory, and calls Möbius.

#include <mobius/mobius.h>

#include <mobius_upc/runtime.h>

#include <cstddef>
#include <cstdint>

// The variables that the headers declare constant.
extern "C" {
extern MOB_UPC_API int32_t mob_upc_writable_mythread asm("mob_upc_mythread_");
extern MOB_UPC_API int32_t mob_upc_writable_threads asm("mob_upc_threads_");
extern MOB_UPC_API int32_t mob_upc_writable_shift asm("mob_upc_shift_");
extern MOB_UPC_API uint64_t mob_upc_writable_inverse asm("mob_upc_inverse_");
extern MOB_UPC_API char* mob_upc_writable_mine asm("mob_upc_mine_");
extern MOB_UPC_API char* mob_upc_writable_bases[MOB_UPC_MOST_THREADS] asm("mob_upc_bases_");
extern MOB_UPC_API uint64_t mob_upc_writable_origins[MOB_UPC_MOST_THREADS] asm("mob_upc_origins_");
}

namespace mobius::upc {

// Ends the job: "PLACE: thread n: text". The place is a function, or "file:line".
[[noreturn, gnu::format(printf, 2, 3), gnu::cold]] void die(const char* place, const char* format,
                                                            ...);
// Ends the job because a call of Möbius failed.
[[noreturn, gnu::cold]] void die_of(const char* place);

inline void check(mob_status_t status, const char* place) {
  if (__builtin_expect(status != MOB_OK, 0)) die_of(place);
}

// Ends the job outside main().
void check_started(const char* place);

// A shared area begins with a page that nobody may touch, so that an access through a null pointer
// is noticed. The library's own words follow, then static objects, then the heap.
constexpr uint64_t kGuardBytes = 4096;

// So many threads of one host tell each other what they do, without a counter between them.
constexpr size_t kFewThreads = 8;

struct alignas(64) Header {
  alignas(64) uint64_t arrived;    // of thread 0: how many have notified
  uint64_t agreed;                 // of thread 0: the barrier's value; see barrier.cpp
  alignas(64) uint64_t released;   // of each thread: the barrier that is done
  alignas(64) uint64_t freed;      // of each thread: its blocks that others have freed; memory.cpp
  alignas(64) uint64_t words[24];  // of thread 0: the global heap; memory.cpp
  // Of each thread, where there are few: one word for each other one; see barrier.cpp.
  alignas(64) uint64_t notified[2][kFewThreads];
  alignas(64) uint64_t entered[kFewThreads];
  alignas(64) uint64_t served[kFewThreads];
};
constexpr uint64_t kHeaderOffset = kGuardBytes;
constexpr uint64_t kObjectsOffset = kHeaderOffset + ((sizeof(Header) + 63) & ~uint64_t{63});

// Returns the address of offset `offset` in the thread that owns it, for calls of Möbius.
inline char* remote(uint32_t thread, uint64_t offset) {
  return reinterpret_cast<char*>(mob_upc_origins_[thread] + offset);
}
inline char* remote(mob_upc_ptr_t p) { return remote(p.thread, p.offset); }

// Returns a word of the header of a thread, as that thread has it.
inline uint64_t* header_word(uint32_t thread, size_t offset_in_header) {
  return reinterpret_cast<uint64_t*>(remote(thread, kHeaderOffset + offset_in_header));
}

inline int threads() { return mob_upc_threads_; }
inline int mythread() { return mob_upc_mythread_; }

// Ends the job if a pointer cannot be used: null, or no such thread.
[[noreturn, gnu::cold]] void refuse_pointer(mob_upc_ptr_t p, const char* place,
                                            const char* argument);
inline void check_pointer(mob_upc_ptr_t p, const char* place, const char* argument) {
  if (__builtin_expect(p.offset < kGuardBytes || p.thread >= static_cast<uint32_t>(threads()), 0)) {
    refuse_pointer(p, place, argument);
  }
}

// Before a transfer to a thread of another host: orders it behind what the caller wrote there.
void order_read(mob_upc_ptr_t p, size_t bytes, const char* place);
void order_write(mob_upc_ptr_t p, size_t bytes, const char* place);

// A mutex that every thread has, for whoever changes more of its memory than a word.
mob_mutexes_t thread_mutexes();
constexpr size_t kHeapMutex = 0;     // of thread 0
constexpr size_t kPointerMutex = 1;  // of the thread whose pointers are changed

// Parts of the start, each collective.
struct Layout {
  uint64_t bytes;  // of all static objects, from kObjectsOffset on
};
Layout place_objects();
void open_areas(uint64_t object_bytes);
void give_large_objects();
void write_initial_values();
void run_set_ups();
void open_memory();

// The heap of Möbius that the areas are parts of (area.cpp). All but the last are collective. A
// block has the same offset in each area.
uint64_t open_heap(uint64_t first_bytes);           // returns the room in each area
void* heap_block(uint64_t bytes, bool is_zero);     // null: no room
void* heap_address(int thread, const void* block);  // the block's address in another thread

// Tells whether [offset, offset + bytes) of a thread lies in its static objects or its heap.
bool is_in_area(mob_upc_ptr_t p, uint64_t bytes);
// Notes a static object of the caller outside its area.
void note_object(const void* address, uint64_t bytes);
uint64_t area_bytes();
// Returns a number that the threads of one host share, and no others have.
int host_of(int thread);

// The barrier that ends a program.
void end_barrier();

// A barrier of the library, which is none of the program.
void library_barrier(const char* place);

// Whether meet() can be called: few threads, all on this host.
bool can_meet();
// All threads meet at `root`. There it returns true when all have called it; the root then does
// what it likes with the memory of all, and calls end_meeting(). In the others it returns false,
// when the root has done so. Writes of each thread before the call are visible to the root, and
// those of the root to all.
bool meet(uint32_t root, const char* place);
void end_meeting(const char* place);

}  // namespace mobius::upc
