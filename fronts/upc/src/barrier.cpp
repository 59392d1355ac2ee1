// SPDX-License-Identifier: BSD-3-Clause

// upc_notify and upc_wait, in one of two ways.
//
// Few threads of one host each write a word into the memory of every other one, and wait for the
// words of all. Two words are used in turn: a thread can be one barrier ahead of another. A word
// has the value of the barrier as described below, and in bits 61..32 the barrier's number.
//
// Otherwise thread 0 has a count of the threads that have notified; the last one resets it and
// tells all threads the number of the barrier.
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

constexpr uint64_t kCompared = kHasValue | kEnds | 0xffffffff;

uint64_t own_word = 0;               // what this thread has told the others
uint64_t seen[2][kFewThreads] = {};  // their words, as they were two barriers before

void tell(int thread, size_t offset, uint64_t value, const char* at) {
  uint64_t* const there = word(static_cast<uint32_t>(thread), offset);
  check(mob_put_signal(thread, nullptr, nullptr, 0, there, value, MOB_SIGNAL_SET), at);
}

const uint64_t* own(size_t offset) {
  return reinterpret_cast<const uint64_t*>(mob_upc_local(kHeaderOffset + offset));
}

// The offset in the header of element `i` of an array.
size_t place_in(size_t array, size_t i) { return array + i * sizeof(uint64_t); }

size_t notified_by(size_t turn, int thread) {
  return place_in(offsetof(Header, notified), turn * kFewThreads + static_cast<size_t>(thread));
}

void tell_all(uint64_t mine, const char* at) {
  own_word = (mine & kCompared) | ((phase.count & 0x3fffffff) << 32);
  for (int i = 0; i < threads(); ++i) {
    if (i != mythread()) tell(i, notified_by(phase.count % 2, mythread()), own_word, at);
  }
}

void hear_all(bool is_end, const char* at) {
  const size_t turn = phase.count % 2;
  bool has_ended = false;
  for (int i = 0; i < threads(); ++i) {
    if (i == mythread()) continue;
    uint64_t& former = seen[turn][i];
    const uint64_t* const told = own(notified_by(turn, i));
    check(mob_wait_until_u8(told, MOB_NE, former), at);
    former = __atomic_load_n(told, __ATOMIC_ACQUIRE);
    const uint64_t theirs = former & kCompared;
    const uint64_t mine = own_word & kCompared;
    if (theirs != 0 && mine != 0 && theirs != mine) {
      refuse(theirs | (static_cast<uint64_t>(i) << 32), mine, at);
    }
    has_ended = has_ended || (theirs & kEnds) != 0;
  }
  if (has_ended && !is_end) {
    die(at, "another thread has ended the program, while this one is at a barrier");
  }
}

void agree(uint64_t mine, const char* at) {
  uint64_t agreed = 0;
  check(mob_compare_swap8(0, word(0, offsetof(Header, agreed)), 0, mine, &agreed), at);
  if (agreed != 0 && (agreed & kCompared) != (mine & kCompared)) refuse(agreed, mine, at);
}

// The last thread that arrives prepares the next barrier, and tells all.
void release(const char* at) {
  uint64_t agreed = 0;
  uint64_t before = 0;
  check(mob_swap8(0, word(0, offsetof(Header, agreed)), 0, &agreed), at);
  check(mob_swap8(0, word(0, offsetof(Header, arrived)), 0, &before), at);
  const uint64_t done = phase.count * 2 + ((agreed & kEnds) != 0 ? 1 : 0);
  for (int i = 0; i < threads(); ++i) tell(i, offsetof(Header, released), done, at);
}

void arrive(uint64_t mine, const char* at) {
  check(mob_flush_all(), at);
  ++phase.count;
  if (can_meet()) return tell_all(mine, at);
  if (mine != 0) agree(mine, at);
  uint64_t before = 0;
  check(mob_fetch_add8(0, word(0, offsetof(Header, arrived)), 1, &before), at);
  if (before + 1 == static_cast<uint64_t>(threads())) release(at);
}

void await(bool is_end, const char* at) {
  if (can_meet()) return hear_all(is_end, at);
  const uint64_t* const released = own(offsetof(Header, released));
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

bool can_meet() {
  static const bool few = [] {
    if (static_cast<size_t>(threads()) > kFewThreads) return false;
    for (int i = 0; i < threads(); ++i) {
      if (mob_upc_bases_[i] == nullptr) return false;
    }
    return true;
  }();
  return few;
}

namespace {
uint64_t meetings[kFewThreads] = {};  // of each root
}  // namespace

bool meet(uint32_t root, const char* place) {
  const uint64_t number = ++meetings[root];
  check(mob_flush_all(), place);
  if (static_cast<uint32_t>(mythread()) == root) {
    for (int i = 0; i < threads(); ++i) {
      if (i == mythread()) continue;
      const size_t offset = place_in(offsetof(Header, entered), static_cast<size_t>(i));
      check(mob_wait_until_u8(own(offset), MOB_GE, number), place);
    }
    return true;
  }
  const auto me = static_cast<size_t>(mythread());
  tell(static_cast<int>(root), place_in(offsetof(Header, entered), me), number, place);
  check(mob_wait_until_u8(own(place_in(offsetof(Header, served), root)), MOB_GE, number), place);
  return false;
}

void end_meeting(const char* place) {
  const auto me = static_cast<size_t>(mythread());
  for (int i = 0; i < threads(); ++i) {
    if (i != mythread()) tell(i, place_in(offsetof(Header, served), me), meetings[me], place);
  }
}

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
