// SPDX-License-Identifier: BSD-3-Clause

// The objects of a rank for each of its threads, so that all threads may meet those of other ranks.

#include "random/rank.h"
#include "random/rank_board.h"

namespace random_program {

void RankRunner::make_lanes() {
  const auto threads = static_cast<size_t>(shape_.threads);
  places_.expose_flags = options_.moved ? MOB_EXPOSE_REMAP : 0;
  places_.teams = {team_};
  while (places_.teams.size() < threads) {
    mob_team_t team = MOB_TEAM_NONE;
    check(mob_team_split(team_, 0, 0, &team), "mob_team_split");
    places_.teams.push_back(team);
  }
  check(mob_mutexes_create(team_, 1 + threads, &places_.mutexes), "mob_mutexes_create");
  places_.access.resize(1 + threads);
  for (mob_access_t& access : places_.access) {
    check(mob_access_create(team_, &access), "mob_access_create");
  }
  if (!is_on_one_host()) return;
  for (mob_rank_t r = 0; r < shape_.ranks; ++r) {
    void* locks = nullptr;
    check(mob_ptr(r, boards_[static_cast<size_t>(r)]->locks, &locks), "mob_ptr");
    places_.locks.push_back(static_cast<mob_lock_t*>(locks));
  }
}

void RankRunner::free_lanes() {
  for (const mob_access_t access : places_.access)
    check(mob_access_free(access), "mob_access_free");
  check(mob_mutexes_free(places_.mutexes), "mob_mutexes_free");
  for (size_t lane = 1; lane < places_.teams.size(); ++lane) {
    check(mob_team_free(places_.teams[lane]), "mob_team_free");
  }
}

void RankRunner::make_heaps() {
  for (const mob_team_t team : places_.teams) {
    mob_heap_t heap = nullptr;
    check(mob_heap_create(team, 0, kMostHeapBytes, &heap), "mob_heap_create");
    places_.heaps.push_back(heap);
  }
}

void RankRunner::free_heaps() {
  for (const mob_heap_t heap : places_.heaps) {
    size_t used = 0;
    check(mob_heap_bytes(heap, nullptr, &used), "mob_heap_bytes");
    if (used != 0)
      report("a heap has " + std::to_string(used) + " bytes in blocks, which are gone");
    check(mob_heap_destroy(heap), "mob_heap_destroy");
  }
  places_.heaps.clear();
}

}  // namespace random_program
