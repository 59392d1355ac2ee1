// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// In which order, and in how few messages, recorded operations of one target go.
//
// A pure function of the queue, of what things cost on the link, and of the policy. What a plan may
// do: let a get overtake what changes memory, or be overtaken, where they have no byte in common
// on either side and no fence stands between; put several operations into one message; make one
// transfer of neighbouring or regularly strided pieces. What changes memory is never overtaken by
// something else that does, nor a get by a get, so ordered accumulates stay ordered.
//
// Compare W. Huang et al., "Scheduling of MPI-2 One Sided Operations over InfiniBand" (paper 2),
// whose schemes the policies are.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "schedule/operation.h"

namespace mobius::schedule {

// In the order of the choices of MOBIUS_SCHEDULE.
enum class Policy : uint8_t {
  kAdaptive,    // what of the following pays
  kFifo,        // every operation a message, as they came
  kInterleave,  // gets and the others alternate, so that both directions of the link work
  kGetsFirst,   // a get does not wait behind puts
  kAggregate    // as they came, many in one message, pieces merged
};
inline constexpr std::string_view kPolicyNames[] = {"adaptive", "fifo", "interleave", "gets-first",
                                                    "aggregate"};

// Of one link.
struct Costs {
  double latency_ns = 10'000;  // from sending a small message until it is served
  double message_ns = 1'500;   // of one more message, at the side that has more of it
  double out_bytes_per_ns = 1.0;
  double in_bytes_per_ns = 1.0;
  double copy_bytes_per_ns = 5.0;    // into and out of messages
  size_t message_bytes = 48 * 1024;  // most that a packed message, or its answer, may hold
};

// The largest operation that is cheaper packed with others, which copies it twice, than alone.
size_t most_packed_bytes(const Costs& costs);

// The same where nobody waits for the answer to what is packed, but for that of what goes alone.
Costs without_answers(const Costs& costs);

// Operations that are one transfer: a stretch of the target, equal rows at regular distances, or
// equal rows anywhere, which are not merged but told of and carried out at once.
struct Piece {
  uint32_t first = 0;  // of Plan::order
  uint32_t count = 0;
  uint32_t calls = 0;  // that asked for them
  uint32_t rows = 1;
  bool is_local_stretch = false;  // their bytes at the origin follow each other, too
  size_t row_bytes = 0;
  int64_t stride = 0;        // from row to row at the target
  uint8_t offset_bytes = 0;  // of rows anywhere: what tells any of them from the lowest
  uint64_t lowest = 0;       // … and between which addresses they lie
  uint64_t highest = 0;

  bool is_scattered() const { return offset_bytes != 0; }
  size_t bytes() const { return row_bytes * rows; }
};

// One message, or one transfer on its own.
struct Issue {
  bool packed = false;
  uint32_t first = 0;  // of Plan::pieces
  uint32_t count = 0;
  uint32_t operations = 0;  // in them, as they were asked for
  size_t answer_bytes = 0;  // of what it reads, if packed
  bool is_free = false;     // nothing that the plan has behind it has to come after it
};

// What a plan saved.
struct Savings {
  uint64_t merged = 0;     // operations that became part of another one's transfer
  uint64_t packed = 0;     // operations that share a message with others
  uint64_t reordered = 0;  // operations before which a later one is issued
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
  std::vector<Piece> pieces;    // each place of the order once, in order
  std::vector<Issue> issues;    // each piece once, in order
  Savings savings;
  const char* why = "";  // the order is this one, for people

 private:
  friend class Planner;
  std::vector<uint32_t> changes_;  // of one segment
  std::vector<uint32_t> gets_;
  std::vector<uint32_t> segments_;  // where in the order they begin
};

// Fills `plan`, whose memory is used again.
void make_plan(std::span<const Operation> queue, const Costs& costs, Policy policy, Plan* plan);

}  // namespace mobius::schedule
