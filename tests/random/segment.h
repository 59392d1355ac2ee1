// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The permitted accesses to memory in one round.

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
  kReadOnly,     // every actor gets
  kPrivate,      // one actor does all kinds of operations, on bytes
  kElements,     // one actor accumulates elements of one type, by any operation
  kShared,       // all actors accumulate by one operation, in any order
  kSumChain,     // all actors add to words and fetch; the fetched values form a chain
  kSwapChain,    // all actors swap unique values into words
  kLockedChain,  // all actors add to words by getting and putting, under a lock
  kMessage,      // one actor sends to a thread of the owner, which may use it after it was informed
  kReadMessage,  // one actor gets, and informs a thread of the owner, which may then change it
  kFlags         // several actors send to a thread of the owner, which waits for any of their words
};

// The lock that excludes other actors from a chain.
enum class Lock { kMutex, kAccess, kWord };

// Adjacent words; one actor changes each word after it has put something.
struct Flags {
  mob_compare_t compare = MOB_EQ;
  bool one_value = false;
  // By word. A word with sender -1 never changes, and its comparison never holds.
  std::vector<Actor> senders;
  std::vector<uint64_t> values;  // compared with
  std::vector<uint64_t> first;
  std::vector<uint64_t> last;
};

struct Segment {
  Use use = Use::kUntouched;
  mob_rank_t rank = 0;
  Range range;      // without the words
  size_t word = 0;  // for messages: the signal word, or the first of several
  Actor owner = 0;  // private: the actor; messages: the sender
  Actor told = 0;   // messages: the informed actor
  Lock lock = Lock::kMutex;
  mob_type_t type = MOB_INT64;  // flags: type of the words
  mob_op_t op = MOB_SUM;
  std::vector<unsigned char> initial;  // written by its rank before the round; may be empty
  Flags flags;
  // The block, if it was made in the middle of the program; -1: the rank's part.
  int block = -1;
  std::vector<mob_rank_t> members;  // the ranks that know the block's place
};

size_t flag_width(const Segment& segment);
// The range that the sender of one word puts.
Range flag_slice(const Segment& segment, size_t word);
// The words before the round.
std::vector<unsigned char> first_words(const Segment& segment);
// As the library compares.
bool compares(mob_compare_t compare, mob_type_t type, uint64_t word, uint64_t value);

std::string text_of(const Segment& segment);

}  // namespace random_program
