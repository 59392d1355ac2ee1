// SPDX-License-Identifier: BSD-3-Clause

// Compares LAPI with the native calls that it uses: both in one program, in turn in each round, so
// that drift of the machine affects both alike. Prints medians, and the median of the rounds'
// ratios.
//
//   mobius run -n 2 micro_lapi [ROUNDS]

#include <mobius/mobius.h>

#include <lapi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

constexpr unsigned kTurns = 500;
constexpr size_t kLarge = 1 << 20;
constexpr int kTakeIndex = 1;
constexpr unsigned kTakeId = 1;

lapi_handle_t handle;
mob_rank_t me;
mob_rank_t peer;

struct alignas(64) Line {
  uint64_t word;
};
struct alignas(64) CounterLine {
  lapi_cntr_t counter;
};

// LAPI shares static memory.
Line data[2];  // to send, to receive
CounterLine arrived;
CounterLine completed;
CounterLine sent;
unsigned char large[2][kLarge];
std::atomic<uint64_t> taken{0};

Line* peer_data;
lapi_cntr_t* peer_arrived;
unsigned char* peer_large;
Line* peer_lines;  // an allocation: data, flag
Line* my_lines;

void require(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "micro_lapi: %s: %s\n", what, mob_last_error());
  mob_abort(1, what);
}
#define LAPI_OK(call) require((call) == LAPI_SUCCESS, #call)
#define MOB_DONE(call) require((call) == MOB_OK, #call)

double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// ---- one way, the target idle

double put_signal() {
  if (me != 0) return 0;
  const double start = now_ns();
  for (unsigned i = 0; i < kTurns; ++i) {
    MOB_DONE(
        mob_put_signal(peer, &peer_lines[0], &data[0], 8, &peer_lines[2].word, 1, MOB_SIGNAL_ADD));
  }
  return (now_ns() - start) / kTurns;
}

double put_three_counters() {
  if (me != 0) return 0;
  const double start = now_ns();
  for (unsigned i = 0; i < kTurns; ++i) {
    LAPI_OK(LAPI_Put(handle, static_cast<unsigned>(peer), 8, peer_data, &data[0], peer_arrived,
                     &sent.counter, &completed.counter));
  }
  const double time = (now_ns() - start) / kTurns;
  LAPI_OK(LAPI_Waitcntr(handle, &sent.counter, kTurns, nullptr));
  LAPI_OK(LAPI_Waitcntr(handle, &completed.counter, kTurns, nullptr));
  return time;
}

// Puts with three counters incremented one at the target, too.
void take_counted() {
  if (me != 0) LAPI_OK(LAPI_Waitcntr(handle, &arrived.counter, kTurns, nullptr));
}

double put_large() {
  if (me != 0) return 0;
  const double start = now_ns();
  for (unsigned i = 0; i < 4; ++i) {
    MOB_DONE(mob_put(peer, peer_large, large[0], kLarge));
    MOB_DONE(mob_flush(peer));
  }
  return (now_ns() - start) / 4;
}

double put_large_counted() {
  if (me != 0) return 0;
  const double start = now_ns();
  for (unsigned i = 0; i < 4; ++i) {
    LAPI_OK(LAPI_Put(handle, static_cast<unsigned>(peer), kLarge, peer_large, large[0], nullptr,
                     nullptr, &completed.counter));
    LAPI_OK(LAPI_Waitcntr(handle, &completed.counter, 1, nullptr));
  }
  return (now_ns() - start) / 4;
}

// ---- in turn

template <typename Send, typename Await>
double in_turn(Send send, Await await) {
  double start = 0;
  for (unsigned i = 0; i <= kTurns; ++i) {
    if (i == 1) start = now_ns();
    if (me == 0) send(i);
    await(i);
    if (me == 1) send(i);
  }
  return (now_ns() - start) / kTurns / 2;
}

uint64_t flags = 0;

double pingpong_flag() {
  const uint64_t before = flags;
  flags += kTurns + 1;
  return in_turn(
      [&](unsigned i) {
        MOB_DONE(mob_put8(peer, &peer_lines[0], i));
        MOB_DONE(mob_flush(peer));
        MOB_DONE(mob_put8(peer, &peer_lines[1], before + i + 1));
        MOB_DONE(mob_flush(peer));
      },
      [&](unsigned i) {
        uint64_t seen = 0;
        do MOB_DONE(mob_get8(me, &my_lines[1], &seen));
        while (seen != before + i + 1);
      });
}

double pingpong_counters() {
  return in_turn(
      [&](unsigned i) {
        data[0].word = i;
        LAPI_OK(LAPI_Put(handle, static_cast<unsigned>(peer), 8, peer_data, &data[0], peer_arrived,
                         nullptr, &completed.counter));
        LAPI_OK(LAPI_Waitcntr(handle, &completed.counter, 1, nullptr));
      },
      [&](unsigned) { LAPI_OK(LAPI_Waitcntr(handle, &arrived.counter, 1, nullptr)); });
}

void take(const mob_message_t*, void*, mob_delivery_t*) {
  taken.store(taken.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void* take_header(lapi_handle_t*, void*, unsigned*, unsigned long*, compl_hndlr_t** completion,
                  void**) {
  *completion = nullptr;
  taken.store(taken.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  return nullptr;
}

uint64_t messages = 0;

template <typename Send, typename Poll>
double messages_in_turn(Send send, Poll poll) {
  const uint64_t before = messages;
  messages += kTurns + 1;
  return in_turn([&](unsigned) { send(); },
                 [&](unsigned i) {
                   while (taken.load(std::memory_order_acquire) < before + i + 1) poll();
                 });
}

double message() {
  const uint64_t header = 1;
  return messages_in_turn(
      [&] {
        MOB_DONE(mob_message_send(peer, kTakeId, &header, sizeof header, nullptr, 0, nullptr));
      },
      [] { mob_poll(); });
}

double amsend() {
  uint64_t header = 1;
  return messages_in_turn(
      [&] {
        LAPI_OK(LAPI_Amsend(handle, static_cast<unsigned>(peer),
                            reinterpret_cast<void*>(static_cast<intptr_t>(kTakeIndex)), &header,
                            sizeof header, nullptr, 0, nullptr, nullptr, nullptr));
      },
      [] { LAPI_Probe(handle); });
}

// ---- pairs of both

struct Pair {
  const char* what;
  std::function<double()> native;
  std::function<double()> lapi;
  std::function<void()> after;
  std::vector<double> times[2];
  std::vector<double> ratios;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double measure(const std::function<double()>& run) {
  MOB_DONE(mob_barrier());
  const double time = run();
  MOB_DONE(mob_barrier());
  return time;
}

void open() {
  lapi_info_t info{};
  LAPI_OK(LAPI_Init(&handle, &info));
  me = mob_rank();
  peer = 1 - me;
  require(mob_size() == 2, "it wants two processes");
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 1) {
    int index = me;
    for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed) || index-- > 0) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
      break;
    }
  }
  MOB_DONE(mob_handler_register(kTakeId, take, nullptr));
  LAPI_OK(LAPI_Addr_set(handle, reinterpret_cast<void*>(take_header), kTakeIndex));
  for (CounterLine* line : {&arrived, &completed, &sent}) {
    LAPI_OK(LAPI_Setcntr(handle, &line->counter, 0));
  }
  const auto of_peer = [](void* mine) {
    void* all[2];
    LAPI_OK(LAPI_Address_init(handle, mine, all));
    return all[peer];
  };
  peer_data = static_cast<Line*>(of_peer(&data[1]));
  peer_arrived = static_cast<lapi_cntr_t*>(of_peer(&arrived.counter));
  peer_large = static_cast<unsigned char*>(of_peer(large[1]));
  mob_mem_t mem = nullptr;
  MOB_DONE(mob_mem_alloc(4096, &mem));
  my_lines = static_cast<Line*>(mob_mem_local(mem));
  void* address = nullptr;
  MOB_DONE(mob_mem_address(mem, peer, 0, &address));
  peer_lines = static_cast<Line*>(address);
  std::memset(large, 1, sizeof large);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 301;
  open();
  require(argc <= 2 && rounds > 0, "its argument is a number of rounds, 1 or more");
  std::vector<Pair> pairs(4);
  pairs[0] = {"put of 8 bytes: signal; three counters",
              put_signal,
              put_three_counters,
              take_counted,
              {},
              {}};
  pairs[1] = {"ping-pong of 8 bytes, a turn: flag; counters",
              pingpong_flag,
              pingpong_counters,
              nullptr,
              {},
              {}};
  pairs[2] = {"active message, a turn: native; LAPI_Amsend", message, amsend, nullptr, {}, {}};
  pairs[3] = {"put of 1 MiB until complete: native; LAPI_Put",
              put_large,
              put_large_counted,
              nullptr,
              {},
              {}};
  for (int round = 0; round < rounds; ++round) {
    for (Pair& pair : pairs) {
      const double native = measure(pair.native);
      const double lapi = measure(pair.lapi);
      if (pair.after) pair.after();
      pair.times[0].push_back(native);
      pair.times[1].push_back(lapi);
      pair.ratios.push_back(lapi / native);
    }
  }
  if (me == 0) {
    for (const Pair& pair : pairs) {
      std::printf("%-48s %10.1f ns %10.1f ns  ratio %.2f\n", pair.what, median(pair.times[0]),
                  median(pair.times[1]), median(pair.ratios));
    }
  }
  LAPI_OK(LAPI_Term(handle));
  return 0;
}
