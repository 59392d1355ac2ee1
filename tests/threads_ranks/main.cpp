// SPDX-License-Identifier: BSD-3-Clause

// Ranks as threads of one process, for ThreadSanitizer: random programs, and subjects that they
// leave out (teams, allocations, ranks that join and leave). With --threads more threads act for
// each rank; all synchronisation is then in one process. Needs no launcher and no test library.

#include <mobius/mobius.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "random/rank.h"

namespace {

using random_program::check;
using random_program::report;

void require(bool holds, const char* what) {
  if (!holds) report(std::string("not so: ") + what);
}

// Every rank adds to a word of every rank, by every kind of atomic update.
void count_together() {
  constexpr uint64_t kRounds = 200;
  mob_mem_t mem = nullptr;
  check(mob_mem_alloc(64, &mem), "mob_mem_alloc");
  const auto size = static_cast<uint64_t>(mob_size());
  for (uint64_t i = 0; i < kRounds; ++i) {
    const auto target = static_cast<mob_rank_t>((static_cast<uint64_t>(mob_rank()) + i) % size);
    void* address = nullptr;
    check(mob_mem_address(mem, target, 0, &address), "mob_mem_address");
    auto* word = static_cast<unsigned char*>(address);
    const double one = 1;
    const int16_t two = 2;
    uint64_t old = 0;
    check(mob_fetch_add8(target, word, 1, &old), "mob_fetch_add8");
    check(mob_accumulate(target, word + 8, &one, 1, MOB_DOUBLE, MOB_SUM), "mob_accumulate");
    check(mob_accumulate(target, word + 16, &two, 1, MOB_INT16, MOB_SUM), "mob_accumulate");
  }
  check(mob_barrier(), "mob_barrier");
  unsigned char part[24];
  std::memcpy(part, mob_mem_local(mem), sizeof part);
  uint64_t words = 0;
  double doubles = 0;
  std::memcpy(&words, part, sizeof words);
  std::memcpy(&doubles, part + 8, sizeof doubles);
  // Rank and round determine the target, so that every rank is one equally often.
  if (kRounds % size == 0) require(words == kRounds, "every addition counts");
  require(doubles == static_cast<double>(words), "sums of doubles lose nothing");
  check(mob_mem_free(mem), "mob_mem_free");
}

void use_teams() {
  mob_team_t half = MOB_TEAM_NONE;
  check(mob_team_split(MOB_TEAM_WORLD, mob_rank() % 2, -mob_rank(), &half), "mob_team_split");
  mob_rank_t world = -1;
  check(mob_team_translate(half, mob_team_rank(half), MOB_TEAM_WORLD, &world),
        "mob_team_translate");
  require(world == mob_rank(), "a member of a team is itself in the world");
  check(mob_team_free(half), "mob_team_free");
}

void run_rank(void* argument) {
  check(mob_init(), "mob_init");
  count_together();
  use_teams();
  random_program::RankRunner(*static_cast<random_program::Options*>(argument)).run();
  check(mob_finalize(), "mob_finalize");
}

}  // namespace

int main(int argc, char** argv) {
  random_program::Options options;
  options.ranks_are_threads = true;
  mob_rank_t least = 1;
  mob_rank_t most = 4;
  if (argc >= 3 && std::strcmp(argv[1], "--ranks") == 0) {
    least = most = static_cast<mob_rank_t>(std::atoi(argv[2]));
    argv[2] = argv[0];
    argc -= 2;
    argv += 2;
  }
  if (!random_program::parse(argc, argv, &options)) return 2;
  const std::string command = options.command;
  for (mob_rank_t ranks = least; ranks <= most; ++ranks) {
    options.command = std::string(argv[0]) + " --ranks " + std::to_string(ranks) +
                      command.substr(std::strlen(argv[0]));
    if (mob_threads_run(ranks, run_rank, &options) != MOB_OK) {
      std::fprintf(stderr, "mob_threads_run: %s\n", mob_last_error());
      return 1;
    }
    std::printf("%d ranks: %llu programs agree with the model\n", ranks,
                static_cast<unsigned long long>(options.programs));
  }
  return 0;
}
