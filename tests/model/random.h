// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Random numbers that are the same on every machine, so that a seed names a test.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mobius_test {

// SplitMix64 (Steele, Lea, Flood 2014): any seed is good.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // 0 … limit - 1; 0 for a limit of 0.
  size_t below(size_t limit) { return limit == 0 ? 0 : next() % limit; }
  size_t between(size_t least, size_t most) { return least + below(most - least + 1); }
  bool chance(unsigned percent) { return below(100) < percent; }

  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

  template <typename T>
  void shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }

  void fill(unsigned char* to, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) to[i] = static_cast<unsigned char>(next() >> 32);
  }

 private:
  uint64_t state_;
};

}  // namespace mobius_test
