// SPDX-License-Identifier: BSD-3-Clause
#include "random/lane.h"

#include <algorithm>

namespace random_program {

LaneBuilder::LaneBuilder(mobius_test::Random& random, const Shape& shape, int lane,
                         Numbers& numbers)
    : random_(random), shape_(shape), number_(lane), numbers_(numbers), idle_(random.chance(60)) {
  Team all{lane, {}};
  for (mob_rank_t r = 0; r < shape.ranks; ++r) all.members.push_back(r);
  teams_.push_back(std::move(all));
  heaps_.push_back({lane, lane, 0});
}

Lane LaneBuilder::build(bool last) {
  lane_ = {};
  for (const Block& block : blocks_) {
    lane_.blocks.insert(lane_.blocks.end(), block.segments.begin(), block.segments.end());
  }
  for (size_t left = idle_ ? 0 : random_.below(6); left > 0; --left) add_random();
  if (last) close();
  lane_.before = random_.between(0, lane_.steps.size());
  return std::move(lane_);
}

void LaneBuilder::add_random() {
  const size_t die = random_.below(100);
  if (die < 40) return add_data();
  if (die < 50) return add_split();
  if (die < 54) return add_free_team();
  if (die < 60) return add_exclusion();
  if (die < 61) return add_heap();
  if (die < 62) return destroy_heap(random_.below(heaps_.size()));
  if (die < 79) return add_block();
  if (blocks_.empty()) return;
  if (die < 86) return add_resize();
  if (die < 92) return add_hand_over();
  if (die < 96) return add_look();
  drop_block(random_.below(blocks_.size()));
}

void LaneBuilder::close() {
  if (!blocks_.empty() && random_.chance(30)) add_look();
  while (heaps_.size() > 1 && random_.chance(50)) destroy_heap(heaps_.size() - 1);
  while (!blocks_.empty()) drop_block(random_.below(blocks_.size()));
  while (heaps_.size() > 1) destroy_heap(heaps_.size() - 1);
  while (teams_.size() > 1) add_free_team();
}

Together LaneBuilder::start(Call call, const Team& team) {
  Together together;
  together.call = call;
  together.number = numbers_.steps++;
  together.lane = number_;
  together.team = team.number;
  together.members = team.members;
  together.seed = random_.next() % 1000000;
  return together;
}

const LaneBuilder::Team& LaneBuilder::team_of(int number) const {
  return *std::find_if(teams_.begin(), teams_.end(),
                       [number](const Team& team) { return team.number == number; });
}

bool LaneBuilder::in_use(const Team& team) const {
  const auto uses = [&team](const auto& what) { return what.team == team.number; };
  return std::any_of(heaps_.begin(), heaps_.end(), uses) ||
         std::any_of(blocks_.begin(), blocks_.end(), uses);
}

void LaneBuilder::add_split() {
  if (teams_.size() > 5) return;
  const Team parent = random_.pick(teams_);
  Together split = start(Call::kSplit, parent);
  const size_t size = parent.members.size();
  split.by = static_cast<SplitBy>(random_.below(3));
  if (split.by == SplitBy::kStride) {
    const auto length = static_cast<mob_rank_t>(size);
    const auto first = static_cast<mob_rank_t>(random_.below(size));
    const auto step = static_cast<mob_rank_t>(random_.between(1, size));
    split.stride = random_.chance(40) ? -step : step;
    mob_rank_t most = 0;
    for (mob_rank_t at = first; at >= 0 && at < length; at += split.stride) ++most;
    const auto count = static_cast<mob_rank_t>(random_.between(1, static_cast<size_t>(most)));
    split.lists.emplace_back();
    for (mob_rank_t i = 0; i < count; ++i) split.lists[0].push_back(first + i * split.stride);
  } else {
    // Some colours, and perhaps members without one; the members of each in any order.
    const size_t colours = random_.between(1, std::min<size_t>(3, size));
    split.lists.resize(colours);
    std::vector<size_t> order(size);
    for (size_t m = 0; m < size; ++m) order[m] = m;
    if (random_.chance(70)) random_.shuffle(order);
    split.colours.assign(size, -1);
    split.keys.assign(size, 0);
    // Equal keys leave the order to the parent's ranks.
    const bool keyed = split.by == SplitBy::kLists || random_.chance(70);
    for (size_t position = 0; position < size; ++position) {
      const size_t m = order[position];
      if (random_.chance(15)) continue;
      const size_t colour = random_.below(colours);
      split.colours[m] = static_cast<int>(colour);
      split.keys[m] = keyed ? static_cast<int>(position) * 3 - 4 : 7;
      split.lists[colour].push_back(static_cast<mob_rank_t>(m));
    }
    if (!keyed) {
      for (auto& list : split.lists) std::sort(list.begin(), list.end());
    }
    std::erase_if(split.lists, [](const auto& list) { return list.empty(); });
  }
  for (const std::vector<mob_rank_t>& list : split.lists) {
    Team team{numbers_.teams++, {}};
    for (const mob_rank_t m : list) team.members.push_back(parent.members[static_cast<size_t>(m)]);
    split.made.push_back(team.number);
    teams_.push_back(std::move(team));
  }
  push(std::move(split));
}

void LaneBuilder::add_free_team() {
  std::vector<size_t> idle;
  for (size_t i = 1; i < teams_.size(); ++i) {
    if (!in_use(teams_[i])) idle.push_back(i);
  }
  if (idle.empty()) return;
  const size_t which = random_.pick(idle);
  push(start(Call::kFreeTeam, teams_[which]));
  teams_.erase(teams_.begin() + static_cast<ptrdiff_t>(which));
}

void LaneBuilder::add_exclusion() {
  // In the team of all: members of another team would not wait for these, but would take the same
  // lock.
  const Team& team = teams_.front();
  Together exclusion = start(Call::kExclude, team);
  exclusion.lock = static_cast<Lock>(random_.below(3));
  exclusion.host = random_.pick(team.members);
  exclusion.holder = static_cast<mob_rank_t>(random_.below(team.members.size()));
  exclusion.held = random_.chance(50) ? MOB_EXCLUSIVE : MOB_SHARED;
  exclusion.tried = random_.chance(50) ? MOB_EXCLUSIVE : MOB_SHARED;
  push(std::move(exclusion));
}

}  // namespace random_program
