// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What may be done where in one round.

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
  kReadMessage,  // one actor gets, and tells a thread of the owner, which may change it then
  kFlags         // several actors send to a thread of the owner, which waits for any of their words
};

// What excludes others from a chain.
enum class Lock { kMutex, kAccess, kWord };

// Words next to each other, each of which one actor changes after it has put something.
struct Flags {
  mob_compare_t compare = MOB_EQ;
  bool one_value = false;
  // By word; nobody sends to a word of sender -1, which then never compares as asked.
  std::vector<Actor> senders;
  std::vector<uint64_t> values;  // compared with
  std::vector<uint64_t> first;
  std::vector<uint64_t> last;
};

struct Segment {
  Use use = Use::kUntouched;
  mob_rank_t rank = 0;
  Range range;      // without the words
  size_t word = 0;  // of messages: the signal word, or the first of several
  Actor owner = 0;  // private: who; messages: who sends
  Actor told = 0;   // messages: who is told
  Lock lock = Lock::kMutex;
  mob_type_t type = MOB_INT64;  // flags: of the words
  mob_op_t op = MOB_SUM;
  std::vector<unsigned char> initial;  // written by its rank before the round; may be empty
  Flags flags;
  // Of a block that came into being in the midst of the program; -1: of the rank's part.
  int block = -1;
  std::vector<mob_rank_t> members;  // who knows where a block is
};

size_t flag_width(const Segment& segment);
// What the sender of one word puts.
Range flag_slice(const Segment& segment, size_t word);
// The words before the round.
std::vector<unsigned char> first_words(const Segment& segment);
// As the library compares.
bool compares(mob_compare_t compare, mob_type_t type, uint64_t word, uint64_t value);

std::string text_of(const Segment& segment);

}  // namespace random_program
