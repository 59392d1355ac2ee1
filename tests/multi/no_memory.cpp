// SPDX-License-Identifier: BSD-3-Clause

// A process whose memory runs out now and then, in the middle of transfers with another host, or
// with exposed memory of a local peer: each call works or returns MOB_ERR_MEMORY, flushes end, and
// everything works again once there is memory. The argument N makes every N-th allocation of the
// library fail. With "start K" only the K-th allocation of mob_init() in rank 1 fails
// (tests/faults).

#include <mobius/mobius.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

// For the calling thread; 0: no allocation fails.
thread_local unsigned refused_every = 0;
thread_local unsigned refused_once = 0;  // the number of the allocation that fails
thread_local unsigned asked = 0;
std::atomic<long> refused = 0;
int told = 0;  // errors that reported it

bool is_refused() {
  if (refused_every == 0 && refused_once == 0) return false;
  ++asked;
  if (asked != refused_once && (refused_every == 0 || asked % refused_every != 0)) return false;
  refused.fetch_add(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

void* operator new(size_t bytes) {
  void* const memory = is_refused() ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return is_refused() ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
}
void* operator new[](size_t bytes, const std::nothrow_t& tag) noexcept {
  return operator new(bytes, tag);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*bytes*/) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t /*bytes*/) noexcept { std::free(memory); }

namespace {

constexpr int kCalls = 6000;
constexpr mob_rank_t kThere = 1;
constexpr size_t kBytes = 8192;

void require(mob_status_t status, const char* what) {
  if (status == MOB_OK) return;
  std::fprintf(stderr, "no_memory: %s: %s\n", what, mob_last_error());
  std::exit(1);
}

mob_status_t call(int which, char* there, char* local) {
  uint64_t old = 0;
  switch (which % 7) {
    case 0:
      return mob_get(kThere, there, local, 8);
    case 1:
      return mob_fetch_add8(kThere, reinterpret_cast<uint64_t*>(there), 1, &old);
    case 2:
      return mob_put(kThere, there + 64, local, 8);
    case 3:
      for (int i = 0; i < 10; ++i) {
        if (const mob_status_t status = mob_put_nbi(kThere, there + 128 + 40 * i, local, 8)) {
          return status;
        }
      }
      return MOB_OK;
    case 6:
      return mob_compare_swap8(kThere, reinterpret_cast<uint64_t*>(there), 1, 2, &old);
    case 4:
      return mob_get_nbi(kThere, there + 4096, local, 3000);
    default:
      return mob_get(kThere, there, local, 3000);
  }
}

// Whether the other process still counts as alive for this one. Its messages may have been lost for
// lack of memory: then it counts as gone, and that must be reported too.
bool is_acceptable(mob_status_t status, const char* what) {
  if (status == MOB_ERR_PEER) return false;
  if (status == MOB_ERR_MEMORY) {
    ++told;
  } else {
    require(status, what);
  }
  return true;
}

void run_out(char* there, unsigned every) {
  static char local[kBytes];
  bool is_there = true;
  for (int i = 0; i < kCalls && is_there; ++i) {
    refused_every = every;
    const mob_status_t status = call(i, there, local);
    refused_every = 0;
    is_there = is_acceptable(status, "a transfer");
    if (i % 50 != 0 || !is_there) continue;
    refused_every = every;
    const mob_status_t flushed = mob_flush(kThere);
    refused_every = 0;
    is_there = is_acceptable(flushed, "mob_flush");
  }
  if (refused.load() == 0 || told == 0) {
    std::fprintf(stderr, "no_memory: %ld were refused, %d errors said so\n", refused.load(), told);
    std::exit(1);
  }
  // The remaining errors: one for each context.
  is_there = is_there && is_acceptable(mob_flush(kThere), "the first flush with memory");
  if (!is_there) return;
  const uint64_t wanted = 77;
  uint64_t found = 0;
  require(mob_put(kThere, there, &wanted, sizeof wanted), "mob_put");
  require(mob_flush(kThere), "mob_flush, with memory");
  require(mob_get(kThere, there, &found, sizeof found), "mob_get");
  if (found == wanted) return;
  std::fprintf(stderr, "no_memory: %llu was put, %llu is there\n",
               static_cast<unsigned long long>(wanted), static_cast<unsigned long long>(found));
  std::exit(1);
}

int start(unsigned which) {
  const char* const rank = std::getenv("MOBIUS_RANK");
  const bool is_refused = rank != nullptr && std::strcmp(rank, "1") == 0;
  if (is_refused) refused_once = which;
  const mob_status_t status = mob_init();
  refused_once = 0;
  std::printf("%s%s\n", mob_status_name(status), is_refused && asked < which ? " whole" : "");
  if (status == MOB_OK) require(mob_finalize(), "mob_finalize");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "start") == 0) {
    return start(static_cast<unsigned>(std::atoi(argv[2])));
  }
  const int every = argc == 2 ? std::atoi(argv[1]) : 0;
  if (every < 1) {
    std::fprintf(stderr, "usage: no_memory EVERY | no_memory start K\n");
    return 2;
  }
  require(mob_init(), "mob_init");
  alignas(8) static char memory[kBytes];
  mob_exposed_t exposed = nullptr;
  void* addresses[2] = {};
  require(mob_expose(memory, kBytes, 0, &exposed), "mob_expose");
  require(mob_publish(MOB_TEAM_WORLD, memory, addresses), "mob_publish");
  void* const there = addresses[kThere];
  require(mob_barrier(), "mob_barrier");
  const bool is_alone = mob_is_host_mate(1 - mob_rank()) != 1;
  auto* const ended = reinterpret_cast<uint64_t*>(memory + kBytes - sizeof(uint64_t));
  if (mob_rank() == 0) {
    run_out(static_cast<char*>(there), static_cast<unsigned>(every));
    const uint64_t one = 1;
    char* const word = static_cast<char*>(there) + kBytes - sizeof one;
    if (!is_alone) require(mob_put(kThere, word, &one, sizeof one), "the last mob_put");
  } else if (!is_alone) {
    // Computes: a local peer that waited would do most of it without a message.
    while (__atomic_load_n(ended, __ATOMIC_ACQUIRE) == 0) {
    }
  }
  static_cast<void>(mob_barrier());  // fails where one of them counts as gone
  static_cast<void>(mob_finalize());
  return 0;
}
