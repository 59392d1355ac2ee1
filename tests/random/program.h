// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// A random program: what every thread of every rank does, such that the outcome is determined.
//
// A program is a sequence of rounds with a synchronisation between. In a round the memory of each
// rank is cut into segments, each with a use that says who may do what there, so that no two
// accesses conflict. Every rank makes the same program from the same seed.

#include <mobius/mobius.h>

#include <string>
#include <vector>

#include "model/plan.h"

namespace random_program {

using mobius_test::Plan;
using mobius_test::Range;

// A thread of a rank: number rank × threads + thread.
using Actor = int;

enum class Use {
  kUntouched,
  kReadOnly,     // anyone gets
  kPrivate,      // one actor does what it likes, with bytes
  kElements,     // one actor accumulates elements of one type, by any operation
  kShared,       // everyone accumulates by one operation, in any order
  kSumChain,     // everyone adds to words and fetches: who fetched what is a chain
  kSwapChain,    // everyone swaps unique values into words
  kLockedChain,  // everyone adds to words by getting and putting, under a lock
  kMessage,      // one actor sends to a thread of the owner, which may use it after it was told
  kReadMessage   // one actor gets, and tells a thread of the owner, which may change it then
};

struct Segment {
  Use use = Use::kUntouched;
  mob_rank_t rank = 0;
  Range range;             // without the word
  size_t word = 0;         // of messages: the signal word
  Actor owner = 0;         // private: who; messages: who sends
  Actor told = 0;          // messages: who is told
  bool by_access = false;  // locked chains: under the rank's access lock, not its mutex
  mob_type_t type = MOB_INT64;
  mob_op_t op = MOB_SUM;
  std::vector<unsigned char> initial;  // written by its rank before the round; may be empty
};

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
  kAwait             // what one is told of
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
  unsigned width = 8;
  size_t remote = 0;
  size_t local = 0;
  uint64_t value = 0;
  uint64_t expected = 0;
  Update update = Update::kAdd;
  bool by_access = false;  // locked updates: which lock
  size_t log = 0;          // of chains: where the actor notes what it fetched

  // Completion, and waiting.
  Completion completion = Completion::kAll;
  uint64_t count = 0;          // counted since the last wait
  std::vector<size_t> words;   // signal words of the own rank that must become what the model says
  std::vector<Range> regions;  // of the own rank, which then hold what the model says
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
  Sync sync = Sync::kBarrier;
};

struct Shape {
  mob_rank_t ranks = 1;
  int threads = 1;
  size_t part_bytes = 0;   // of every rank
  size_t local_bytes = 0;  // of every actor

  int actors() const { return ranks * threads; }
  mob_rank_t rank_of(Actor actor) const { return actor / threads; }
};

// Words that every actor may note fetched values in, per round.
inline constexpr size_t kLogWords = 64;

struct Program {
  uint64_t seed = 0;
  Shape shape;
  std::vector<bool> own_context;  // by actor
  std::vector<Round> rounds;
};

Program generate(uint64_t seed, const Shape& shape);

std::string text_of(const Segment& segment);
std::string text_of(const Step& step);
void print(const Program& program);

}  // namespace random_program
