// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Joint operations of several ranks in the middle of a program: collective calls, and teams and
// memory that are made and freed.
//
// A lane is the threads of one number, one of each rank. They have a team of their own, so that
// several lanes may make collective calls at once, each in one order.

#include <mobius/mobius.h>

#include <string>
#include <vector>

#include "random/segment.h"

namespace random_program {

using Bytes = std::vector<unsigned char>;

enum class Call {
  kBarrier,
  kBroadcast,
  kReduce,
  kAllreduce,
  kScan,
  kExscan,
  kGather,
  kGatherv,
  kAllgather,
  kAllgatherv,
  kScatter,
  kAlltoall,
  kAlltoallv,
  kSplit,
  kFreeTeam,
  kCreateHeap,
  kDestroyHeap,
  kAllocate,
  kResize,
  kHandOver,  // others use a block from now on
  kLook,      // every actor compares its block
  kDrop,
  kExclude  // an actor with a lock excludes the others
};

// A block of every member of a team, which another actor than its owner uses.
enum class Memory { kHeap, kLocal, kExposed, kAllocated };

// How a block of a heap is made or freed.
enum class Manner { kPlain, kZeroed, kAligned, kRealloc };

enum class SplitBy { kColour, kStride, kLists };

// The place of a member's bytes for a collective call.
struct Buffer {
  enum Place { kPrivate, kShared, kItsOwn } place = kPrivate;
  size_t at = 0;  // in the actor's own memory, or bytes after an aligned address
};

struct Together {
  Call call = Call::kBarrier;
  int number = 0;  // in the program
  int lane = 0;
  int team = 0;                     // number in the program; those of lanes come first
  std::vector<mob_rank_t> members;  // of the team, by their rank in the job
  uint64_t seed = 0;                // of the members' inputs

  // Data.
  mob_rank_t root = 0;  // in the team
  size_t count = 0;     // elements, or bytes of a block
  bool user = false;    // an operation of the user's
  size_t element = 1;   // its bytes
  mob_type_t type = MOB_INT64;
  mob_op_t op = MOB_SUM;
  bool in_place = false;
  // For calls with different sizes: from each member, or from each to each.
  std::vector<size_t> counts;
  std::vector<Buffer> in;  // by member
  std::vector<Buffer> out;

  // Teams.
  SplitBy by = SplitBy::kColour;
  std::vector<int> made;                       // numbers of the new teams
  std::vector<std::vector<mob_rank_t>> lists;  // their members, by rank in the parent
  std::vector<int> colours;                    // of each member of the parent
  std::vector<int> keys;
  mob_rank_t stride = 1;

  // Memory.
  int heap = -1;  // number in the program; those of lanes come first
  size_t heap_bytes = 0;
  size_t most_heap_bytes = 0;
  size_t used = 0;  // bytes in blocks of the heap, afterwards
  int block = -1;
  Memory memory = Memory::kHeap;
  Manner manner = Manner::kPlain;
  size_t alignment = 0;
  size_t lead = 0;                // bytes of the block before the used ones
  size_t bytes = 0;               // used bytes
  size_t before = 0;              // used bytes so far
  std::vector<int> lost;          // blocks that are freed with a heap
  std::vector<Segment> segments;  // the actors that use the block from now on, and their uses

  // Locks.
  Lock lock = Lock::kMutex;
  mob_rank_t host = 0;
  mob_rank_t holder = 0;  // in the team
  mob_access_mode_t held = MOB_EXCLUSIVE;
  mob_access_mode_t tried = MOB_EXCLUSIVE;

  size_t size() const { return members.size(); }
  // The rank in the team of a rank of the job; -1 if it is not a member.
  mob_rank_t member(mob_rank_t rank) const;
};

struct Lane {
  std::vector<Together> steps;
  size_t before = 0;            // number of those before any actor is informed
  std::vector<Segment> blocks;  // blocks that exist when the round begins
};

bool moves_data(Call call);
bool reduces(Call call);
// Whether an input may be a part of the output (for a scatter, the other way round).
bool may_be_in_place(Call call);
bool has_root(Call call);

// Sizes of a member's input and output, and the place of its input in the output for calls in
// place.
size_t input_bytes(const Together& together, size_t member);
size_t output_bytes(const Together& together, size_t member);
size_t place_in_output(const Together& together, size_t member);
// For calls with different sizes: places of the blocks of a member's list, in any order with gaps.
std::vector<size_t> displacements(const Together& together, size_t member, bool output);
std::vector<size_t> counts_of(const Together& together, size_t member, bool output);

// The input of a member that has none of its own.
Bytes made_input(const Together& together, size_t member);
// Fresh bytes of a block.
void fill_block(const Together& together, mob_rank_t rank, unsigned char* bytes);
inline constexpr unsigned char kUnwritten = 0xA5;

// Computes the outputs of all members; `outputs` hold their former contents.
void combine_all(const Together& together, const std::vector<Bytes>& inputs,
                 std::vector<Bytes>* outputs);

// The user's operation: composes functions, so that the order matters. The argument is the address
// of the size of an element.
void compose(void* accumulated, const void* in, size_t count, void* argument);

std::string text_of(const Together& together);

}  // namespace random_program
