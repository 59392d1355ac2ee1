// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Recorded operations as text, which MOBIUS_TRACE writes and `mobius explain` reads.
//
//   put    AT BYTES FROM       AT: address in the target; FROM, TO: in the origin
//   get    AT BYTES TO
//   acc    AT BYTES FROM
//   fetch  AT BYTES FROM TO    an accumulate that fetches
//   signal AT
//   tell   BYTES               bytes for the target's engine
//   x N put …                  N operations, each behind the one before at both sides
//   fence                      no operation overtakes across it
//
// A put may end with "copied" (the queue owns its bytes), a get with "waited" (a thread waits for
// it) or "packed" (it is packed however long it is), both with "merged N" (N calls that became one
// operation when they were recorded).
// Numbers are decimal, or hexadecimal with 0x, and take a suffix K or M (powers of 1024). FROM and
// TO are optional: without them the bytes follow those of the operation before. No range may exceed
// the last address.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "schedule/plan.h"

namespace mobius::schedule {

// One line per operation or run of equal operations; `separator` between lines.
std::string write_queue(std::span<const Operation> queue, char separator);

// The same with its plan, as the members of a JSON object without braces: an event of MOBIUS_TRACE.
// `rma_bytes`: free issues of at least this size use remote memory access; 0: none do.
std::string write_recorded(int target, std::span<const Operation> queue, const Costs& costs,
                           Policy policy, const Plan& plan, size_t rma_bytes);

// Reads one line at a time. Addresses are only compared, never used.
class QueueReader {
 public:
  // False if the line is malformed; `problem` says why. Empty lines and comments (#) are accepted.
  bool add(const std::string& line);

  std::vector<Operation> queue;
  std::string problem;

 private:
  bool wrong(std::string text);

  bool is_fenced_ = false;
  uint64_t next_local_ = uint64_t{1} << 40;
};

}  // namespace mobius::schedule
