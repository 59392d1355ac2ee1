// SPDX-License-Identifier: BSD-3-Clause
#include "random/actor_steps.h"

#include <algorithm>

#include "model/elements.h"

namespace random_program {

using mobius_test::bytes_of;

namespace {

mob_shape_t some_shape(mobius_test::Random& random) {
  return static_cast<mob_shape_t>(random.below(MOB_SPANS + 1));
}

}  // namespace

bool ActorBuilder::may_use(const Segment& segment, bool after) const {
  switch (segment.use) {
    case Use::kUntouched:
      return false;
    case Use::kReadOnly:
    case Use::kShared:
    case Use::kSumChain:
    case Use::kSwapChain:
    case Use::kLockedChain:
      return true;
    case Use::kPrivate:
    case Use::kElements:
      return segment.owner == self_;
    case Use::kMessage:
    case Use::kReadMessage:
    case Use::kFlags:
      return after && segment.told == self_;
  }
  return false;
}

void ActorBuilder::build_before() {
  steps_ = &round_.actors[static_cast<size_t>(self_)].before;
  may_tell_ = true;
  for (const Segment& segment : round_.segments) {
    const bool message = segment.use == Use::kMessage || segment.use == Use::kReadMessage;
    if (message && segment.owner == self_) add_message(segment);
    for (size_t i = 0; i < segment.flags.senders.size(); ++i) {
      if (segment.flags.senders[i] == self_) add_flag(segment, i);
    }
    if (random_.chance(30)) add_random(false);
    if (random_.chance(20)) add_together(lane_.before);
  }
  for (size_t left = random_.below(8); left > 0; --left) add_random(false);
  while (add_together(lane_.before)) {
    if (random_.chance(60)) add_random(false);
  }
}

void ActorBuilder::build_after() {
  steps_ = &round_.actors[static_cast<size_t>(self_)].after;
  may_tell_ = false;
  add_awaits();
  while (add_together(lane_.steps.size())) {
    if (random_.chance(60)) add_random(true);
  }
  for (size_t left = random_.below(5); left > 0; --left) add_random(true);
  complete_locally();
  await_completion();
  complete_remotely(-1);
}

void ActorBuilder::add_random(bool after) {
  std::vector<const Segment*> usable;
  const bool of_blocks = random_.chance(50);
  for (const Segment& segment : blocks_) {
    if (of_blocks && may_use(segment, after)) usable.push_back(&segment);
  }
  for (const Segment& segment : round_.segments) {
    if (of_blocks && !usable.empty()) break;
    if (may_use(segment, after)) usable.push_back(&segment);
  }
  if (usable.empty()) return;
  const Segment& segment = *random_.pick(usable);
  switch (segment.use) {
    case Use::kReadOnly:
      return add_get(segment);
    case Use::kElements:
      return add_elements(segment, false);
    case Use::kShared:
      return add_elements(segment, true);
    case Use::kSumChain:
    case Use::kSwapChain:
    case Use::kLockedChain:
      return add_chain(segment);
    default:
      return add_private(segment);
  }
}

Range ActorBuilder::some_local(size_t least) {
  const size_t bytes = std::min(shape_.local_bytes, std::max(least, random_.between(16, 700)));
  return {random_.below(shape_.local_bytes - bytes + 1), bytes};
}

bool ActorBuilder::shape_in(const Segment& segment, Plan* plan) {
  plan->rank = segment.rank;
  return mobius_test::shape_plan(random_, some_shape(random_), segment.range, some_local(64), plan);
}

void ActorBuilder::choose_mode(Step* step) {
  const size_t die = random_.below(10);
  step->mode = die < 4 ? Mode::kBlocking : die < 7 ? Mode::kHandle : Mode::kImplicit;
  step->by_name = random_.chance(60);
  step->counts_origin = random_.chance(10);
  step->counts_completion = random_.chance(15);
  if (may_tell_ && step->told < 0 && random_.chance(8)) {
    step->told = step->plan.rank * shape_.threads +
                 static_cast<Actor>(random_.below(static_cast<size_t>(shape_.threads)));
  }
}

void ActorBuilder::add_transfer(Step step) {
  step.what = What::kTransfer;
  choose_mode(&step);
  const Plan& plan = step.plan;
  step.by_message =
      step.by_message && plan.kind == MOB_PUT && plan.shape == MOB_CONTIGUOUS && !step.has_signal;
  // A blocking get is complete when it returns; other blocking transfers are locally complete.
  Accesses accesses{{plan.rank, plan.remote_hull, plan.writes_remote(),
                     plan.kind == MOB_PUT && !step.by_message, step.block, step.by_message}};
  const bool uses_local = step.operand.empty() && !(plan.accumulates() && plan.op == MOB_NO_OP);
  if (uses_local) accesses.push_back({-1, plan.local_hull, plan.kind == MOB_GET, false});
  if (plan.fetches() && !step.fetches_anything) {
    accesses.push_back({-1, {plan.fetched, plan.total_bytes}, true, false});
  }
  meet(hazards_.need_before(accesses));
  for (const Access& access : accesses) {
    const bool over = access.rank < 0 ? step.mode == Mode::kBlocking
                                      : step.mode == Mode::kBlocking && plan.kind == MOB_GET;
    if (!over) hazards_.add(access);
  }
  origin_count_ += step.counts_origin ? 1 : 0;
  completion_count_ += step.counts_completion ? 1 : 0;
  all_counted_ = all_counted_ && step.counts_completion;
  if (step.told >= 0) ++told_[static_cast<size_t>(step.told)];
  steps_->push_back(std::move(step));
}

void ActorBuilder::push(Step step, const Accesses& accesses) {
  meet(hazards_.need_before(accesses));
  steps_->push_back(std::move(step));
}

void ActorBuilder::meet(Hazards::Need need) {
  if (need.remote) {
    if (all_counted_ && completion_count_ > 0) {
      await_completion();
      hazards_.complete();
    } else {
      complete_remotely(-1);
    }
    return;
  }
  if (need.fence) {
    Step fence;
    fence.what = What::kFence;
    steps_->push_back(fence);
    hazards_.fence();
  }
  if (need.local) complete_locally();
  if (!need.fence && !need.local && random_.chance(5)) complete_remotely(-1);
}

void ActorBuilder::complete_locally() {
  Step step;
  step.what = What::kComplete;
  step.completion = static_cast<Completion>(random_.below(7));
  step.count = origin_count_;
  origin_count_ = 0;
  steps_->push_back(step);
  Step flush;
  flush.what = What::kFlushLocal;
  steps_->push_back(flush);
  hazards_.complete_locally();
}

void ActorBuilder::complete_remotely(mob_rank_t rank) {
  Step step;
  step.what = What::kFlush;
  step.rank = rank;
  steps_->push_back(step);
  hazards_.complete();
  all_counted_ = true;
}

void ActorBuilder::await_completion() {
  if (completion_count_ == 0) return;
  Step step;
  step.what = What::kAwaitCompletion;
  step.count = completion_count_;
  completion_count_ = 0;
  steps_->push_back(step);
}

void ActorBuilder::add_get(const Segment& segment) {
  if (random_.chance(25)) return add_value(segment, false);
  Step step;
  step.plan.kind = MOB_GET;
  step.block = segment.block;
  if (shape_in(segment, &step.plan)) add_transfer(std::move(step));
}

void ActorBuilder::add_private(const Segment& segment) {
  const size_t die = random_.below(10);
  if (die < 2) return add_value(segment, random_.chance(50));
  if (die < 4) return add_update(segment);
  if (die < 6) return add_get(segment);
  Step step;
  step.by_message = random_.chance(30);
  step.block = segment.block;
  if (shape_in(segment, &step.plan)) add_transfer(std::move(step));
}

void ActorBuilder::add_value(const Segment& segment, bool write) {
  Step step;
  step.what = write ? What::kPutValue : What::kGetValue;
  step.width = 1u << random_.below(4);
  if (segment.range.bytes < step.width) return;
  step.rank = segment.rank;
  step.block = segment.block;
  step.remote = segment.range.start + random_.below(segment.range.bytes - step.width + 1);
  step.local = some_local(8).start;
  step.value = random_.next();
  const Access remote{step.rank, {step.remote, step.width}, write, write, step.block};
  if (write) {
    push(step, {remote});
    hazards_.add(remote);
    all_counted_ = false;
  } else {
    push(step, {remote, {-1, {step.local, step.width}, true, false}});
  }
}

void ActorBuilder::add_update(const Segment& segment) {
  Step step;
  step.what = What::kUpdate;
  step.width = random_.chance(50) ? 8 : 4;
  step.rank = segment.rank;
  step.block = segment.block;
  step.remote = (segment.range.start + step.width - 1) / step.width * step.width;
  if (step.remote + step.width > segment.range.end()) return;
  const size_t words = (segment.range.end() - step.remote) / step.width;
  step.remote += random_.below(words) * step.width;
  const auto add = [&](Update update) {
    step.update = update;
    step.local = some_local(8).start;
    // Complete at return.
    push(step, {{step.rank, {step.remote, step.width}, true, false, step.block},
                {-1, {step.local, step.width}, true, false}});
  };
  step.value = random_.next();
  if (random_.chance(30)) {
    add(Update::kSwap);
    step.expected = step.value + (random_.chance(30) ? 1 : 0);
    step.value = random_.next();
    return add(Update::kCompareSwap);
  }
  add(static_cast<Update>(random_.below(static_cast<size_t>(Update::kSwap) + 1)));
}

void ActorBuilder::add_elements(const Segment& segment, bool commuting) {
  if (segment.range.bytes == 0) return;
  Step step;
  Plan& plan = step.plan;
  plan.kind = random_.chance(60) ? MOB_ACCUMULATE : MOB_FETCH_ACCUMULATE;
  plan.type = segment.type;
  plan.op = segment.op;
  const size_t element = bytes_of(plan.type);
  while (!commuting) {
    plan.op = static_cast<mob_op_t>(random_.below(MOB_OP_COUNT));
    if (mobius_test::is_defined(plan.op, plan.type)) break;
  }
  if (plan.op == MOB_SUM && random_.chance(40)) {
    plan.scale.resize(element);
    mobius_test::write_exact(random_, plan.type, plan.scale.data());
  }
  const size_t operand_bytes = 64 * element;
  if (!mobius_test::shape_plan(random_, some_shape(random_), segment.range, {0, operand_bytes},
                               &plan)) {
    return;
  }
  plan.rank = segment.rank;
  step.block = segment.block;
  // Aligned for the model's elements, not for the library's.
  step.skew = random_.chance(30) ? random_.below(element) : 0;
  step.operand.resize(step.skew + operand_bytes);
  for (size_t at = 0; at < operand_bytes; at += element) {
    mobius_test::write_exact(random_, plan.type, &step.operand[step.skew + at]);
  }
  step.fetches_anything = commuting;
  if (plan.fetches() && !commuting) {
    if (plan.total_bytes > shape_.local_bytes) return;
    plan.fetched = some_local(plan.total_bytes).start;
  }
  if (!commuting && random_.chance(20) && plan.shape == MOB_CONTIGUOUS && plan.scale.empty()) {
    plan.kind = MOB_FETCH_ACCUMULATE;
    plan.bytes = plan.total_bytes = element;
    plan.remote_hull.bytes = plan.local_hull.bytes = element;
    step.what = What::kUpdate;
    step.update = Update::kFetchOp;
    step.rank = plan.rank;
    step.local = some_local(element).start;
    return push(step, {{plan.rank, plan.remote_hull, true, false, step.block},
                       {-1, {step.local, element}, true, false}});
  }
  add_transfer(std::move(step));
}

void ActorBuilder::add_chain(const Segment& segment) {
  const size_t width = bytes_of(segment.type);
  if (logs_ == kLogWords || segment.range.bytes < width) return;
  Step step;
  step.what = What::kChain;
  step.rank = segment.rank;
  step.width = static_cast<unsigned>(width);
  step.remote = segment.range.start + random_.below(segment.range.bytes / width) * width;
  step.plan.type = segment.type;
  const bool sums = segment.use != Use::kSwapChain;
  step.plan.op = sums ? MOB_SUM : MOB_REPLACE;
  step.log = next_log();
  if (sums) {
    step.value = random_.between(1, 1000);
  } else {
    // Unique, and never 0, the word's first value.
    step.value = (static_cast<uint64_t>(self_) + 1) * kLogWords + step.log;
  }
  const size_t die = segment.type == MOB_DOUBLE ? 0 : random_.below(3);
  step.update = die == 0   ? Update::kFetchOp
                : die == 1 ? Update::kCompareSwapLoop
                           : (sums ? Update::kAdd : Update::kSwap);
  if (segment.use == Use::kLockedChain) {
    step.update = Update::kLocked;
    step.lock = segment.lock;
    step.tries = random_.chance(40);
  }
  push(step, {});
}

void ActorBuilder::add_message(const Segment& segment) {
  const bool reads = segment.use == Use::kReadMessage;
  enum {
    kSet,
    kAdd,
    kCounter,
    kFlag
  } how = static_cast<decltype(how)>(random_.below(reads ? 3 : 4));
  const size_t transfers = how == kSet ? 1 : random_.between(1, 3);
  for (size_t i = 0; i < transfers; ++i) {
    Step step;
    step.plan.kind = reads ? MOB_GET : MOB_PUT;
    if (!shape_in(segment, &step.plan)) continue;
    if (how == kCounter) {
      step.told = segment.told;
      step.by_message = random_.chance(30);
    } else if (how != kFlag) {
      step.has_signal = true;
      step.signal = segment.word;
      step.signal_op = how == kSet ? MOB_SIGNAL_SET : MOB_SIGNAL_ADD;
      step.signal_value = how == kSet ? random_.next() | 1 : random_.between(1, 1000);
    }
    add_transfer(std::move(step));
  }
  if (how != kFlag) return;
  meet({.fence = true});
  Step flag;
  flag.what = What::kPutValue;
  flag.rank = segment.rank;
  flag.remote = segment.word;
  flag.value = random_.next() | 1;
  push(flag, {});
  hazards_.add({flag.rank, {flag.remote, 8}, true, true});
  all_counted_ = false;
}

void ActorBuilder::add_awaits() {
  Step step;
  step.what = What::kAwait;
  step.count = told_[static_cast<size_t>(self_)];
  for (const Segment& segment : round_.segments) {
    const bool message = segment.use == Use::kMessage || segment.use == Use::kReadMessage;
    if (!message || segment.told != self_) continue;
    step.words.push_back(segment.word);
    step.regions.push_back(segment.range);
  }
  if (step.count > 0 || !step.words.empty()) steps_->push_back(std::move(step));
  for (const Segment& segment : round_.segments) {
    if (segment.use != Use::kFlags || segment.told != self_) continue;
    Step flags;
    flags.what = What::kAwaitFlags;
    flags.segment = static_cast<size_t>(&segment - round_.segments.data());
    flags.wait_set = static_cast<WaitSet>(random_.below(6));
    steps_->push_back(std::move(flags));
  }
}

}  // namespace random_program
