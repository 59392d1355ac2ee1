// SPDX-License-Identifier: BSD-3-Clause
#include "active_sets.h"

#include <sched.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "front.h"

namespace mobius::shmem {
namespace {

// The data that a PE offers to the others of the set, in its own pSync.
struct Board {
  long turn;                 // counts exchanges; set when the data is there
  std::array<long, 8> data;  // up to 64 bytes
  long readers;              // PEs that have read the data of this turn
};
static_assert(sizeof(Board) <= SHMEM_SYNC_SIZE * sizeof(long));

struct Exchange {
  const std::vector<mob_rank_t>* pes;
  Board* mine;
  const char* call;
  long turn = 0;
};

Board* board_of(const Exchange& exchange, mob_rank_t pe) {
  return reinterpret_cast<Board*>(place_in(exchange.mine, pe, exchange.call, "pSync"));
}

// Every PE offers its bytes, reads those of all others, and waits until all others have read its.
int run(const void* mine, size_t bytes, void* all, void* argument) {
  auto& exchange = *static_cast<Exchange*>(argument);
  Board* const board = exchange.mine;
  const long turn = ++exchange.turn;
  std::memcpy(board->data.data(), mine, bytes);
  // Pairs with the acquire of the reader's mob_get8().
  __atomic_store_n(&board->turn, turn, __ATOMIC_RELEASE);
  char* out = static_cast<char*>(all);
  for (const mob_rank_t pe : *exchange.pes) {
    if (pe == mob_rank()) {
      std::memcpy(out, mine, bytes);
    } else {
      Board* const theirs = board_of(exchange, pe);
      uint64_t seen = 0;
      uint64_t old = 0;
      for (;;) {
        if (mob_get8(pe, &theirs->turn, &seen) != MOB_OK) return 1;
        if (static_cast<long>(seen) == turn) break;
        if (mob_poll() != MOB_OK || mob_rank_alive(pe) == 0) return 1;
        sched_yield();
      }
      if (mob_get(pe, theirs->data.data(), out, bytes) != MOB_OK) return 1;
      if (mob_fetch_add8(pe, &theirs->readers, 1, &old) != MOB_OK) return 1;
    }
    out += bytes;
  }
  const auto others = static_cast<int64_t>(exchange.pes->size() - 1);
  if (mob_wait_until_i8(reinterpret_cast<const int64_t*>(&board->readers), MOB_GE, others) !=
      MOB_OK) {
    return 1;
  }
  board->readers = 0;
  return 0;
}

struct Key {
  int start;
  int log_stride;
  int size;
  auto operator<=>(const Key&) const = default;
};

std::mutex teams_mutex;
std::map<Key, mob_team_t> teams;

mob_team_t make(const Key& key, long* p_sync, const char* call) {
  std::vector<mob_rank_t> pes;
  for (int i = 0; i < key.size; ++i) pes.push_back(key.start + (i << key.log_stride));
  Exchange exchange = {&pes, reinterpret_cast<Board*>(p_sync), call};
  mob_team_t team = MOB_TEAM_NONE;
  check(mob_team_gather(pes.data(), key.size, run, &exchange, &team), call);
  std::memset(p_sync, 0, sizeof(Board));
  // Nobody uses pSync anew before all have cleared theirs.
  check(mob_team_barrier(team), call);
  return team;
}

}  // namespace

mob_team_t team_of_active_set(int start, int log_stride, int size, long* p_sync, const char* call) {
  check_started(call);
  const int pes = shmem_state_.n_pes;
  if (start < 0 || log_stride < 0 || log_stride > 30 || size < 1 || start >= pes ||
      (static_cast<int64_t>(size) - 1) << log_stride >= pes - start) {
    die(call, "PE_start %d, logPE_stride %d, PE_size %d name PEs that do not exist; there are %d",
        start, log_stride, size, pes);
  }
  if (start == 0 && size == pes) return MOB_TEAM_WORLD;
  const Key key = {start, size > 1 ? log_stride : 0, size};
  const std::lock_guard lock(teams_mutex);
  mob_team_t& team = teams[key];
  if (team == nullptr) team = make(key, p_sync, call);
  return team;
}

// The teams themselves end with the job.
void forget_active_sets() {
  const std::lock_guard lock(teams_mutex);
  teams.clear();
}

}  // namespace mobius::shmem
