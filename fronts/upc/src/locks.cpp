// SPDX-License-Identifier: BSD-3-Clause

// Locks: a queue of threads (Mellor-Crummey and Scott). The lock names the node of the thread that
// came last; each thread waits for a word of its own node.

#include <upc.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "front.h"

namespace mobius::upc {
namespace {

struct alignas(64) Lock {
  uint64_t state;
  uint64_t last;  // name of the node of the thread that came last; 0: free
};
struct alignas(64) Node {
  uint64_t waits;
  uint64_t next;  // name of the node behind it
};
constexpr uint64_t kLive = 0x6d6f627570636c6b;
constexpr uint64_t kFreed = 0x6d6f627570630ddd;
constexpr size_t kAtOnce = 64;
constexpr unsigned kThreadShift = 47;  // user addresses are below

std::vector<Node*> free_nodes;
std::vector<Lock*> fresh_locks;
std::vector<Lock*> all_locks;  // first of each kAtOnce, with affinity to the calling thread
// By the calling thread.
struct Held {
  mob_rank_t rank;
  char* lock;
  Node* node;
};
std::vector<Held> held;

template <typename T>
T* take(std::vector<T*>* from, const char* call) {
  if (from->empty()) {
    void* memory = nullptr;
    if (mob_local_alloc(kAtOnce * sizeof(T), alignof(T), &memory) != MOB_OK) {
      die(call, "no memory for a lock: %s", mob_last_error());
    }
    std::memset(memory, 0, kAtOnce * sizeof(T));
    for (size_t i = kAtOnce; i-- > 0;) from->push_back(static_cast<T*>(memory) + i);
  }
  T* const taken = from->back();
  from->pop_back();
  return taken;
}

// Freed locks are used again late, so that a use of one is noticed.
void collect_freed_locks() {
  for (Lock* const first : all_locks) {
    for (size_t i = 0; i < kAtOnce; ++i) {
      if (__atomic_load_n(&first[i].state, __ATOMIC_ACQUIRE) != kFreed) continue;
      first[i].state = 0;
      fresh_locks.push_back(&first[i]);
    }
  }
}

uint64_t name_of(const Node* node) {
  return (static_cast<uint64_t>(mythread()) + 1) << kThreadShift | reinterpret_cast<uint64_t>(node);
}
mob_rank_t thread_of(uint64_t name) { return static_cast<mob_rank_t>(name >> kThreadShift) - 1; }
char* address_of(uint64_t name) {
  return reinterpret_cast<char*>(name & ((uint64_t{1} << kThreadShift) - 1));
}

struct Place {
  mob_rank_t rank;
  char* lock;
  uint64_t* word(size_t field) const { return reinterpret_cast<uint64_t*>(lock + field); }
  uint64_t* last() const { return word(offsetof(Lock, last)); }
};

Place find(mob_upc_ptr_t ptr, const char* call) {
  check_pointer(ptr, call, "the lock");
  const Place place = {static_cast<mob_rank_t>(ptr.thread), remote(ptr)};
  // Of another host this would cost as much as the lock itself.
  if (mob_upc_bases_[ptr.thread] == nullptr) return place;
  uint64_t state = 0;
  if (mob_get8(place.rank, place.word(offsetof(Lock, state)), &state) != MOB_OK || state != kLive) {
    if (state == kFreed) die(call, "the lock was freed before");
    die(call, "the pointer names no lock of upc_global_lock_alloc() or upc_all_lock_alloc()");
  }
  return place;
}

Held* find_held(const Place& place) {
  for (auto& each : held) {
    if (each.lock == place.lock && each.rank == place.rank) return &each;
  }
  return nullptr;
}

void refuse_second(const Place& place, const char* call) {
  if (find_held(place) != nullptr) {
    die(call, "this thread holds the lock already, and would wait for itself");
  }
}

mob_upc_ptr_t make_lock(const char* call) {
  check_started(call);
  if (fresh_locks.empty()) collect_freed_locks();
  const bool is_more = fresh_locks.empty();
  Lock* const lock = take(&fresh_locks, call);
  if (is_more) all_locks.push_back(lock);
  lock->last = 0;
  __atomic_store_n(&lock->state, kLive, __ATOMIC_RELEASE);
  const uint64_t offset = reinterpret_cast<uint64_t>(lock) - mob_upc_origins_[mythread()];
  return mob_upc_pointer(offset, static_cast<uint32_t>(mythread()), 0);
}

void free_lock(mob_upc_ptr_t ptr, const char* call) {
  check_started(call);
  if (mob_upc_is_null(ptr)) return;
  const Place place = find(ptr, call);
  uint64_t state = 0;
  check(mob_swap8(place.rank, place.word(offsetof(Lock, state)), kFreed, &state), call);
  if (state != kLive) die(call, "the lock was freed before");
  uint64_t last = 0;
  check(mob_get8(place.rank, place.last(), &last), call);
  if (last != 0) {
    std::fprintf(stderr, "%s: thread %d: the lock that is freed is held; thread %d asked last\n",
                 call, mythread(), thread_of(last));
  }
  if (auto* const mine = find_held(place)) {
    std::swap(*mine, held.back());
    held.pop_back();
  }
}

}  // namespace
}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

mob_upc_ptr_t upc_global_lock_alloc(void) { return make_lock("upc_global_lock_alloc"); }

mob_upc_ptr_t upc_all_lock_alloc(void) {
  constexpr const char* kCall = "upc_all_lock_alloc";
  check_started(kCall);
  mob_upc_ptr_t lock = mob_upc_null();
  if (mythread() == 0) lock = make_lock(kCall);
  check(mob_broadcast(MOB_TEAM_WORLD, 0, &lock, sizeof lock), kCall);
  return lock;
}

void upc_lock_free(mob_upc_ptr_t ptr) { free_lock(ptr, "upc_lock_free"); }

void upc_all_lock_free(mob_upc_ptr_t ptr) {
  constexpr const char* kCall = "upc_all_lock_free";
  check_started(kCall);
  library_barrier(kCall);
  if (mythread() == 0) free_lock(ptr, kCall);
}

void upc_lock(mob_upc_ptr_t ptr) {
  constexpr const char* kCall = "upc_lock";
  const Place place = find(ptr, kCall);
  refuse_second(place, kCall);
  Node* const node = take(&free_nodes, kCall);
  node->next = 0;
  __atomic_store_n(&node->waits, 1, __ATOMIC_RELAXED);
  const uint64_t mine = name_of(node);
  // The flush of upc_fence, in both directions: gaining a lock is a strict reference.
  check(mob_flush_all(), kCall);
  uint64_t before = 0;
  check(mob_swap8(place.rank, place.last(), mine, &before), kCall);
  if (before != 0) {
    auto* const next = reinterpret_cast<uint64_t*>(address_of(before) + offsetof(Node, next));
    check(mob_put_signal(thread_of(before), nullptr, nullptr, 0, next, mine, MOB_SIGNAL_SET),
          kCall);
    check(mob_wait_until_u8(&node->waits, MOB_EQ, 0), kCall);
  }
  held.push_back({place.rank, place.lock, node});
}

int upc_lock_attempt(mob_upc_ptr_t ptr) {
  constexpr const char* kCall = "upc_lock_attempt";
  const Place place = find(ptr, kCall);
  refuse_second(place, kCall);
  check(mob_flush_all(), kCall);
  Node* const node = take(&free_nodes, kCall);
  node->next = 0;
  uint64_t before = 0;
  check(mob_compare_swap8(place.rank, place.last(), 0, name_of(node), &before), kCall);
  if (before != 0) {
    free_nodes.push_back(node);
    return 0;
  }
  held.push_back({place.rank, place.lock, node});
  return 1;
}

void upc_unlock(mob_upc_ptr_t ptr) {
  constexpr const char* kCall = "upc_unlock";
  const Place place = find(ptr, kCall);
  auto* const mine = find_held(place);
  if (mine == nullptr) die(kCall, "this thread does not hold the lock");
  Node* const node = mine->node;
  std::swap(*mine, held.back());
  held.pop_back();
  check(mob_flush_all(), kCall);
  const uint64_t name = name_of(node);
  uint64_t before = 0;
  check(mob_compare_swap8(place.rank, place.last(), name, 0, &before), kCall);
  if (before != name) {
    // A thread came behind, and says so or will.
    check(mob_wait_until_u8(&node->next, MOB_NE, 0), kCall);
    const uint64_t next = __atomic_load_n(&node->next, __ATOMIC_ACQUIRE);
    auto* const waits = reinterpret_cast<uint64_t*>(address_of(next) + offsetof(Node, waits));
    check(mob_put_signal(thread_of(next), nullptr, nullptr, 0, waits, 0, MOB_SIGNAL_SET), kCall);
  }
  free_nodes.push_back(node);
}

}  // extern "C"
