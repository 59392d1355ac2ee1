// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::mpi {

// The pauses of a thread that looks again and again for what others do. It spins, yields, then
// sleeps, and lets both libraries go on meanwhile: those that it waits for may wait for what this
// process has to do.
class Pause {
 public:
  // True now and then: it is time to look whether the others are alive.
  bool once();

 private:
  static constexpr unsigned kSpins = 200;
  static constexpr unsigned kYields = 200;
  static constexpr long kLongestNapNs = 1'000'000;
  unsigned rounds_ = 0;
  long nap_ns_ = 20'000;
};

}  // namespace mobius::mpi
