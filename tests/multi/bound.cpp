// SPDX-License-Identifier: BSD-3-Clause

// Processes that are bound to processors when they join, as launchers do it: each to one of its own
// ("one_each"), or only the first one ("one_alone"). If each can have a processor, no process
// sleeps in short waits, and all choose the same way to meet.

#include <mobius/mobius.h>

#include <sched.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kTurns = 2000;

void require(mob_status_t status, const char* what) {
  if (status == MOB_OK) return;
  std::fprintf(stderr, "bound: %s: %s\n", what, mob_last_error());
  std::exit(1);
}

std::vector<int> allowed() {
  cpu_set_t set;
  std::vector<int> result;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return result;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) result.push_back(i);
  }
  return result;
}

long sleeps() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// The number of times that this thread gives up its processor in that many epochs of two ranks.
long sleeps_of_epochs(mob_epoch_t epoch) {
  const mob_rank_t other = 1 - mob_rank();
  require(mob_barrier(), "mob_barrier");
  const long before = sleeps();
  for (int turn = 0; turn < kTurns; ++turn) {
    require(mob_epoch_post(epoch, &other, 1), "mob_epoch_post");
    require(mob_epoch_start(epoch, &other, 1), "mob_epoch_start");
    require(mob_epoch_complete(epoch), "mob_epoch_complete");
    require(mob_epoch_wait(epoch), "mob_epoch_wait");
  }
  return sleeps() - before;
}

}  // namespace

int main(int argc, char** argv) {
  const bool each = argc == 2 && std::strcmp(argv[1], "one_each") == 0;
  const char* rank = std::getenv("MOBIUS_RANK");
  const std::vector<int> processors = allowed();
  if (processors.size() < 2) {
    std::puts("bound: skipped: one processor");
    return 0;
  }
  if (rank != nullptr && (each || std::atoi(rank) == 0)) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(processors[static_cast<size_t>(std::atoi(rank))]), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) return 1;
  }
  require(mob_init(), "mob_init");
  mob_epoch_t epoch = nullptr;
  require(mob_epoch_create(MOB_TEAM_WORLD, &epoch), "mob_epoch_create");
  const long slept = sleeps_of_epochs(epoch);
  mob_team_t both = MOB_TEAM_NONE;
  require(mob_team_split(MOB_TEAM_WORLD, 0, -mob_rank(), &both), "mob_team_split");
  for (int turn = 0; turn < kTurns; ++turn) require(mob_team_barrier(both), "mob_team_barrier");
  require(mob_team_free(both), "mob_team_free");
  require(mob_epoch_free(epoch), "mob_epoch_free");
  require(mob_finalize(), "mob_finalize");
  // A sleep in every second turn is the error. Other work of the machine makes a wait long now and
  // then.
  if (each && slept > kTurns / 10) {
    std::fprintf(stderr, "bound: slept %ld times in %d turns\n", slept, kTurns);
    return 1;
  }
  return 0;
}
