// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team/consensus.h"

#include <string>

#include "base/status.h"
#include "engine/common/peers.h"
#include "engine/progress/waiter.h"
#include "engine/team/rounds.h"

namespace mobius::engine {
namespace {

constexpr unsigned kTurnShift = 32;

uint64_t with_turn(uint32_t turn, uint32_t value) { return uint64_t{turn} << kTurnShift | value; }
uint32_t turn_of(uint64_t word) { return static_cast<uint32_t>(word >> kTurnShift); }

void ring_all(const TeamServices& services, const TeamMap& map) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // between changes and checks for sleepers
  for (mob_rank_t i = 0; i < map.size(); ++i) {
    services.waiter.ring_after_fence(map.world_rank(i));
  }
}

// Detects members that have died; never ends the wait.
class DeathFinder final : public os::Watch {
 public:
  DeathFinder(Peers& peers, const TeamMap& map) : peers_(peers), map_(map) {}
  mob_status_t look() override {
    for (mob_rank_t i = 0; i < map_.size(); ++i) {
      static_cast<void>(peers_.is_dead(map_.world_rank(i)));
    }
    return MOB_OK;
  }

 private:
  Peers& peers_;
  const TeamMap& map_;
};

}  // namespace

// Acquire: the record of the member that decided is complete.
bool Consensus::is_decided() const {
  const uint64_t word = rounds_.consensus().decided.load(std::memory_order_acquire);
  return static_cast<int32_t>(turn_of(word) - turn_) >= 0;
}

// Acquire: what the member did before it came is visible to the survivors.
bool Consensus::has_come(mob_rank_t member) const {
  const uint64_t word = rounds_.consensus(member).brought.load(std::memory_order_acquire);
  return turn_of(word) == turn_;
}

// A member that has called mob_finalize() does not come any more.
bool Consensus::is_gone(mob_rank_t member) const {
  const mob_rank_t rank = map_.world_rank(member);
  return services_.peers.liveness().is_known_dead(services_.peers.host_index(rank)) ||
         (services_.peers.is_ending(rank) && !has_come(member));
}

// Members before `next` are known to have come or to be gone.
bool Consensus::is_to_propose(mob_rank_t* next) const {
  for (; *next < map_.size(); ++*next) {
    if (!has_come(*next) && !is_gone(*next)) return false;
  }
  for (mob_rank_t lower = 0; lower < rank_; ++lower) {
    if (!is_gone(lower)) return false;
  }
  return true;
}

// Makes the parts of the proposal that follow from what the members brought.
void Consensus::gather() {
  ConsensusRecord& own = rounds_.consensus(rank_);
  own.flags = ~uint32_t{0};
  own.against = -1;
  own.survivors.clear();
  survivors_ = 0;
  for (mob_rank_t i = 0; i < map_.size(); ++i) {
    if (!has_come(i) || is_gone(i)) continue;
    const auto flags =
        static_cast<uint32_t>(rounds_.consensus(i).brought.load(std::memory_order_relaxed));
    own.flags &= flags;
    if (flags == 0 && own.against < 0) own.against = i;
    own.survivors.add(i);
    ++survivors_;
  }
}

bool Consensus::begin(uint32_t flags) {
  ++turn_;
  // Release pairs with the acquire in has_come().
  rounds_.consensus(rank_).brought.store(with_turn(turn_, flags), std::memory_order_release);
  ring_all(services_, map_);
  DeathFinder finder(services_.peers, map_);
  mob_rank_t next = 0;
  bool proposes = false;
  static_cast<void>(services_.waiter.wait_until(
      [&] {
        if (is_decided()) return true;
        proposes = is_to_propose(&next);
        return proposes;
      },
      &finder));
  if (proposes) gather();
  return proposes;
}

bool Consensus::all_brought_flags() const { return rounds_.consensus(rank_).against < 0; }

void Consensus::propose(const Proposal& proposal) {
  ConsensusRecord& own = rounds_.consensus(rank_);
  own.status = proposal.status;
  own.offset = proposal.offset;
  std::atomic<uint64_t>& decided = rounds_.consensus().decided;
  uint64_t seen = decided.load(std::memory_order_relaxed);
  const uint64_t wanted = with_turn(turn_, static_cast<uint32_t>(rank_) + 1);
  // Release pairs with the acquire in is_decided().
  while (static_cast<int32_t>(turn_of(seen) - turn_) < 0 &&
         !decided.compare_exchange_weak(seen, wanted, std::memory_order_acq_rel)) {
  }
  ring_all(services_, map_);
}

mob_status_t Consensus::end(const char* call, Decision* decision) {
  const uint64_t word = rounds_.consensus().decided.load(std::memory_order_acquire);
  const auto decider = static_cast<mob_rank_t>(static_cast<uint32_t>(word)) - 1;
  const bool is_mine = decider == rank_;
  const ConsensusRecord& record = rounds_.consensus(decider);
  if (turn_of(word) != turn_ || !record.survivors.has(rank_)) {
    return base::fail(MOB_ERR_PEER, "%s: the other members take this process for dead", call);
  }
  decision->flags = record.flags;
  decision->against = record.against;
  decision->proposal = {record.status, record.offset};
  decision->survivors = record.survivors;
  decision->is_mine = is_mine;
  return MOB_OK;
}

mob_status_t Consensus::agree(const char* call, mob_status_t mine) {
  Decision decision;
  const std::string text = mine != MOB_OK ? mob_last_error() : "";
  const mob_status_t status = decide(call, mine == MOB_OK ? 1 : 0, &decision);
  if (mine != MOB_OK) return base::fail(mine, "%s", text.c_str());
  if (status != MOB_OK || decision.flags != 0) return status;
  return base::fail(MOB_ERR_PEER, "%s failed here because it failed at rank %d", call,
                    map_.world_rank(decision.against));
}

}  // namespace mobius::engine
