// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Recorded operations in words: what MOBIUS_TRACE writes of a queue, and `mobius explain` reads.
//
//   put    AT BYTES FROM       AT: where in the target's memory; FROM, TO: in the origin's
//   get    AT BYTES TO
//   acc    AT BYTES FROM
//   fetch  AT BYTES FROM TO    an accumulate that fetches
//   signal AT
//   tell   BYTES               for the engine of the target
//   x N put …                  the operation N times, each behind the one before on both sides
//   fence                      nothing passes
//
// A put may end with "copied" (its bytes are the queue's), a get with "waited" (somebody waits for
// it) or "packed" (it goes with others, however long), both with "merged N" (N calls asked for it,
// and became one while they were recorded).
// Numbers are decimal, or hexadecimal with 0x, and take a suffix K or M (powers of 1024). FROM and
// TO may lack: then they lie behind those of the operation before. No memory goes beyond the last
// address.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/plan.h"

namespace mobius::schedule {

// One line per operation or run of them; with `separator` between.
std::string write_queue(std::span<const Operation> queue, char separator);

// The same with its plan, as the members of a JSON object, without braces: an event of
// MOBIUS_TRACE. `rma_bytes`: from so many on what is free goes by remote memory access; 0: nothing
// does.
std::string write_recorded(int target, std::span<const Operation> queue, const Costs& costs,
                           Policy policy, const Plan& plan, size_t rma_bytes);

// Of one line at a time. Addresses are only compared, never used.
class QueueReader {
 public:
  // False if the line makes no sense, and `problem` says why; "" and comments (#) do.
  bool add(const std::string& line);

  std::vector<Operation> queue;
  std::string problem;

 private:
  bool wrong(std::string text);

  bool is_fenced_ = false;
  uint64_t next_local_ = uint64_t{1} << 40;
};

}  // namespace mobius::schedule
