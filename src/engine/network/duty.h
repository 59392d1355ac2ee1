// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace mobius::engine {

// The next duty of the network thread. It serves only when no thread of the program would: each
// round takes a processor, mostly that of a polling thread.
enum class Duty {
  kRest,             // the program alone serves (MOBIUS_PROGRESS=poll)
  kNapBetweenWaits,  // a thread of the program polls, and its waits are short
  kNapInWait,  // a thread of the program polls in one long wait and wakes this thread at its end
  kNapForProgram,  // the program polls or waits often, and will again
  kNapAfterStart,  // the program starts transfers, and goes on with that or waits for them
  kServe,
};

// The program's activity since the network thread's last round.
struct ProgramActivity {
  bool rests = false;         // the settings leave progress to the program
  bool is_polled = false;     // a thread of the program polls now, and is awake
  bool has_sleepers = false;  // a thread of the program sleeps in a wait
  bool has_polled = false;
  bool has_started = false;  // transfers with another host
  uint32_t waits = 0;        // that began
};

// A program that has waited this often since the last round will wait again, and then serves
// itself.
inline constexpr uint32_t kManyWaits = 4;

constexpr Duty choose(const ProgramActivity& seen) {
  if (seen.rests) return Duty::kRest;
  if (seen.is_polled) return seen.waits != 0 ? Duty::kNapBetweenWaits : Duty::kNapInWait;
  // A sleeping thread leaves the network to this one, whatever the program has done before.
  if (seen.has_sleepers) return Duty::kServe;
  if (seen.has_polled || seen.waits >= kManyWaits) return Duty::kNapForProgram;
  return seen.has_started ? Duty::kNapAfterStart : Duty::kServe;
}

}  // namespace mobius::engine
