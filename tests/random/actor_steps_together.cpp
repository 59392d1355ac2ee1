// SPDX-License-Identifier: BSD-3-Clause

// Steps of several actors: collective calls, blocks that are made and freed, and words among
// others.

#include <algorithm>
#include <optional>

#include "random/actor_steps.h"

namespace random_program {

// Adds the next joint step of the actor, if it comes before `end`.
bool ActorBuilder::add_together(size_t end) {
  const mob_rank_t rank = shape_.rank_of(self_);
  while (next_together_ < end && lane_.steps[next_together_].member(rank) < 0) ++next_together_;
  if (next_together_ >= end) return false;
  const Together& together = lane_.steps[next_together_];
  Step step;
  step.what = What::kTogether;
  step.together = next_together_++;
  if (moves_data(together.call)) {
    const auto member = static_cast<size_t>(together.member(rank));
    Accesses accesses;
    const auto add = [&](const Buffer& buffer, size_t bytes, bool writes) {
      if (buffer.place != Buffer::kItsOwn) return;
      accesses.push_back({-1, {buffer.at, bytes}, writes, false});
    };
    add(together.in[member], input_bytes(together, member), false);
    add(together.out[member], output_bytes(together, member), true);
    push(step, accesses);
    return true;
  }
  switch (together.call) {
    case Call::kBarrier:
    case Call::kDestroyHeap:
    case Call::kResize:
    case Call::kHandOver:
    case Call::kLook:
    case Call::kDrop:
      add_completing(together, step);
      break;
    default:
      steps_->push_back(step);
  }
  if (together.call != Call::kLook) forget_block(together.block);
  for (const int block : together.lost) forget_block(block);
  use_blocks(together.segments);
  return true;
}

// Completes the transfers of the caller; a barrier does not wait for handlers.
void ActorBuilder::add_completing(const Together& together, const Step& step) {
  const bool flushes = together.call == Call::kDestroyHeap ||
                       (together.memory == Memory::kHeap && together.block >= 0 &&
                        (together.call == Call::kResize || together.call == Call::kDrop)) ||
                       (together.memory == Memory::kAllocated && together.call == Call::kDrop);
  if (random_.chance(30) || (!flushes && hazards_.has_messages())) complete_remotely(-1);
  steps_->push_back(step);
  hazards_.complete();
  all_counted_ = true;
}

void ActorBuilder::use_blocks(const std::vector<Segment>& segments) {
  const mob_rank_t rank = shape_.rank_of(self_);
  for (const Segment& segment : segments) {
    const std::vector<mob_rank_t>& members = segment.members;
    if (std::find(members.begin(), members.end(), rank) != members.end()) {
      blocks_.push_back(segment);
    }
  }
}

void ActorBuilder::forget_block(int block) {
  if (block < 0) return;
  std::erase_if(blocks_, [block](const Segment& segment) { return segment.block == block; });
}

// Puts something, then changes a word, so that a reader of the word sees the data.
void ActorBuilder::add_flag(const Segment& segment, size_t word) {
  Segment slice = segment;
  slice.range = flag_slice(segment, word);
  const size_t width = flag_width(segment);
  const size_t place = segment.word + word * width;
  const uint64_t first = segment.flags.first[word];
  const uint64_t last = segment.flags.last[word];
  const auto shaped = [&] {
    Step put;
    return shape_in(slice, &put.plan) ? std::optional<Step>(std::move(put)) : std::nullopt;
  };
  for (size_t left = random_.below(3); left > 0; --left) {
    if (auto put = shaped()) add_transfer(std::move(*put));
  }
  Step flag;
  flag.rank = segment.rank;
  flag.remote = place;
  flag.width = static_cast<unsigned>(width);
  const size_t die = random_.below(100);
  if (die < 25 && width == 8) {
    meet({.fence = true});
    if (auto put = shaped()) {
      put->has_signal = true;
      put->signal = place;
      put->signal_op = random_.chance(50) ? MOB_SIGNAL_SET : MOB_SIGNAL_ADD;
      put->signal_value = put->signal_op == MOB_SIGNAL_SET ? last : last - first;
      return add_transfer(std::move(*put));
    }
  } else if (die < 50) {
    // Atomic updates order earlier puts where a fence would order operations that were only
    // started.
    meet({.fence = true});
    flag.what = What::kUpdate;
    flag.update = random_.chance(50) ? Update::kSwap : Update::kAdd;
    flag.value = flag.update == Update::kSwap ? last : last - first;
    flag.local = some_local(8).start;
    return push(flag, {{-1, {flag.local, width}, true, false}});
  } else if (die < 65) {
    // Fences do not order accumulates.
    complete_remotely(-1);
    Step add;
    Plan& plan = add.plan;
    plan.kind = MOB_ACCUMULATE;
    plan.type = width == 8 ? MOB_UINT64 : MOB_UINT32;
    plan.op = random_.chance(50) ? MOB_SUM : MOB_REPLACE;
    plan.rank = segment.rank;
    plan.remote = place;
    plan.bytes = plan.total_bytes = width;
    plan.remote_hull = {place, width};
    plan.local_hull = {0, width};
    const uint64_t value = plan.op == MOB_SUM ? last - first : last;
    const auto* bytes = reinterpret_cast<const unsigned char*>(&value);
    add.operand.assign(bytes, bytes + width);
    return add_transfer(std::move(add));
  }
  meet({.fence = true});
  flag.what = What::kPutValue;
  flag.value = last;
  push(flag, {});
  hazards_.add({flag.rank, {place, width}, true, true});
  all_counted_ = false;
}

}  // namespace random_program
