// SPDX-License-Identifier: BSD-3-Clause
#include "random/model.h"

#include <cstring>

#include "model/elements.h"

namespace random_program {

namespace {

uint64_t load(const unsigned char* from, unsigned width) {
  uint64_t value = 0;
  std::memcpy(&value, from, width);
  return value;
}

uint64_t updated(Update update, uint64_t old, const Step& step, uint64_t expected) {
  switch (update) {
    case Update::kAdd:
      return old + step.value;
    case Update::kAnd:
      return old & step.value;
    case Update::kOr:
      return old | step.value;
    case Update::kXor:
      return old ^ step.value;
    case Update::kCompareSwap:
      return old == expected ? step.value : old;
    default:
      return step.value;
  }
}

}  // namespace

void fill_part(const Program& program, mob_rank_t rank, unsigned char* part) {
  mobius_test::Random random(program.seed * 1000 + static_cast<uint64_t>(rank));
  random.fill(part, program.shape.part_bytes);
}

void fill_local(const Program& program, Actor actor, unsigned char* local) {
  mobius_test::Random random(~(program.seed * 1000 + static_cast<uint64_t>(actor)));
  random.fill(local, program.shape.local_bytes);
}

void Model::start(const Program& program) {
  const Shape& shape = program.shape;
  shape_ = shape;
  blocks_.clear();
  parts_.assign(static_cast<size_t>(shape.ranks), Bytes(shape.part_bytes));
  locals_.assign(static_cast<size_t>(shape.actors()), Bytes(shape.local_bytes));
  for (mob_rank_t r = 0; r < shape.ranks; ++r) fill_part(program, r, at(r, 0));
  for (Actor a = 0; a < shape.actors(); ++a) {
    fill_local(program, a, locals_[static_cast<size_t>(a)].data());
  }
}

void Model::run(const Round& round) {
  for (const Segment& segment : round.segments) {
    if (segment.initial.empty()) continue;
    std::memcpy(at(segment.rank, segment.range.start), segment.initial.data(),
                segment.initial.size());
  }
  for (const Segment& segment : round.segments) {
    const std::vector<unsigned char> words = first_words(segment);
    if (!words.empty()) std::memcpy(at(segment.rank, segment.word), words.data(), words.size());
  }
  results_.clear();
  run(round, &ActorSteps::before);
  note_awaited(round);
  run(round, &ActorSteps::after);
}

// The awaited contents are those that all actors wrote before any was informed; later only informed
// actors change them.
void Model::note_awaited(const Round& round) {
  awaited_.assign(round.actors.size(), {});
  for (size_t a = 0; a < round.actors.size(); ++a) {
    const mob_rank_t rank = shape_.rank_of(static_cast<Actor>(a));
    for (const Step& step : round.actors[a].after) {
      for (const size_t word : step.words) {
        awaited_[a].words.push_back(load(at(rank, word), 8));
      }
      for (const Range& region : step.regions) {
        const unsigned char* start = at(rank, region.start);
        awaited_[a].regions.emplace_back(start, start + region.bytes);
      }
      if (step.what != What::kAwaitFlags) continue;
      const Range& range = round.segments[step.segment].range;
      const unsigned char* start = at(rank, range.start);
      awaited_[a].flags[step.segment].assign(start, start + range.bytes);
    }
  }
}

void Model::clear_swaps(const Round& round) {
  for (const Segment& segment : round.segments) {
    if (segment.use != Use::kSwapChain || segment.range.bytes == 0) continue;
    std::memset(at(segment.rank, segment.range.start), 0, segment.range.bytes);
  }
}

void Model::run(Actor actor, const Step& step) {
  Bytes& local = locals_[static_cast<size_t>(actor)];
  switch (step.what) {
    case What::kTransfer:
      return transfer(actor, step);
    case What::kPutValue:
      std::memcpy(at(step.rank, step.remote, step.block), &step.value, step.width);
      return;
    case What::kGetValue:
      std::memcpy(&local[step.local], at(step.rank, step.remote, step.block), step.width);
      return;
    case What::kUpdate:
      return update(actor, step);
    case What::kChain:
      if (step.plan.op == MOB_SUM) {
        if (step.plan.type == MOB_DOUBLE) {
          const auto value = static_cast<double>(step.value);
          mobius_test::combine(MOB_DOUBLE, MOB_SUM, at(step.rank, step.remote), &value, nullptr);
        } else {
          mobius_test::combine(step.plan.type, MOB_SUM, at(step.rank, step.remote), &step.value,
                               nullptr);
        }
      }
      return;
    default:
      return;
  }
}

void Model::transfer(Actor actor, const Step& step) {
  Bytes& own = locals_[static_cast<size_t>(actor)];
  Bytes operand = step.operand;
  Bytes anything(step.fetches_anything ? step.plan.total_bytes : 0);
  unsigned char* local = operand.empty() ? own.data() : operand.data() + step.skew;
  unsigned char* fetched = step.fetches_anything ? anything.data() : own.data();
  const mobius_test::Description description(step.plan, at(step.plan.rank, 0, step.block), local,
                                             fetched);
  mobius_test::carry_out(description.transfer);
  if (!step.has_signal) return;
  const uint64_t old = load(at(step.plan.rank, step.signal), 8);
  const uint64_t value =
      step.signal_op == MOB_SIGNAL_SET ? step.signal_value : old + step.signal_value;
  std::memcpy(at(step.plan.rank, step.signal), &value, 8);
}

void Model::update(Actor actor, const Step& step) {
  Bytes& local = locals_[static_cast<size_t>(actor)];
  if (step.update == Update::kFetchOp) {
    unsigned char* target = at(step.rank, step.plan.remote, step.block);
    std::memcpy(&local[step.local], target, mobius_test::bytes_of(step.plan.type));
    mobius_test::combine(step.plan.type, step.plan.op, target,
                         &step.operand[step.skew + step.plan.local], nullptr);
    return;
  }
  unsigned char* target = at(step.rank, step.remote, step.block);
  const uint64_t old = load(target, step.width);
  uint64_t expected = 0;
  std::memcpy(&expected, &step.expected, step.width);
  const uint64_t value = updated(step.update, old, step, expected);
  std::memcpy(target, &value, step.width);
  std::memcpy(&local[step.local], &old, step.width);
}

}  // namespace random_program
