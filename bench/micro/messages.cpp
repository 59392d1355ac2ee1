// SPDX-License-Identifier: BSD-3-Clause

// Active messages: a short one compared with a cache line, to a target that polls and to one that
// does not; long ones compared with puts.

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "micro.h"

namespace micro {
namespace {

constexpr mob_rank_t kLeft = 0;
constexpr mob_rank_t kRight = 1;

enum Id : unsigned { kCount, kEcho, kTake };

std::atomic<uint64_t> counted{0};
std::atomic<uint64_t> taken{0};
// The values at the end of the last variant: when a variant starts, its first messages may have
// arrived already.
uint64_t counted_before = 0;
uint64_t taken_before = 0;
void* destination = nullptr;

void count(const mob_message_t*, void*, mob_delivery_t*) {
  counted.store(counted.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void echo(const mob_message_t* message, void*, mob_delivery_t*) {
  counted.store(counted.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  require(mob_message_reply(message->token, kCount, message->header, message->header_bytes, nullptr,
                            0, nullptr),
          "mob_message_reply");
}

void take(const mob_message_t*, void*, mob_delivery_t* delivery) {
  delivery->payload = destination;
  delivery->handler = [](mob_token_t, void*) {
    taken.store(taken.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  };
}

void send(mob_rank_t rank, Id id, const void* payload = nullptr, size_t bytes = 0) {
  const uint64_t header = 1;
  require(mob_message_send(rank, id, &header, sizeof header, payload, bytes, nullptr),
          "mob_message_send");
}

// Half a round trip between two processes that poll.
double polled() {
  constexpr uint64_t kTurns = 20'000;
  if (mob_rank() > kRight) return 0;
  bind_to_processor(mob_rank());
  const uint64_t before = counted_before;
  counted_before += kTurns;
  const mob_rank_t peer = mob_rank() == kLeft ? kRight : kLeft;
  double start = 0;
  for (uint64_t turn = 1; turn <= kTurns; ++turn) {
    if (turn == kTurns / 10) start = now_ns();
    if (mob_rank() == kLeft) send(peer, kCount);
    while (counted.load(std::memory_order_acquire) < before + turn) mob_poll();
    if (mob_rank() == kRight) send(peer, kCount);
  }
  return (now_ns() - start) / static_cast<double>(kTurns - kTurns / 10 + 1) / 2;
}

// A message and its reply. The sender polls; the target's main thread does not call the library.
template <typename Meanwhile>
double served_by_thread(Meanwhile meanwhile) {
  constexpr uint64_t kTurns = 200;
  if (mob_rank() > kRight) return 0;
  bind_to_processor(mob_rank());
  const uint64_t before = counted_before;
  counted_before += kTurns;
  if (mob_rank() == kRight) {
    while (counted.load(std::memory_order_acquire) < before + kTurns) meanwhile();
    return 0;
  }
  std::vector<double> times;
  for (uint64_t turn = 1; turn <= kTurns; ++turn) {
    usleep(100);  // the thread goes back to sleep
    const double start = now_ns();
    send(kRight, kEcho);
    while (counted.load(std::memory_order_acquire) < before + turn) mob_poll();
    times.push_back(now_ns() - start);
  }
  std::nth_element(times.begin(), times.begin() + kTurns / 2, times.end());
  return times[kTurns / 2];
}

// The limit of the next variant: the kernel wakes a sleeping thread, which answers through a cache
// line. The words are in the right rank's memory: requested rounds, and answered ones.
double bare_wake(std::atomic<uint32_t>* words) {
  constexpr uint32_t kTurns = 200;
  if (mob_rank() > kRight) return 0;
  bind_to_processor(mob_rank());
  std::atomic<uint32_t>& asked = words[0];
  std::atomic<uint32_t>& answered = words[32];
  const uint32_t before = answered.load();
  require(mob_barrier(), "mob_barrier");
  std::vector<double> times;
  for (uint32_t turn = before + 1; turn <= before + kTurns; ++turn) {
    if (mob_rank() == kRight) {
      while (asked.load() < turn) {
        syscall(SYS_futex, &asked, FUTEX_WAIT, turn - 1, nullptr, nullptr, 0);
      }
      answered.store(turn);
      continue;
    }
    usleep(100);
    const double start = now_ns();
    asked.store(turn);
    syscall(SYS_futex, &asked, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    while (answered.load() < turn) {
    }
    times.push_back(now_ns() - start);
  }
  if (mob_rank() == kRight) return 0;
  std::nth_element(times.begin(), times.begin() + kTurns / 2, times.end());
  return times[kTurns / 2];
}

// Many payloads of one size to a target that polls.
double stream(const void* payload, size_t bytes) {
  if (mob_rank() > kRight) return 0;
  bind_to_processor(mob_rank());
  const uint64_t messages = std::max<uint64_t>(16, (uint64_t{32} << 20) / bytes);
  if (mob_rank() == kRight) {
    const uint64_t before = taken_before;
    taken_before += messages;
    while (taken.load(std::memory_order_acquire) < before + messages) mob_poll();
    return 0;
  }
  const double start = now_ns();
  for (uint64_t i = 0; i < messages; ++i) send(kRight, kTake, payload, bytes);
  require(mob_message_flush(kRight), "mob_message_flush");
  return (now_ns() - start) / static_cast<double>(messages);
}

double puts(void* remote, const void* payload, size_t bytes) {
  if (mob_rank() != kLeft) return 0;
  const uint64_t messages = std::max<uint64_t>(16, (uint64_t{32} << 20) / bytes);
  const double start = now_ns();
  for (uint64_t i = 0; i < messages; ++i) {
    require(mob_put(kRight, remote, payload, bytes), "mob_put");
  }
  return (now_ns() - start) / static_cast<double>(messages);
}

// Puts that the target reads, each line once: the bytes go from one processor to another instead of
// staying in the sender's cache. `area` has kAreaBytes at the target, then two counters: puts done,
// and puts read.
constexpr size_t kAreaBytes = size_t{2} << 20;

double seen_puts(char* area, const void* payload, size_t bytes) {
  if (mob_rank() > kRight) return 0;
  bind_to_processor(mob_rank());
  auto& put = *reinterpret_cast<std::atomic<uint64_t>*>(area + kAreaBytes);
  auto& read = *reinterpret_cast<std::atomic<uint64_t>*>(area + kAreaBytes + 128);
  const uint64_t messages = std::max<uint64_t>(16, (uint64_t{32} << 20) / bytes);
  const uint64_t slots = std::max<uint64_t>(2, std::min(kAreaBytes, size_t{256} << 10) / bytes);
  const uint64_t before = read.load();
  require(mob_barrier(), "mob_barrier");
  const double start = now_ns();
  if (mob_rank() == kLeft) {
    for (uint64_t i = 0; i < messages; ++i) {
      while (before + i - read.load(std::memory_order_acquire) >= slots) {
      }
      require(mob_put(kRight, area + i % slots * bytes, payload, bytes), "mob_put");
      put.store(before + i + 1, std::memory_order_release);
    }
    while (read.load(std::memory_order_acquire) != before + messages) {
    }
  } else {
    char sum = 0;
    for (uint64_t i = 0; i < messages; ++i) {
      while (put.load(std::memory_order_acquire) < before + i + 1) {
      }
      const volatile char* from = area + i % slots * bytes;
      for (size_t at = 0; at < bytes; at += 64) sum = static_cast<char>(sum + from[at]);
      // As rarely as a queue would.
      if (i % std::max<uint64_t>(1, slots / 4) == 0 || i + 1 == messages) {
        read.store(before + i + 1, std::memory_order_release);
      }
    }
    __asm__ volatile("" ::"r"(sum));
  }
  return (now_ns() - start) / static_cast<double>(messages);
}

}  // namespace

std::vector<Benchmark> message_benchmarks() {
  if (mob_size() < 2) return {};
  constexpr size_t kLargest = size_t{1} << 20;
  void* shared = shared_memory(kLargest, mob_rank());
  void* remote = shared_memory(kLargest, kRight);
  auto* area = static_cast<char*>(shared_memory(kAreaBytes + 256, kRight));
  auto* words = static_cast<std::atomic<uint32_t>*>(shared_memory(256, kRight));
  void* payload = private_memory(kLargest);
  destination = private_memory(kLargest);
  std::memset(shared, 1, kLargest);
  if (mob_rank() == kRight) std::memset(area, 0, kAreaBytes + 256);
  require(mob_handler_register(kCount, count, nullptr), "mob_handler_register");
  require(mob_handler_register(kEcho, echo, nullptr), "mob_handler_register");
  require(mob_handler_register(kTake, take, nullptr), "mob_handler_register");
  std::vector<Benchmark> result = {
      {"message_8",
       "a message of 8 bytes until the handler of a polling peer has run",
       {{"two threads, two cache lines", two_cache_lines}, {"mob_message_send", polled}}},
      {"message_wake",
       "a message of 8 bytes and its reply by a progress thread that slept",
       {{"a futex, bare", [=] { return bare_wake(words); }},
        {"target computes",
         [] { return served_by_thread([] {
                __asm__ volatile("" ::: "memory");
              }); }},
        {"target sleeps", [] { return served_by_thread([] { usleep(200); }); }}}}};
  struct Size {
    const char* name;
    size_t bytes;
  };
  for (const Size size :
       {Size{"4k", 4 << 10}, Size{"16k", 16 << 10}, Size{"64k", 64 << 10}, Size{"1m", kLargest}}) {
    const size_t bytes = size.bytes;
    result.push_back(
        {std::string("message_") + size.name,
         "messages of " + std::to_string(bytes) + " bytes to a peer that polls",
         {{"mob_put", [=] { return puts(remote, payload, bytes); }},
          {"mob_put, read by its target", [=] { return seen_puts(area, payload, bytes); }},
          {"from private memory", [=] { return stream(payload, bytes); }},
          {"from shared memory", [=] { return stream(shared, bytes); }}}});
  }
  return result;
}

}  // namespace micro
