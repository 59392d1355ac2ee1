// SPDX-License-Identifier: BSD-3-Clause
#include "micro.h"

namespace micro {
namespace {

double barriers() {
  const int turns = 4000;
  for (int i = 0; i < turns / 10; ++i) require(mob_barrier(), "mob_barrier");
  const double start = now_ns();
  for (int i = 0; i < turns; ++i) require(mob_barrier(), "mob_barrier");
  return (now_ns() - start) / turns;
}

}  // namespace

std::vector<Benchmark> barrier_benchmarks() {
  return {{"barrier",
           "a barrier of " + std::to_string(mob_size()) + " processes",
           {{"mob_barrier", barriers}}}};
}

}  // namespace micro
