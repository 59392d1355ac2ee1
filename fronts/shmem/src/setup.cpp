// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>

#include "front.h"

extern "C" {
shmem_state_t_ shmem_state_ = {};
}

namespace mobius::shmem {
namespace {

struct Life {
  std::recursive_mutex mutex;
  int starts = 0;             // initialisations without their shmem_finalize() so far
  bool is_ours = false;       // this front called mob_init()
  bool ends_with_us = false;  // on_exit() knows
  bool asks_debug = false;
  pid_t pid = 0;
};

Life& life() {
  static Life instance;
  return instance;
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

void stop(const char* call);

// A program that ends without shmem_finalize(), as programs of OpenSHMEM 1.1 and before do, is
// finalised if it ends well. Otherwise the PE counts as dead, and the launcher says so. The job
// itself lasts until the process ends, because a program may initialise OpenSHMEM again.
void at_end(int status, void*) {
  Life& now = life();
  if (now.pid != getpid()) return;  // a child
  const std::lock_guard lock(now.mutex);
  if (now.starts > 0) {
    if (status != 0) return;
    now.starts = 1;
    stop("exit");
  }
  if (now.is_ours) static_cast<void>(mob_finalize());
}

void print_info() {
  if (!is_set("SHMEM_INFO") || mob_rank() != 0) return;
  std::fprintf(stderr,
               "OpenSHMEM %d.%d, %s %s, %d PEs, %d on this host\n"
               "  SHMEM_SYMMETRIC_SIZE  room for the symmetric heap of each PE: %zu bytes now\n"
               "  SHMEM_DEBUG           1: more checks of arguments; %s now\n"
               "  SHMEM_INFO            1: prints these lines\n"
               "  SHMEM_VERSION         1: prints the version\n",
               SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING, mob_version(),
               mob_size(), mob_host_size(), shmem_state_.heap_bytes, debugs() ? "on" : "off");
}

void start(const char* call) {
  Life& now = life();
  const std::lock_guard lock(now.mutex);
  if (now.starts++ > 0) return;
  if (mob_initialized() == 0) {
    now.is_ours = true;
    if (mob_init() != MOB_OK) die(call, "%s", mob_last_error());
  }
  if (mob_parent() != MOB_BRIDGE_NONE) {
    die(call,
        "mob_spawn() started this process; OpenSHMEM needs PEs numbered from 0, which only the "
        "processes of `mobius run -n` are: start more of those, or call mob_put() and the like in "
        "this one");
  }
  now.pid = getpid();
  if (!now.ends_with_us) {
    now.ends_with_us = true;
    if (on_exit(at_end, nullptr) != 0) die(call, "no memory for on_exit()");
  }
  now.asks_debug = is_set("SHMEM_DEBUG");
  shmem_state_.me = mob_rank();
  shmem_state_.is_one_host = mob_host_size() == mob_size() ? 1 : 0;
  open_teams(call);
  open_heap(call);
  open_statics(call);
  print_info();
  if (is_set("SHMEM_VERSION") && mob_rank() == 0) {
    std::fprintf(stderr, "OpenSHMEM %d.%d, %s %s\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION,
                 SHMEM_VENDOR_STRING, mob_version());
  }
  // The inlined calls leave the checks to the others.
  if (now.asks_debug) shmem_state_.heap_bytes = shmem_state_.statics_bytes = 0;
  shmem_state_.n_pes = mob_size();
}

void stop(const char* call) {
  Life& now = life();
  const std::lock_guard lock(now.mutex);
  if (now.starts == 0) die(call, "called without shmem_init()");
  if (--now.starts > 0) {
    check(mob_barrier(), call);
    return;
  }
  close_contexts(call);
  check(mob_barrier(), call);
  shmem_state_.n_pes = 0;
  shmem_state_.heap_bytes = shmem_state_.statics_bytes = 0;
  close_heap();
  close_teams();
}

}  // namespace

void die(const char* call, const char* format, ...) {
  char text[1024];
  int length = 0;
  if (mob_initialized() != 0) {
    length = std::snprintf(text, sizeof text, "%s: PE %d: ", call, mob_rank());
  } else {
    length = std::snprintf(text, sizeof text, "%s: ", call);
  }
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text + length, sizeof text - static_cast<size_t>(length), format, arguments);
  va_end(arguments);
  mob_abort(EXIT_FAILURE, text);
}

void die_of(const char* call) { die(call, "%s", mob_last_error()); }

void check_started(const char* call) {
  if (__builtin_expect(shmem_state_.n_pes == 0, 0)) {
    die(call, "called before shmem_init() or after shmem_finalize()");
  }
}

bool debugs() { return life().asks_debug; }

}  // namespace mobius::shmem

using namespace mobius::shmem;  // NOLINT(google-build-using-namespace): this is the C face of it

SHMEM_TWIN(void, init, (void)) { start("shmem_init"); }

SHMEM_TWIN(int, init_thread, (int, int* provided)) {
  start("shmem_init_thread");
  if (provided != nullptr) *provided = SHMEM_THREAD_MULTIPLE;
  return 0;
}

SHMEM_TWIN(void, query_thread, (int* provided)) {
  if (provided != nullptr) *provided = SHMEM_THREAD_MULTIPLE;
}

SHMEM_TWIN(void, query_initialized, (int* initialized)) {
  if (initialized != nullptr) *initialized = shmem_state_.n_pes != 0 ? 1 : 0;
}

SHMEM_TWIN(void, finalize, (void)) { stop("shmem_finalize"); }

SHMEM_TWIN(void, global_exit, (int status)) {
  char reason[64];
  std::snprintf(reason, sizeof reason, "shmem_global_exit(%d)", status);
  std::fflush(nullptr);
  mob_abort(status, reason);
}

SHMEM_TWIN(int, pe_accessible, (int pe)) {
  check_started("shmem_pe_accessible");
  return pe >= 0 && pe < shmem_state_.n_pes ? 1 : 0;
}

SHMEM_TWIN(int, addr_accessible, (const void* addr, int pe)) {
  check_started("shmem_addr_accessible");
  return pe >= 0 && pe < shmem_state_.n_pes && find_in(addr, pe) != nullptr ? 1 : 0;
}

SHMEM_TWIN(void*, ptr, (const void* dest, int pe)) {
  check_started("shmem_ptr");
  if (pe < 0 || pe >= shmem_state_.n_pes) return nullptr;
  char* const there = find_in(dest, pe);
  if (there == nullptr) return nullptr;
  if (pe == shmem_state_.me) return there;
  void* here = nullptr;
  return mob_is_host_mate(pe) == 1 && mob_ptr(pe, there, &here) == MOB_OK ? here : nullptr;
}

SHMEM_TWIN(void*, team_ptr, (shmem_team_t team, const void* dest, int pe)) {
  if (team == SHMEM_TEAM_INVALID || pe < 0 || pe >= team->size) return nullptr;
  return pshmem_ptr(dest, team->world_pe(pe));
}

SHMEM_TWIN(void, info_get_version, (int* major, int* minor)) {
  *major = SHMEM_MAJOR_VERSION;
  *minor = SHMEM_MINOR_VERSION;
}

SHMEM_TWIN(void, info_get_name, (char* name)) { std::strcpy(name, SHMEM_VENDOR_STRING); }

SHMEM_TWIN(void, pcontrol, (int, ...)) {}

extern "C" {

void start_pes(int) {
  if (shmem_state_.n_pes == 0) start("start_pes");
}
int _my_pe(void) { return pshmem_my_pe(); }
int _num_pes(void) { return pshmem_n_pes(); }
int my_pe(void) { return pshmem_my_pe(); }
int num_pes(void) { return pshmem_n_pes(); }

double shmemx_wtime(void) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // extern "C"

// Processors keep caches coherent.
SHMEM_TWIN(void, clear_cache_inv, (void)) {}
SHMEM_TWIN(void, set_cache_inv, (void)) {}
SHMEM_TWIN(void, clear_cache_line_inv, (void*)) {}
SHMEM_TWIN(void, set_cache_line_inv, (void*)) {}
SHMEM_TWIN(void, udcflush, (void)) {}
SHMEM_TWIN(void, udcflush_line, (void*)) {}
