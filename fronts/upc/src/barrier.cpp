// SPDX-License-Identifier: BSD-3-Clause

// upc_notify and upc_wait. Thread 0 has a count of the threads that have notified; the last one
// resets it and tells all threads the number of the barrier.
//
// The word `agreed` of thread 0 has the value of the barrier. The first thread that gives one
// writes it, the others compare:
//
//   bit 63       a value was given
//   bit 62       a thread ends the program
//   bits 61..32  which thread
//   bits 31..0   the value
//
// The word `released` of each thread is twice the number of the last barrier; the lowest bit tells
// that a thread has ended.

#include <cstddef>

#include "front.h"

namespace mobius::upc {
namespace {

constexpr uint64_t kHasValue = uint64_t{1} << 63;
constexpr uint64_t kEnds = uint64_t{1} << 62;

struct Phase {
  uint64_t count = 0;    // barriers that this thread has notified
  bool is_open = false;  // it has notified, and not waited
  bool has_value = false;
  int value = 0;
  const char* where = nullptr;
};
Phase phase;

const char* place(const char* where, const char* call) { return where != nullptr ? where : call; }

uint64_t* word(uint32_t thread, size_t offset) { return header_word(thread, offset); }

[[noreturn, gnu::cold]] void refuse(uint64_t agreed, uint64_t mine, const char* at) {
  const auto other = static_cast<int>((agreed >> 32) & 0x3fffffff);
  if ((agreed & kEnds) != 0) {
    die(at, "thread %d has ended the program, while this one is at a barrier", other);
  }
  if ((mine & kEnds) != 0) {
    die(at, "this thread ends the program, while thread %d is at a barrier with value %d", other,
        static_cast<int>(static_cast<uint32_t>(agreed)));
  }
  die(at, "the barrier's value is %d here and %d in thread %d: all threads must give one value",
      static_cast<int>(static_cast<uint32_t>(mine)),
      static_cast<int>(static_cast<uint32_t>(agreed)), other);
}

void agree(uint64_t mine, const char* at) {
  uint64_t agreed = 0;
  check(mob_compare_swap8(0, word(0, offsetof(Header, agreed)), 0, mine, &agreed), at);
  constexpr uint64_t kCompared = kHasValue | kEnds | 0xffffffff;
  if (agreed != 0 && (agreed & kCompared) != (mine & kCompared)) refuse(agreed, mine, at);
}

// The last thread that arrives prepares the next barrier, and tells all.
void release(const char* at) {
  uint64_t agreed = 0;
  uint64_t before = 0;
  check(mob_swap8(0, word(0, offsetof(Header, agreed)), 0, &agreed), at);
  check(mob_swap8(0, word(0, offsetof(Header, arrived)), 0, &before), at);
  const uint64_t done = phase.count * 2 + ((agreed & kEnds) != 0 ? 1 : 0);
  for (int i = 0; i < threads(); ++i) {
    uint64_t* const released = word(static_cast<uint32_t>(i), offsetof(Header, released));
    check(mob_put_signal(i, nullptr, nullptr, 0, released, done, MOB_SIGNAL_SET), at);
  }
}

void arrive(uint64_t mine, const char* at) {
  check(mob_flush_all(), at);
  ++phase.count;
  if (mine != 0) agree(mine, at);
  uint64_t before = 0;
  check(mob_fetch_add8(0, word(0, offsetof(Header, arrived)), 1, &before), at);
  if (before + 1 == static_cast<uint64_t>(threads())) release(at);
}

void await(bool is_end, const char* at) {
  const auto* const released =
      reinterpret_cast<const uint64_t*>(mob_upc_local(kHeaderOffset + offsetof(Header, released)));
  check(mob_wait_until_u8(released, MOB_GE, phase.count * 2), at);
  const uint64_t done = __atomic_load_n(released, __ATOMIC_ACQUIRE);
  if (done == phase.count * 2 + 1 && !is_end) {
    die(at, "another thread has ended the program, while this one is at a barrier");
  }
}

void notify(bool has_value, int value, const char* where) {
  const char* const at = place(where, "upc_notify");
  check_started(at);
  if (phase.is_open) {
    die(at, "upc_notify a second time without upc_wait between; the first was at %s",
        place(phase.where, "upc_notify"));
  }
  phase.is_open = true;
  phase.has_value = has_value;
  phase.value = value;
  phase.where = where;
  uint64_t mine = 0;
  if (has_value) {
    mine = kHasValue | (static_cast<uint64_t>(mythread()) << 32) | static_cast<uint32_t>(value);
  }
  arrive(mine, at);
}

void wait(bool has_value, int value, const char* where) {
  const char* const at = place(where, "upc_wait");
  check_started(at);
  if (!phase.is_open) die(at, "upc_wait without a upc_notify before");
  if (has_value && phase.has_value && value != phase.value) {
    die(at, "upc_wait has value %d, but upc_notify at %s had %d", value,
        place(phase.where, "upc_notify"), phase.value);
  }
  await(false, at);
  phase.is_open = false;
}

}  // namespace

void end_barrier() {
  constexpr const char* kEnd = "end of the program";
  if (phase.is_open) {
    await(false, kEnd);
    phase.is_open = false;
  }
  arrive(kEnds | (static_cast<uint64_t>(mythread()) << 32), kEnd);
  await(true, kEnd);
}

void library_barrier(const char* place) { check(mob_barrier(), place); }

}  // namespace mobius::upc

using namespace mobius::upc;  // NOLINT(google-build-using-namespace): this is the C face of it

extern "C" {

void mob_upc_notify(const char* where) { notify(false, 0, where); }
void mob_upc_notify_value(int value, const char* where) { notify(true, value, where); }
void mob_upc_wait(const char* where) { wait(false, 0, where); }
void mob_upc_wait_value(int value, const char* where) { wait(true, value, where); }
void mob_upc_barrier(const char* where) {
  notify(false, 0, where);
  wait(false, 0, where);
}
void mob_upc_barrier_value(int value, const char* where) {
  notify(true, value, where);
  wait(true, value, where);
}

}  // extern "C"
