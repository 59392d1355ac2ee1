// SPDX-License-Identifier: BSD-3-Clause

// Start and end of a program, and the shared areas.

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "front.h"

extern "C" {
int32_t mob_upc_writable_mythread = 0;
int32_t mob_upc_writable_threads = 0;
int32_t mob_upc_writable_shift = 0;
uint64_t mob_upc_writable_inverse = 0;
char* mob_upc_writable_mine = nullptr;
char* mob_upc_writable_bases[MOB_UPC_MOST_THREADS] = {};
uint64_t mob_upc_writable_origins[MOB_UPC_MOST_THREADS] = {};
}

namespace mobius::upc {
namespace {

constexpr const char* kStart = "start";
constexpr size_t kChunkBytes = size_t{2} << 20;
pid_t started_in = 0;
uint64_t bytes_of_area = 0;
std::vector<int32_t> hosts;  // of each thread: the first thread of its host
struct sigaction earlier_action = {};

// Blocks of upc_alloc() lie outside the areas. A process can address those of another one only when
// Möbius has been asked for them, which is done here, at the first access.
bool is_mapped_now(uintptr_t address) {
  static thread_local uintptr_t last = 0;
  static thread_local int times = 0;
  times = address == last ? times + 1 : 0;
  last = address;
  if (times > 2) return false;
  for (int i = 0; i < threads(); ++i) {
    if (mob_upc_writable_bases[i] == nullptr) continue;
    const uint64_t owners = mob_upc_writable_origins[i] + address -
                            reinterpret_cast<uintptr_t>(mob_upc_writable_bases[i]);
    void* here = nullptr;
    if (mob_ptr(i, reinterpret_cast<const void*>(owners), &here) == MOB_OK &&
        reinterpret_cast<uintptr_t>(here) == address) {
      return true;
    }
  }
  return false;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (int i = 0; i < threads(); ++i) {
    const char* const base = mob_upc_writable_bases[i];
    if (base == nullptr || address - reinterpret_cast<uintptr_t>(base) >= kGuardBytes) continue;
    die("UPC program",
        "access through a null pointer-to-shared (byte %zu of the shared area of thread %d); "
        "compile with -g -fsanitize=shared to find the line",
        static_cast<size_t>(address - reinterpret_cast<uintptr_t>(base)), i);
  }
  if (info->si_code > 0 && is_mapped_now(address)) return;
  if ((earlier_action.sa_flags & SA_SIGINFO) != 0) {
    earlier_action.sa_sigaction(signal, info, context);
  } else if (earlier_action.sa_handler != SIG_DFL && earlier_action.sa_handler != SIG_IGN) {
    earlier_action.sa_handler(signal);
  } else {
    // The access is repeated, and ends the process as it would have without this handler.
    struct sigaction default_action = {};
    default_action.sa_handler = SIG_DFL;
    sigaction(SIGSEGV, &default_action, nullptr);
  }
}

// Makes accesses through null pointers visible. They are found without it in bulk calls only.
void guard_null() {
  for (int i = 0; i < threads(); ++i) {
    if (mob_upc_writable_bases[i] == nullptr) continue;
    if (mprotect(mob_upc_writable_bases[i], kGuardBytes, PROT_NONE) != 0) return;
  }
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, &earlier_action);
}

// exit(), or a return from main(). Other threads go on until they end, too.
void at_end(int, void*) {
  if (started_in != getpid()) return;  // a child
  started_in = 0;
  std::fflush(nullptr);
  end_barrier();
  static_cast<void>(mob_finalize());
}

void set_threads() {
  const auto size = static_cast<uint64_t>(mob_size());
  if (size > MOB_UPC_MOST_THREADS) {
    die(kStart, "the job has %llu threads; %d is the most", static_cast<unsigned long long>(size),
        MOB_UPC_MOST_THREADS);
  }
  mob_upc_writable_mythread = mob_rank();
  mob_upc_writable_threads = mob_size();
  mob_upc_writable_inverse = ~uint64_t{0} / size;
  mob_upc_writable_shift = (size & (size - 1)) == 0 ? __builtin_ctzll(size) : -1;
}

}  // namespace

void die(const char* place, const char* format, ...) {
  char text[1024];
  int length = 0;
  if (mob_initialized() != 0) {
    length = std::snprintf(text, sizeof text, "%s: thread %d: ", place, mob_rank());
  } else {
    length = std::snprintf(text, sizeof text, "%s: ", place);
  }
  length = std::min(length, static_cast<int>(sizeof text) - 1);
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text + length, sizeof text - static_cast<size_t>(length), format, arguments);
  va_end(arguments);
  mob_abort(EXIT_FAILURE, text);
}

void die_of(const char* place) { die(place, "%s", mob_last_error()); }

void check_started(const char* place) {
  if (__builtin_expect(mob_upc_writable_threads == 0 || mob_initialized() == 0, 0)) {
    die(place, "called before main() or after the end of the program");
  }
}

void refuse_pointer(mob_upc_ptr_t p, const char* place, const char* argument) {
  check_started(place);
  if (p.offset < kGuardBytes) die(place, "%s is a null pointer-to-shared", argument);
  die(place, "%s has thread %u; there are threads 0 to %d", argument, p.thread, threads() - 1);
}

int host_of(int thread) { return hosts[static_cast<size_t>(thread)]; }

uint64_t area_bytes() { return bytes_of_area; }

// Makes an area for each thread, with room for static objects. Parts of heaps begin at multiples of
// 2 MiB, so the first block tells where the area is.
void open_areas(uint64_t object_bytes) {
  const uint64_t first_bytes = kObjectsOffset + object_bytes;
  bytes_of_area = open_heap(first_bytes);
  void* const block = heap_block(first_bytes, true);
  if (reinterpret_cast<uintptr_t>(block) % kChunkBytes != 0) {
    die(kStart, "the first block of the shared area is at %p, not at a multiple of 2 MiB", block);
  }
  for (int i = 0; i < threads(); ++i) {
    void* there = heap_address(i, block);
    mob_upc_writable_origins[i] = reinterpret_cast<uint64_t>(there);
    void* here = nullptr;
    if (i == mob_upc_writable_mythread) {
      here = block;
    } else if (mob_is_host_mate(i) == 1) {
      check(mob_ptr(i, there, &here), kStart);
    }
    mob_upc_writable_bases[i] = static_cast<char*>(here);
  }
  mob_upc_writable_mine = static_cast<char*>(block);
  mob_rank_t first = 0;
  check(mob_host_mate(0, &first), kStart);
  hosts.resize(static_cast<size_t>(threads()));
  check(mob_allgather(MOB_TEAM_WORLD, &first, hosts.data(), sizeof first), kStart);
}

}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void mob_upc_start(void) {
  if (started_in == getpid()) return;
  if (mob_initialized() == 0 && mob_init() != MOB_OK) die(kStart, "%s", mob_last_error());
  if (mob_parent() != MOB_BRIDGE_NONE) {
    die(kStart,
        "mob_spawn() started this process; UPC needs threads numbered from 0, which only the "
        "processes of `mobius run -n` are: start more of those, or call mob_put() and the like in "
        "this one");
  }
  started_in = getpid();
  if (on_exit(at_end, nullptr) != 0) die(kStart, "no memory for on_exit()");
  set_threads();
  open_areas(place_objects().bytes);
  give_large_objects();
  write_initial_values();
  open_memory();
  guard_null();
  library_barrier(kStart);
  run_set_ups();
  library_barrier(kStart);
}

void mob_upc_global_exit(int status) {
  char reason[64];
  std::snprintf(reason, sizeof reason, "upc_global_exit(%d)", status);
  std::fflush(nullptr);
  mob_abort(status, reason);
}

}  // extern "C"
