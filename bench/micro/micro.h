// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A micro-benchmark compares variants of one thing, the first being the limit that the others are
// measured against. All ranks run every variant together, in turn, round after round, so that drift
// of the machine hits all alike.

#include <mobius/mobius.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace micro {

struct Variant {
  std::string name;
  // Runs in every rank, between two barriers. Rank 0's result counts: nanoseconds of one operation.
  std::function<double()> run;
};

struct Benchmark {
  std::string name;
  std::string what;
  std::vector<Variant> variants;  // the first is the limit
  // The variants are neighbours of each other in a sweep: the worst step between two is told.
  bool is_sweep = false;
};

// Each makes its benchmarks; collective, because they allocate.
std::vector<Benchmark> value_benchmarks();
std::vector<Benchmark> copy_benchmarks();
std::vector<Benchmark> strided_benchmarks();
std::vector<Benchmark> atomic_benchmarks();
std::vector<Benchmark> exposed_benchmarks();
std::vector<Benchmark> neighbour_benchmarks();
std::vector<Benchmark> one_way_benchmarks();
std::vector<Benchmark> message_benchmarks();
std::vector<Benchmark> barrier_benchmarks();
std::vector<Benchmark> sync_benchmarks();
std::vector<Benchmark> lock_benchmarks();

// Half a round trip of two threads of rank 0 that exchange two cache lines: the least that telling
// another processor something takes.
double two_cache_lines();

// Ends the job when a call that cannot fail here does. Inlined, so that a checked call in a
// measured loop costs what it costs a program.
[[noreturn]] void give_up(mob_status_t status, const char* what);
inline void require(mob_status_t status, const char* what) {
  if (status != MOB_OK) [[unlikely]] {
    give_up(status, what);
  }
}

// `bytes` of shared memory in every rank, for the life of the process, and its address in `rank`.
void* shared_memory(size_t bytes, mob_rank_t rank);

// `bytes` of memory of this process alone, for its life, every page touched.
void* private_memory(size_t bytes);

// Binds the calling thread to the processor that is `index`th of those the process may use.
void bind_to_processor(int index);

inline double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace micro
