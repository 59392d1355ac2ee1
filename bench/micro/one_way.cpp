// SPDX-License-Identifier: BSD-3-Clause

// A put to a peer that polls, compared with two threads that exchange two cache lines (one in each
// direction): half a round trip of each.
//
// A line's travel time depends on the place of its physical address in the processor's mesh, by up
// to a factor of two. Each round of both variants uses other lines, so that neither depends on one
// line.

#include <atomic>
#include <memory>
#include <thread>

#include "micro.h"

namespace micro {
namespace {

constexpr uint64_t kTurns = 20'000;
constexpr mob_rank_t kLeft = 0;
constexpr mob_rank_t kRight = 1;

constexpr size_t kPlaces = 512;
constexpr size_t kPlaceBytes = 128;  // two lines: neighbours are fetched in pairs

struct Lines {
  alignas(kPlaceBytes) std::atomic<uint64_t> to_right{0};
  alignas(kPlaceBytes) std::atomic<uint64_t> to_left{0};
};

void wait_for(const std::atomic<uint64_t>& line, uint64_t value) {
  while (line.load(std::memory_order_acquire) != value) {
  }
}

double processes(unsigned char* memory_of_left, unsigned char* memory_of_right) {
  static uint64_t last_turn = 0;  // flags keep their values from round to round
  static size_t round = 0;
  if (mob_rank() > kRight) return 0;
  const size_t place = round++ % kPlaces * kPlaceBytes;
  memory_of_left += place;
  memory_of_right += place;
  bind_to_processor(mob_rank());
  const mob_rank_t peer = mob_rank() == kLeft ? kRight : kLeft;
  unsigned char* own = mob_rank() == kLeft ? memory_of_left : memory_of_right;
  unsigned char* other = mob_rank() == kLeft ? memory_of_right : memory_of_left;
  double start = 0;
  uint64_t seen = 0;
  for (uint64_t turn = last_turn + 1; turn <= last_turn + kTurns; ++turn) {
    if (turn == last_turn + kTurns / 10) start = now_ns();
    if (mob_rank() == kLeft) require(mob_put8(peer, other, turn), "mob_put8");
    do {
      require(mob_get8(mob_rank(), own, &seen), "mob_get8");
    } while (seen != turn);
    if (mob_rank() == kRight) require(mob_put8(peer, other, turn), "mob_put8");
  }
  const double end = now_ns();
  last_turn += kTurns;
  return (end - start) / static_cast<double>(kTurns - kTurns / 10 + 1) / 2;
}

}  // namespace

// The other rank sleeps in the barrier, so its processor is free for the second thread.
double two_cache_lines() {
  if (mob_rank() != kLeft) return 0;
  static const auto places = std::make_unique<Lines[]>(kPlaces);
  static size_t round = 0;
  Lines* lines = &places[round++ % kPlaces];
  lines->to_right = 0;
  lines->to_left = 0;
  std::thread right([&] {
    bind_to_processor(1);
    for (uint64_t turn = 1; turn <= kTurns; ++turn) {
      wait_for(lines->to_right, turn);
      lines->to_left.store(turn, std::memory_order_release);
    }
  });
  bind_to_processor(0);
  double start = 0;
  for (uint64_t turn = 1; turn <= kTurns; ++turn) {
    if (turn == kTurns / 10) start = now_ns();  // the first turns only warm up
    lines->to_right.store(turn, std::memory_order_release);
    wait_for(lines->to_left, turn);
  }
  const double end = now_ns();
  right.join();
  return (end - start) / static_cast<double>(kTurns - kTurns / 10 + 1) / 2;
}

std::vector<Benchmark> one_way_benchmarks() {
  if (mob_size() < 2) return {};
  constexpr size_t kBytes = kPlaces * kPlaceBytes;
  auto* right = static_cast<unsigned char*>(shared_memory(kBytes, kRight));
  auto* left = static_cast<unsigned char*>(shared_memory(kBytes, kLeft));
  return {{"one_way",
           "an 8-byte put until a polling peer on another processor sees it",
           {{"two threads, two cache lines", two_cache_lines},
            {"mob_put8, two processes", [=] { return processes(left, right); }}}}};
}

}  // namespace micro
