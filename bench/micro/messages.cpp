// SPDX-License-Identifier: BSD-3-Clause

// Active messages: the way of a short one against the way of a cache line, to a target that polls
// and to one that does not; long ones against puts.

#include <sys/mman.h>
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
// What the two were at the end of the variant before: at the start of one the first messages may
// have come already.
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

}  // namespace

std::vector<Benchmark> message_benchmarks() {
  if (mob_size() < 2) return {};
  constexpr size_t kLargest = size_t{1} << 20;
  void* shared = shared_memory(kLargest, mob_rank());
  void* remote = shared_memory(kLargest, kRight);
  void* payload = private_memory(kLargest);
  destination = private_memory(kLargest);
  std::memset(shared, 1, kLargest);
  require(mob_handler_register(kCount, count, nullptr), "mob_handler_register");
  require(mob_handler_register(kEcho, echo, nullptr), "mob_handler_register");
  require(mob_handler_register(kTake, take, nullptr), "mob_handler_register");
  std::vector<Benchmark> result = {
      {"message_8",
       "a message of 8 bytes until the handler of a polling peer has run",
       {{"two threads, two cache lines", two_cache_lines}, {"mob_message_send", polled}}},
      {"message_wake",
       "a message of 8 bytes and its reply by a progress thread that slept",
       {{"target computes",
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
    result.push_back({std::string("message_") + size.name,
                      "messages of " + std::to_string(bytes) + " bytes to a peer that polls",
                      {{"mob_put", [=] { return puts(remote, payload, bytes); }},
                       {"from private memory", [=] { return stream(payload, bytes); }},
                       {"from shared memory", [=] { return stream(shared, bytes); }}}});
  }
  return result;
}

}  // namespace micro
