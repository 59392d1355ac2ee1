// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Decides in which order, and in how few messages, the recorded operations of one target are sent.
//
// make_plan() is a pure function of the queue, of the link's costs, and of the policy. A plan may
// let a get overtake operations that change memory, or be overtaken by them, if they share no byte
// on either side and no fence is between them. It may put several operations into one message, and
// merge neighbouring or regularly strided ones into one transfer. Operations that change memory
// never overtake each other, nor do gets, so ordered accumulates stay ordered.
//
// Compare W. Huang et al., "Scheduling of MPI-2 One Sided Operations over InfiniBand" (paper 2);
// the policies are its schemes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "schedule/operation.h"

namespace mobius::schedule {

// In the order of the choices of MOBIUS_SCHEDULE.
enum class Policy : uint8_t {
  kAdaptive,    // whichever of the others pays
  kFifo,        // one message per operation, in the order of the calls
  kInterleave,  // gets alternate with the others to use both directions of the link
  kGetsFirst,   // a get does not wait behind puts
  kAggregate    // in order, many in one message, neighbours merged
};
inline constexpr std::string_view kPolicyNames[] = {"adaptive", "fifo", "interleave", "gets-first",
                                                    "aggregate"};

// Costs of one link.
struct Costs {
  double latency_ns = 10'000;  // from sending a small message until it is served
  double message_ns = 1'500;   // of one more message, at the busier side
  double out_bytes_per_ns = 1.0;
  double in_bytes_per_ns = 1.0;
  double copy_bytes_per_ns = 5.0;    // into and out of messages
  size_t message_bytes = 48 * 1024;  // capacity of a packed message, and of its answer
};

// The largest operation that is cheaper packed (which copies it twice) than alone.
size_t most_packed_bytes(const Costs& costs);

// The costs if packed operations need no awaited answer, while an operation sent alone still does.
Costs without_answers(const Costs& costs);

// Operations that are one transfer: a contiguous range of the target, equal rows at regular
// distances, or scattered equal rows. Scattered rows are not merged, but described and carried out
// together.
struct Piece {
  uint32_t first = 0;  // index in Plan::order
  uint32_t count = 0;
  uint32_t calls = 0;  // number of calls
  uint32_t rows = 1;
  bool is_local_contiguous = false;  // contiguous at the origin, too
  size_t row_bytes = 0;
  int64_t stride = 0;        // from row to row at the target
  uint8_t offset_bytes = 0;  // scattered rows: bytes of an offset from the lowest
  uint64_t lowest = 0;       // … and the range of addresses that they lie in
  uint64_t highest = 0;

  bool is_scattered() const { return offset_bytes != 0; }
  size_t bytes() const { return row_bytes * rows; }
};

// One message, or one transfer outside of messages.
struct Issue {
  bool packed = false;
  uint32_t first = 0;  // index in Plan::pieces
  uint32_t count = 0;
  uint32_t operations = 0;  // number of calls
  size_t answer_bytes = 0;  // data in the answer, if packed
  bool is_free = false;     // no later issue has to come after it
};

// Savings by plans.
struct Savings {
  uint64_t merged = 0;     // operations merged into another one's transfer
  uint64_t packed = 0;     // operations that share a message
  uint64_t reordered = 0;  // operations that a later one overtakes
  uint64_t messages = 0;   // issued

  void add(const Savings& other) {
    merged += other.merged;
    packed += other.packed;
    reordered += other.reordered;
    messages += other.messages;
  }
};

struct Plan {
  std::vector<uint32_t> order;  // each index of the queue once
  std::vector<Piece> pieces;    // cover the order, in order
  std::vector<Issue> issues;    // cover the pieces, in order
  Savings savings;
  const char* why = "";  // reason for the order, for people

 private:
  friend class Planner;
  std::vector<uint32_t> changes_;  // indices of one segment
  std::vector<uint32_t> gets_;
  std::vector<uint32_t> segments_;  // index in the order where each begins
};

// Fills `plan`, reusing its memory.
void make_plan(std::span<const Operation> queue, const Costs& costs, Policy policy, Plan* plan);

}  // namespace mobius::schedule
