// SPDX-License-Identifier: BSD-3-Clause
#include "random/together_runner.h"

#include "random/report.h"

namespace random_program {

TogetherRunner::TogetherRunner(const Shape& shape, Actor self, const Places& places)
    : shape_(shape), rank_(shape.rank_of(self)), lane_(shape.lane_of(self)), places_(places) {}

TogetherRunner::~TogetherRunner() {
  check(mob_local_free(in_.shared), "mob_local_free");
  check(mob_local_free(out_.shared), "mob_local_free");
}

mob_team_t TogetherRunner::team_of(const Together& together) const {
  const auto lane = static_cast<size_t>(lane_);
  return together.team == lane_ ? places_.teams[lane] : teams_.at(together.team);
}

void TogetherRunner::run(const Together& together, const Model& model, unsigned char* own) {
  if (moves_data(together.call)) return move_data(together, model, own);
  switch (together.call) {
    case Call::kSplit:
      return split(together);
    case Call::kFreeTeam:
      check(mob_team_free(team_of(together)), "mob_team_free");
      teams_.erase(together.team);
      return;
    case Call::kCreateHeap:
      return create_heap(together);
    case Call::kDestroyHeap:
      return destroy_heap(together);
    case Call::kAllocate:
      return allocate(together);
    case Call::kResize:
      return resize(together);
    case Call::kLook:
      return look(together, model);
    case Call::kDrop:
      return drop(together);
    case Call::kExclude:
      return exclude(together);
    default:  // handing over a block takes a barrier only
      return check(mob_team_barrier(team_of(together)), "mob_team_barrier");
  }
}

void TogetherRunner::split(const Together& together) {
  const mob_team_t parent = team_of(together);
  const mob_rank_t self = together.member(rank_);
  size_t joined = together.lists.size();
  for (size_t i = 0; i < together.lists.size(); ++i) {
    for (const mob_rank_t member : together.lists[i]) joined = member == self ? i : joined;
  }
  const bool joins = joined < together.lists.size();
  mob_team_t made = MOB_TEAM_NONE;
  const auto member = static_cast<size_t>(self);
  switch (together.by) {
    case SplitBy::kColour:
      check(mob_team_split(parent, together.colours[member], together.keys[member], &made),
            "mob_team_split");
      break;
    case SplitBy::kStride:
      check(mob_team_split_strided(parent, together.lists[0][0], together.stride,
                                   static_cast<mob_rank_t>(together.lists[0].size()), &made),
            "mob_team_split_strided");
      break;
    case SplitBy::kLists: {
      if (together.lists.empty()) break;
      // A rank that is in none may pass any of them.
      const auto& list = together.lists[joins ? joined : 0];
      check(mob_team_split_list(parent, list.data(), static_cast<mob_rank_t>(list.size()), &made),
            "mob_team_split_list");
      break;
    }
  }
  if (joins != (made != MOB_TEAM_NONE)) report("a split gave a team to the wrong ones");
  if (joins) check_team(together, joined, made);
}

void TogetherRunner::check_team(const Together& together, size_t which, mob_team_t made) {
  const std::vector<mob_rank_t>& list = together.lists[which];
  const mob_team_t parent = team_of(together);
  const auto wrong = [&](const std::string& what) {
    report(what + " of team " + std::to_string(together.made[which]) + " is wrong");
  };
  if (mob_team_size(made) != static_cast<mob_rank_t>(list.size())) wrong("the size");
  for (size_t i = 0; i < list.size(); ++i) {
    const auto rank = static_cast<mob_rank_t>(i);
    mob_rank_t in_parent = -1;
    mob_rank_t back = -1;
    mob_rank_t in_world = -1;
    check(mob_team_translate(made, rank, parent, &in_parent), "mob_team_translate");
    check(mob_team_translate(parent, list[i], made, &back), "mob_team_translate");
    check(mob_team_translate(made, rank, places_.teams[0], &in_world), "mob_team_translate");
    const mob_rank_t world = together.members[static_cast<size_t>(list[i])];
    if (in_parent != list[i] || back != rank || in_world != world) {
      wrong("member " + std::to_string(i));
    }
    if (world == rank_ && mob_team_rank(made) != rank) wrong("the own rank");
  }
  teams_[together.made[which]] = made;
}

// A rank with a lock excludes the others; ranks after a barrier need not wait.
void TogetherRunner::exclude(const Together& together) {
  const mob_team_t team = team_of(together);
  const LockPlace lock{together.lock, static_cast<size_t>(lane_) + 1, together.host};
  const mob_rank_t self = together.member(rank_);
  const auto size = static_cast<mob_rank_t>(together.size());
  const auto meet = [&] { check(mob_team_barrier(team), "mob_team_barrier"); };
  const bool holds = self == together.holder;
  if (holds && !try_acquire(places_, lock, together.held)) report("a free lock was refused");
  meet();
  if (!holds) {
    const bool both =
        lock.lock == Lock::kAccess && together.held == MOB_SHARED && together.tried == MOB_SHARED;
    const bool acquired = try_acquire(places_, lock, together.tried);
    if (acquired && !both) report("a lock was given to two");
    if (!acquired && both) report("shared access was refused beside shared access");
    if (acquired) release(places_, lock);
  }
  meet();
  if (holds) release(places_, lock);
  meet();
  if (self == (together.holder + 1) % size) {
    if (!try_acquire(places_, lock, together.tried)) report("a lock that was released was refused");
    release(places_, lock);
  }
  meet();
}

void TogetherRunner::check_blocks(const Model& model) const {
  for (const auto& [number, block] : blocks_) {
    const Bytes& expected = model.block(number, rank_);
    for (size_t at = 0; at < expected.size(); ++at) {
      if (block.own[at] == expected[at]) continue;
      report("block " + std::to_string(number) + " differs at " + std::to_string(at) + " of " +
             std::to_string(expected.size()) + ": " + std::to_string(block.own[at]) +
             " instead of " + std::to_string(expected[at]));
    }
  }
}

void TogetherRunner::check_gone() const {
  if (!teams_.empty() || !heaps_.empty() || !blocks_.empty()) {
    report("the program is none: it leaves something behind");
  }
}

}  // namespace random_program
