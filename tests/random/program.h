// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A random program: what every thread of every rank does, such that the outcome is determined.
//
// A program is a sequence of rounds with a synchronisation between. In a round the memory of each
// rank is cut into segments, each with a use that says who may do what there, so that no two
// accesses conflict. In its midst the threads of one number meet those of other ranks, in
// collective calls, and for teams and memory that come and go (together.h). Every rank makes the
// same program from the same seed.

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
  kUpdate,    // an atomic on a word that nobody else uses
  kChain,     // an atomic on a word of a chain
  kComplete,  // every started transfer, locally
  kFlush,
  kFlushLocal,
  kFence,
  kAwaitCompletion,  // the completion counter
  kAwait,            // what one is told of
  kAwaitFlags,       // several words of it at once
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
  bool by_name = true;                 // through the call of that name, if there is one
  bool by_message = false;             // as the payload of a message, which its handler places
  std::vector<unsigned char> operand;  // the local side, instead of the actor's own memory …
  size_t skew = 0;                     // … from this byte on
  bool fetches_anything = false;       // what it fetches depends on the order
  bool has_signal = false;
  size_t signal = 0;
  uint64_t signal_value = 0;
  mob_signal_op_t signal_op = MOB_SIGNAL_SET;
  Actor told = -1;  // whose target counter counts it
  bool counts_origin = false;
  bool counts_completion = false;

  // Values and words; what is fetched goes to `local`.
  mob_rank_t rank = 0;
  int block = -1;  // of transfers, too: what the target is in, as in segments
  unsigned width = 8;
  size_t remote = 0;
  size_t local = 0;
  uint64_t value = 0;
  uint64_t expected = 0;
  Update update = Update::kAdd;
  Lock lock = Lock::kMutex;  // of locked updates
  bool tries = false;        // for the lock, until it has it
  size_t log = 0;            // of chains: where the actor notes what it fetched

  // Completion, and waiting.
  Completion completion = Completion::kAll;
  uint64_t count = 0;          // counted since the last wait
  std::vector<size_t> words;   // signal words of the own rank that must become what the model says
  std::vector<Range> regions;  // of the own rank, which then hold what the model says
  WaitSet wait_set = WaitSet::kAll;
  size_t segment = 0;   // number in the round, of flags
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
  std::vector<Step> before;  // … anybody is told of anything
  std::vector<Step> after;   // kAwait, and what may follow it
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

  int actors() const { return ranks * threads; }
  mob_rank_t rank_of(Actor actor) const { return actor / threads; }
  int lane_of(Actor actor) const { return actor % threads; }
  Actor actor_of(mob_rank_t rank, int lane) const { return rank * threads + lane; }
};

// Words that every actor may note fetched values in, per round.
inline constexpr size_t kLogWords = 64;

// What a heap may grow to: some blocks have a lead of up to a MiB.
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
