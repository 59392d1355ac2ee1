// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One job of the soak (main.cpp): what its ranks share, and the promises that they check.

#include <mobius/mobius.h>

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

namespace soak {

constexpr mob_rank_t kMostRanks = 6;
constexpr int kMostLanes = 3;  // threads of a rank that operate at a time
constexpr size_t kMostWriters = static_cast<size_t>(kMostRanks) * kMostLanes;
constexpr size_t kElements = 512;  // of an array of accumulates
constexpr size_t kGuardBytes = 64;
constexpr unsigned char kGuard = 0xFF;

using Random = std::mt19937_64;

// Prints a line that the runner counts as a failure. Every rank goes on, to say what else is wrong.
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...);
bool has_complained();

// A rank of the plan that dies or stops.
struct Fate {
  enum Kind { kKill, kSegv, kExit, kCode, kAbort, kStop };
  mob_rank_t rank;
  Kind kind;
  long after_us;   // from the moment at which the rank is ready for it
  long length_us;  // of a stop
};

// The command line: what the runner decided. Everything else follows from the seed.
struct Plan {
  uint64_t seed = 0;
  bool early = false;     // fates begin before mob_init()
  bool survived = false;  // the ranks that do not die go on to the end
  std::vector<Fate> fates;

  bool is_victim(mob_rank_t rank) const;
};

// Updates that several ranks make to one value of each rank: so many were begun and have ended.
enum Kind : unsigned { kSum, kDoubles, kIntegers, kExposed, kMutex, kLock, kAccess, kKinds };

// The memory that each rank shares with the others. The slots of the writers follow.
struct Block {
  uint64_t begun[kKinds][kMostRanks];
  uint64_t ended[kKinds][kMostRanks];
  uint64_t pairs[kKinds][2];  // equal whenever the lock that protects them is free
  mob_lock_t lock;
  uint64_t round;  // that its left neighbour has reached
  uint64_t signals[kMostWriters];
  uint64_t words[kMostWriters];
  alignas(64) uint64_t sum;
  alignas(64) double doubles[kElements];
  alignas(64) uint64_t integers[kElements];
};

struct Team {
  mob_team_t handle = MOB_TEAM_NONE;
  std::vector<mob_rank_t> members;  // by team rank
  bool lost = false;                // a collective call has failed

  mob_rank_t size() const { return static_cast<mob_rank_t>(members.size()); }
};

class Job {
 public:
  explicit Job(const Plan& plan);

  // Collective; false if a rank died meanwhile. Then nothing but mob_finalize() remains to do.
  bool set_up();
  void run();
  // The end of a rank that is to survive, once the others are dead: all values are right.
  void check_end();

  const Plan& plan() const { return plan_; }
  mob_rank_t rank() const { return rank_; }
  mob_rank_t size() const { return size_; }
  int lanes() const { return lanes_; }
  size_t slot_bytes() const { return slot_bytes_; }
  // Any rank may die: a death ends the job, or ranks die before they know each other.
  bool is_lenient() const { return plan_.early || !plan_.survived; }
  bool is_elsewhere(mob_rank_t rank) const { return elsewhere_[static_cast<size_t>(rank)]; }
  // Whether an operation may fail with MOB_ERR_PEER. Some need a living target; all need one that
  // is on this host or alive.
  bool may_fail(mob_rank_t target, bool needs_target) const;
  // From now on flushes of the target may report that a message could not be delivered.
  void note_message(mob_rank_t target) { has_message_[static_cast<size_t>(target)] = true; }
  bool may_lose(const Team& team) const;
  // Whether another thread may take the errors of what this one has started.
  bool shares_errors() const { return lanes_ > 1 && !own_contexts_; }

  Block& block(mob_rank_t rank) const { return *blocks_[static_cast<size_t>(rank)]; }
  Block& here() const { return *own_; }
  // Addresses in `rank`: a writer's slot, in the block, in exposed and in remapped memory.
  unsigned char* slot(mob_rank_t rank, size_t writer) const;
  unsigned char* exposed_slot(mob_rank_t rank, size_t writer) const;
  unsigned char* remapped_slot(mob_rank_t rank, size_t writer) const;
  double* exposed_doubles(mob_rank_t rank) const;
  // Writers are the lanes of all ranks.
  size_t writers() const { return static_cast<size_t>(size_) * static_cast<size_t>(lanes_); }
  size_t writer(int lane) const {
    return static_cast<size_t>(rank_) * static_cast<size_t>(lanes_) + static_cast<size_t>(lane);
  }
  mob_rank_t rank_of_writer(size_t writer) const {
    return static_cast<mob_rank_t>(writer / static_cast<size_t>(lanes_));
  }
  mob_mutexes_t mutexes() const { return mutexes_; }
  mob_access_t access() const { return access_; }
  mob_epoch_t epoch() const { return epoch_; }
  std::vector<Team>& teams() { return teams_; }

  void begin(Kind kind, mob_rank_t target) { count(here().begun[kind][target]); }
  void end(Kind kind, mob_rank_t target) { count(here().ended[kind][target]); }

 private:
  static void count(uint64_t& word) { __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST); }
  size_t stride() const { return slot_bytes_ + kGuardBytes; }
  size_t area_bytes() const { return kGuardBytes + writers() * stride(); }
  bool survivors_are_all() const { return teams_[1].size() == size_; }
  bool make_team(std::vector<mob_rank_t> members);
  bool make_teams();
  bool expose();
  bool meet_before_deaths();
  bool ok(mob_status_t status, const char* what) const;
  void await_deaths();
  void free_all();
  void check_slots(const char* what, const unsigned char* area) const;
  void check_bounds(const char* what, Kind kind, uint64_t least, uint64_t most) const;

  const Plan plan_;
  Random random_;
  mob_rank_t rank_ = -1;
  mob_rank_t size_ = 0;
  int lanes_ = 1;
  bool own_contexts_ = false;
  int rounds_ = 0;
  size_t slot_bytes_ = 0;
  std::vector<bool> elsewhere_;
  std::atomic<bool> has_message_[kMostRanks] = {};
  std::vector<Block*> blocks_;  // addresses in their owners
  Block* own_ = nullptr;
  mob_mem_t mem_ = nullptr;
  unsigned char* private_ = nullptr;   // exposed
  unsigned char* remapped_ = nullptr;  // exposed, with its pages moved
  std::vector<unsigned char*> privates_;
  std::vector<unsigned char*> remappeds_;
  mob_exposed_t exposures_[2] = {};
  mob_mutexes_t mutexes_ = nullptr;
  mob_access_t access_ = nullptr;
  mob_epoch_t epoch_ = nullptr;
  std::vector<Team> teams_;  // the world, the survivors, and others
  friend class Lane;
};

// A thread of a rank that operates on memory of all ranks, and what it knows of that memory.
class Lane {
 public:
  Lane(Job& job, int index, uint64_t seed);
  // Some operations, on any ranks; in a thread of its own, with a context of its own.
  void run(size_t operations, mob_context_t context);
  void step();
  // Checks that each target holds the bytes that this lane put there last.
  void check_end();

 private:
  struct Place {
    unsigned char* address;
    std::vector<unsigned char>* copy;  // its contents as this lane has written them
    bool needs_target;
  };
  uint64_t below(uint64_t limit) { return random_() % limit; }
  mob_rank_t any_rank() { return static_cast<mob_rank_t>(below(job_.size())); }
  bool good(mob_status_t status, mob_rank_t target, bool needs_target, const char* what);
  Place any_place(mob_rank_t target);
  void fill(unsigned char* bytes, size_t count);

  void contiguous();
  void handles();
  void boxes();
  void fetch_add();
  void swap();
  void accumulate();
  void accumulate_exposed();
  void words();
  void signal();
  void mutex();
  void lock_word();
  void access();
  void message();
  void own_memory();
  void own_exposure();
  template <typename Unlock>
  void change_pair(Kind kind, mob_rank_t target, int recovered, Unlock unlock);

  Job& job_;
  const int index_;
  const size_t writer_;
  Random random_;
  // By target: copies of this lane's slots. Empty once the target has failed.
  std::vector<std::vector<unsigned char>> copies_[3];
  std::vector<uint64_t> word_;
  std::vector<uint64_t> signalled_;
  std::vector<uint32_t> sent_;
  std::vector<unsigned char> mine_;
  std::vector<unsigned char> back_;
};

// The bytes that a writer may have written: its number, and some bits.
inline unsigned char byte_of(size_t writer, uint64_t bits) {
  return static_cast<unsigned char>((writer + 1) << 3 | (bits & 7));
}
inline bool is_byte_of(size_t writer, unsigned char byte) {
  return byte == 0 || static_cast<size_t>(byte >> 3) == writer + 1;
}

bool register_handlers(Job& job);
// One collective call, or some, by a team that the round chooses.
void step_together(Job& job, uint64_t round);

}  // namespace soak
