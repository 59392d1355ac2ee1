// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Runs random programs in one rank, between mob_init() and mob_finalize().

#include <atomic>
#include <barrier>
#include <string>
#include <vector>

#include "random/actor.h"
#include "random/model.h"
#include "random/program.h"

namespace random_program {

struct Options {
  uint64_t seed = 1;  // of the first program; the others follow
  uint64_t programs = 1;
  int threads = 1;
  bool verbose = false;
  bool exposed = false;  // targets are private memory that is exposed, not allocations
  bool moved = false;    // the same, with pages that are moved
  bool heap = false;     // targets are blocks of a symmetric heap
  bool ranks_are_threads = false;
  bool on_other_team = false;  // than the world (multi/joined_team.h), half of it of another one
  std::string command;         // command that runs one program again, without its seed
};

// Reads the options of a command. False, with a message, if an argument is unknown.
bool parse(int argc, char** argv, Options* options);

class RankRunner {
 public:
  // `team` has all ranks, in the order of their numbers, from 0.
  explicit RankRunner(const Options& options, mob_team_t team = MOB_TEAM_WORLD);
  ~RankRunner();
  RankRunner(const RankRunner&) = delete;
  RankRunner& operator=(const RankRunner&) = delete;

  // Runs all programs with the calling thread and the others that it needs.
  void run();

 private:
  struct Board;  // the addresses that a rank shows to the others

  void run_actor(int thread);
  void run_round(int thread, ActorRunner& actor, const Round& round);
  void prepare(uint64_t number);
  void announce(const std::string& seed) const;
  void make_lanes();
  void free_lanes();
  void make_heaps();
  void free_heaps();
  void make_memory();
  void free_memory();
  void gather();
  void barrier();
  bool is_on_one_host() const;
  void synchronise(Sync sync);
  void synchronise_by_signals();
  void synchronise_by_counters();
  void synchronise_by_notifications();
  void synchronise_by_reduction();
  void synchronise_by_messages();
  void synchronise_by_exposure();
  void write_initial(const Round& round);
  void check_part(const Round& round);
  void check_chains(const Round& round);
  void check_word(const Round& round, const Segment& segment, size_t word,
                  const std::vector<std::vector<uint64_t>>& logs);
  Board& own_board() const;
  unsigned char* own_part() const { return places_.parts[static_cast<size_t>(rank_)]; }

  const Options& options_;
  const mob_team_t team_;
  const mob_rank_t rank_;
  Shape shape_;
  Program program_;
  Model model_;
  Places places_;
  std::barrier<> threads_;
  mob_mem_t memory_ = nullptr;
  mob_heap_t heap_ = nullptr;  // of the parts
  std::vector<unsigned char> private_;
  mob_exposed_t exposed_ = nullptr;
  std::vector<unsigned char*> memories_;  // start of each rank's memory, in that rank
  mob_mem_t board_ = nullptr;
  mob_counter_t sync_counter_ = nullptr;
  std::vector<Board*> boards_;  // each an address in its owner
  std::vector<mob_counter_t> sync_counters_;
  uint64_t signalled_ = 0;
  mob_epoch_t epoch_ = nullptr;
  std::vector<mob_rank_t> all_ranks_;
  std::atomic<uint64_t> arrived_ = 0;  // arrived messages
  uint64_t awaited_ = 0;
};

}  // namespace random_program
