// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A micro-benchmark compares variants of one thing. The first is the limit, the reference for the
// others. In each round all ranks run every variant in turn, so that drift of the machine affects
// all alike.

#include <mobius/mobius.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace micro {

struct Variant {
  std::string name;
  // Runs in every rank, between two barriers. Returns nanoseconds of one operation; rank 0's
  // counts.
  std::function<double()> run;
};

struct Benchmark {
  std::string name;
  std::string what;
  std::vector<Variant> variants;  // the first is the limit
  // The variants are a sweep: the largest step between neighbours is reported.
  bool is_sweep = false;
};

// Each function makes its benchmarks; collective, because they allocate.
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

// Half a round trip of two threads of rank 0 that exchange two cache lines: the shortest time of a
// signal to another processor.
double two_cache_lines();

// Ends the job if a call fails that cannot fail here. Inlined, so that a checked call in a measured
// loop costs as much as in a program.
[[noreturn]] void give_up(mob_status_t status, const char* what);
inline void require(mob_status_t status, const char* what) {
  if (status != MOB_OK) [[unlikely]] {
    give_up(status, what);
  }
}

// Allocates `bytes` of shared memory in every rank, for ever; returns the address in `rank`.
void* shared_memory(size_t bytes, mob_rank_t rank);

// Allocates `bytes` of private memory, for ever, and touches every page.
void* private_memory(size_t bytes);

// Binds the calling thread to the `index`th processor that the process may use.
void bind_to_processor(int index);

inline double now_ns() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace micro
