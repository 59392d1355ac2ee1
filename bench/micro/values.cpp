// SPDX-License-Identifier: BSD-3-Clause

// Single values, inlined: the cost of the check and the translation, added to a store or a load,
// and of completion.

#include "micro.h"

namespace micro {
namespace {

constexpr uint64_t kWords = 2048;  // 16 KiB: fits into the first-level cache
constexpr int kSweeps = 200;

// The compiler may neither vectorise nor drop the single stores of puts; volatile makes the limit
// the same.
using Word = volatile uint64_t;

[[gnu::noinline]] void store_sweep(mob_rank_t, uint64_t* words) {
  for (uint64_t i = 0; i < kWords; ++i) *static_cast<Word*>(words + i) = i;
}

[[gnu::noinline]] void put_sweep(mob_rank_t rank, uint64_t* words) {
  for (uint64_t i = 0; i < kWords; ++i) static_cast<void>(mob_put8(rank, words + i, i));
}

[[gnu::noinline]] void checked_put_sweep(mob_rank_t rank, uint64_t* words) {
  for (uint64_t i = 0; i < kWords; ++i) require(mob_put8(rank, words + i, i), "mob_put8");
}

[[gnu::noinline]] void symbol_put_sweep(mob_rank_t rank, uint64_t* words) {
  for (uint64_t i = 0; i < kWords; ++i) {
    static_cast<void>(mob_put(rank, words + i, &i, sizeof i));
  }
}

[[gnu::noinline]] void load_sweep(mob_rank_t, uint64_t* words) {
  for (uint64_t i = 0; i < kWords; ++i) static_cast<void>(*static_cast<Word*>(words + i));
}

[[gnu::noinline]] void get_sweep(mob_rank_t rank, uint64_t* words) {
  uint64_t value = 0;
  for (uint64_t i = 0; i < kWords; ++i) static_cast<void>(mob_get8(rank, words + i, &value));
}

[[gnu::noinline]] void store_fence_sweep(mob_rank_t, uint64_t* words) {
  for (uint64_t i = 0; i < kWords; ++i) {
    *static_cast<Word*>(words + i) = i;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
  }
}

[[gnu::noinline]] void put_flush_sweep(mob_rank_t rank, uint64_t* words) {
  for (uint64_t i = 0; i < kWords; ++i) {
    static_cast<void>(mob_put8(rank, words + i, i));
    static_cast<void>(mob_flush(rank));
  }
}

using Sweep = void (*)(mob_rank_t, uint64_t*);

Variant variant(const char* name, Sweep sweep, mob_rank_t target, uint64_t* words) {
  return {name, [=] {
            if (mob_rank() != 0) return 0.0;
            sweep(target, words);  // loads the lines and prepares the inlined path
            const double start = now_ns();
            for (int i = 0; i < kSweeps; ++i) sweep(target, words);
            return (now_ns() - start) / (static_cast<double>(kWords) * kSweeps);
          }};
}

// Two allocations in turn: the inlined path remembers one region per target, so every put goes out
// of line.
Variant alternating(mob_rank_t target, uint64_t* first, uint64_t* second) {
  return {"mob_put8, two allocations in turn", [=] {
            if (mob_rank() != 0) return 0.0;
            const double start = now_ns();
            for (int i = 0; i < kSweeps; ++i) {
              for (uint64_t w = 0; w < kWords; w += 2) {
                static_cast<void>(mob_put8(target, first + w, w));
                static_cast<void>(mob_put8(target, second + w, w));
              }
            }
            return (now_ns() - start) / (static_cast<double>(kWords) * kSweeps);
          }};
}

}  // namespace

std::vector<Benchmark> value_benchmarks() {
  const mob_rank_t target = mob_size() - 1;
  auto* words = static_cast<uint64_t*>(shared_memory(kWords * sizeof(uint64_t), target));
  auto* others = static_cast<uint64_t*>(shared_memory(kWords * sizeof(uint64_t), target));
  return {{"put8",
           "one 8-byte put of a loop over 16 KiB of a local peer",
           {variant("plain store", store_sweep, target, words),
            variant("mob_put8", put_sweep, target, words),
            variant("mob_put8, status checked", checked_put_sweep, target, words),
            variant("mob_put (any size)", symbol_put_sweep, target, words),
            alternating(target, words, others)}},
          {"get8",
           "one 8-byte get of a loop over 16 KiB of a local peer",
           {variant("plain load", load_sweep, target, words),
            variant("mob_get8", get_sweep, target, words)}},
          {"put8_flush",
           "an 8-byte put with remote completion, lines owned by the origin",
           {variant("plain store + full fence", store_fence_sweep, target, words),
            variant("mob_put8 + mob_flush", put_flush_sweep, target, words)}}};
}

}  // namespace micro
