// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A random program: the operations of every thread of every rank, such that the outcome is
// determined.
//
// A program is a sequence of rounds with a synchronisation between them. In a round the memory of
// each rank is cut into segments. Each has a use that says which actors may do what there, so that
// no two accesses conflict. In the middle of a program the threads of one number meet those of
// other ranks, in collective calls, and for teams and memory that are made and freed (together.h).
// Every rank makes the same program from the same seed.

#include <mobius/mobius.h>

#include <string>
#include <vector>

#include "random/segment.h"
#include "random/together.h"

namespace random_program {

enum class What {
  kTransfer,
  kPutValue,
  kGetValue,
  kUpdate,    // an atomic update of a word that no other actor uses
  kChain,     // an atomic update of a word of a chain
  kComplete,  // completes every started transfer locally
  kFlush,
  kFlushLocal,
  kFence,
  kAwaitCompletion,  // waits for the completion counter
  kAwait,            // waits for data that another actor sends
  kAwaitFlags,       // waits for several words of such data at once
  kTogether          // with others
};

enum class Mode { kBlocking, kHandle, kImplicit };
enum class Update {
  kAdd,
  kAnd,
  kOr,
  kXor,
  kSwap,
  kCompareSwap,
  kCompareSwapLoop,
  kFetchOp,
  kLocked
};
enum class WaitSet { kAll, kAny, kSome, kTestAll, kTestAny, kTestSome };
enum class Completion { kEach, kReverse, kAll, kAny, kSome, kTest, kOriginCounter };

struct Step {
  What what = What::kFence;

  // Transfers.
  Plan plan;
  Mode mode = Mode::kBlocking;
  bool by_name = true;                 // by the call of that name, if there is one
  bool by_message = false;             // as the payload of a message, which its handler places
  std::vector<unsigned char> operand;  // the local side, instead of the actor's own memory
  size_t skew = 0;                     // first byte of it
  bool fetches_anything = false;       // the fetched value depends on the order
  bool has_signal = false;
  size_t signal = 0;
  uint64_t signal_value = 0;
  mob_signal_op_t signal_op = MOB_SIGNAL_SET;
  Actor told = -1;  // the actor whose target counter counts it
  bool counts_origin = false;
  bool counts_completion = false;

  // Values and words; the fetched value goes to `local`.
  mob_rank_t rank = 0;
  int block = -1;  // for transfers too: the block of the target, as in segments
  unsigned width = 8;
  size_t remote = 0;
  size_t local = 0;
  uint64_t value = 0;
  uint64_t expected = 0;
  Update update = Update::kAdd;
  Lock lock = Lock::kMutex;  // of locked updates
  bool tries = false;        // tries the lock until it has it
  size_t log = 0;            // for chains: where the actor stores the fetched value

  // Completion, and waiting.
  Completion completion = Completion::kAll;
  uint64_t count = 0;          // counted since the last wait
  std::vector<size_t> words;   // signal words of the caller's rank that must get the model's values
  std::vector<Range> regions;  // ranges of the caller's rank, which then have the model's contents
  WaitSet wait_set = WaitSet::kAll;
  size_t segment = 0;   // for flags: number of the segment in the round
  size_t together = 0;  // number in the lane
};

enum class Sync {
  kBarrier,
  kSignals,
  kCounters,
  kNotifications,
  kReduction,
  kMessages,
  kEpochFence,
  kExposure
};
inline constexpr size_t kSyncs = 8;

struct ActorSteps {
  std::vector<Step> before;  // steps before any actor is informed
  std::vector<Step> after;   // kAwait, and the steps after it
};

struct Round {
  std::vector<Segment> segments;
  std::vector<ActorSteps> actors;
  std::vector<Lane> lanes;  // by thread
  Sync sync = Sync::kBarrier;
};

struct Shape {
  mob_rank_t ranks = 1;
  int threads = 1;
  size_t part_bytes = 0;   // of every rank
  size_t local_bytes = 0;  // of every actor
  bool is_one_job = true;  // else one process' block of memory is not reached by all others

  int actors() const { return ranks * threads; }
  mob_rank_t rank_of(Actor actor) const { return actor / threads; }
  int lane_of(Actor actor) const { return actor % threads; }
  Actor actor_of(mob_rank_t rank, int lane) const { return rank * threads + lane; }
};

// Words in which every actor may store fetched values, per round.
inline constexpr size_t kLogWords = 64;

// The size to which a heap may grow: some blocks have a lead of up to a MiB.
inline constexpr size_t kMostHeapBytes = size_t{16} << 20;

struct Program {
  uint64_t seed = 0;
  Shape shape;
  std::vector<bool> own_context;  // by actor
  std::vector<Round> rounds;
};

Program generate(uint64_t seed, const Shape& shape);

std::string text_of(const Step& step);
void print(const Program& program);

}  // namespace random_program
