// SPDX-License-Identifier: BSD-3-Clause

// Read-modify-write and accumulate compared with the bare instructions and a plain loop.

#include <cstring>

#include "micro.h"

namespace micro {
namespace {

constexpr int kUpdates = 100'000;

template <typename Update>
Variant updates(std::string name, Update update, int turns = kUpdates) {
  return {std::move(name), [=] {
            if (mob_rank() != 0) return 0.0;
            for (int i = 0; i < turns / 10; ++i) update();
            const double start = now_ns();
            for (int i = 0; i < turns; ++i) update();
            return (now_ns() - start) / turns;
          }};
}

Benchmark fetch_add(mob_rank_t target, uint64_t* word) {
  return {"fetch_add8",
          "fetch-and-add of 8 bytes, all on one line",
          {updates("bare atomic instruction",
                   [=] {
                     const uint64_t old = __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
                     __asm__ volatile("" : : "r"(old));
                   }),
           // Alone in its loop, some processors begin the next one sooner: with as many others
           // as a check has, it takes what it takes in a program.
           updates("the same and eight no-ops",
                   [=] {
                     const uint64_t old = __atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
                     __asm__ volatile(".rept 8\n\tnop\n\t.endr" : : "r"(old));
                   }),
           updates("mob_fetch_add8",
                   [=] {
                     uint64_t old = 0;
                     require(mob_fetch_add8(target, word, 1, &old), "mob_fetch_add8");
                     __asm__ volatile("" : : "r"(old));
                   }),
           updates("mob_compare_swap8",
                   [=] {
                     uint64_t old = 0;
                     require(mob_compare_swap8(target, word, 0, 0, &old), "mob_compare_swap8");
                   }),
           updates("mob_fetch_op, double", [=] {
             const double one = 1;
             double old = 0;
             require(mob_fetch_op(target, word, MOB_DOUBLE, MOB_SUM, &one, &old), "mob_fetch_op");
           })}};
}

constexpr size_t kRows = 128;
constexpr size_t kRowDoubles = 64;
constexpr size_t kPitchDoubles = 128;
constexpr size_t kAreaBytes = kRows * kPitchDoubles * sizeof(double);

// The loop as a good compiler makes it.
[[gnu::noinline]] void add_row(double* __restrict to, const double* __restrict from) {
  for (size_t i = 0; i < kRowDoubles; ++i) to[i] += from[i];
}

Benchmark accumulate_rows(mob_rank_t target, double* remote, double* local) {
  return {"accumulate_rows",
          "128 rows of 512 bytes of doubles added, stride 1024, at a local peer",
          {updates("plain loops",
                   [=] {
                     for (size_t row = 0; row < kRows; ++row) {
                       add_row(remote + row * kPitchDoubles, local + row * kPitchDoubles);
                     }
                   }),
           updates("mob_accumulate_strided", [=] {
             const ptrdiff_t stride = kPitchDoubles * sizeof(double);
             const size_t rows = kRows;
             require(mob_accumulate_strided(target, remote, &stride, local, &stride,
                                            kRowDoubles * sizeof(double), &rows, 1, MOB_DOUBLE,
                                            MOB_SUM, nullptr),
                     "mob_accumulate_strided");
           })}};
}

constexpr size_t kIntegers = (size_t{64} << 10) / sizeof(uint32_t);

[[gnu::noinline]] void add_integers(uint32_t* __restrict to, const uint32_t* __restrict from) {
  for (size_t i = 0; i < kIntegers; ++i) to[i] += from[i];
}

// Accumulates in memory without atomically updated words, with one, and with many, so that all of
// the memory counts as updated atomically (docs/decisions/0012).
Benchmark accumulate_integers(mob_rank_t target, uint32_t* remote, uint32_t* word, uint32_t* words,
                              uint32_t* local) {
  const auto add_to = [=](std::string name, uint32_t* to, bool by_all) {
    return Variant{std::move(name), [=] {
                     constexpr int kTurns = 500;
                     if (mob_rank() != 0 && !by_all) return 0.0;
                     const double start = now_ns();
                     for (int i = 0; i < kTurns; ++i) {
                       require(mob_accumulate(target, to, local, kIntegers, MOB_UINT32, MOB_SUM),
                               "mob_accumulate");
                     }
                     return (now_ns() - start) / kTurns;
                   }};
  };
  uint32_t old = 0;
  require(mob_fetch_add4(target, word, 1, &old), "mob_fetch_add4");
  for (size_t i = 0; i < kIntegers; i += 256) {
    require(mob_fetch_add4(target, words + i, 1, &old), "mob_fetch_add4");
  }
  return {"accumulate_integers",
          "64 KiB of uint32 added to those of a local peer",
          {updates(
               "plain loop", [=] { add_integers(remote, local); }, 500),
           add_to("mob_accumulate", remote, false), add_to("mob_accumulate, by both", remote, true),
           add_to("mob_accumulate, a word of it updated, too", word, false),
           add_to("the same, by both", word, true),
           add_to("mob_accumulate, words everywhere updated, too", words, false)}};
}

}  // namespace

std::vector<Benchmark> atomic_benchmarks() {
  const mob_rank_t target = mob_size() - 1;
  auto* word = static_cast<uint64_t*>(shared_memory(sizeof(uint64_t), target));
  auto* remote = static_cast<double*>(shared_memory(kAreaBytes, target));
  auto* local = static_cast<double*>(private_memory(kAreaBytes));
  if (mob_rank() == target) std::memset(remote, 0, kAreaBytes);
  auto* integers = static_cast<uint32_t*>(shared_memory(kIntegers * 4, target));
  auto* with_word = static_cast<uint32_t*>(shared_memory(kIntegers * 4, target));
  auto* words = static_cast<uint32_t*>(shared_memory(kIntegers * 4, target));
  auto* numbers = static_cast<uint32_t*>(private_memory(kIntegers * 4));
  return {fetch_add(target, word), accumulate_rows(target, remote, local),
          accumulate_integers(target, integers, with_word, words, numbers)};
}

}  // namespace micro
