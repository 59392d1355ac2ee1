// SPDX-License-Identifier: BSD-3-Clause

// Joint operations of several ranks, in the model.

#include <cstring>

#include "random/model.h"
#include "random/report.h"

namespace random_program {

// Every actor continues up to a joint operation, which all its actors must reach.
void Model::run(const Round& round, std::vector<Step> ActorSteps::* phase) {
  std::vector<size_t> next(round.actors.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (Actor a = 0; a < shape_.actors(); ++a) {
      const std::vector<Step>& steps = round.actors[static_cast<size_t>(a)].*phase;
      size_t& at = next[static_cast<size_t>(a)];
      while (at < steps.size() && steps[at].what != What::kTogether) run(a, steps[at++]);
      moved = (at < steps.size() && run_together(round, phase, a, &next)) || moved;
    }
  }
  for (size_t a = 0; a < next.size(); ++a) {
    if (next[a] < (round.actors[a].*phase).size()) {
      report("the program is none: actor " + std::to_string(a) + " waits for ever");
    }
  }
}

bool Model::run_together(const Round& round, std::vector<Step> ActorSteps::* phase, Actor actor,
                         std::vector<size_t>* next) {
  const auto step_of = [&](Actor a) -> const Step* {
    const std::vector<Step>& steps = round.actors[static_cast<size_t>(a)].*phase;
    const size_t at = (*next)[static_cast<size_t>(a)];
    return at < steps.size() ? &steps[at] : nullptr;
  };
  const int lane = shape_.lane_of(actor);
  const size_t which = step_of(actor)->together;
  const Together& together = round.lanes[static_cast<size_t>(lane)].steps[which];
  for (const mob_rank_t rank : together.members) {
    const Step* step = step_of(shape_.actor_of(rank, lane));
    if (step == nullptr || step->what != What::kTogether || step->together != which) return false;
  }
  run(together);
  for (const mob_rank_t rank : together.members) {
    ++(*next)[static_cast<size_t>(shape_.actor_of(rank, lane))];
  }
  return true;
}

void Model::run(const Together& together) {
  if (moves_data(together.call)) return move_data(together);
  switch (together.call) {
    case Call::kAllocate:
    case Call::kResize: {
      std::vector<Bytes>& block = blocks_[together.block];
      block.resize(static_cast<size_t>(shape_.ranks));
      for (const mob_rank_t rank : together.members) {
        Bytes& bytes = block[static_cast<size_t>(rank)];
        bytes.resize(together.bytes);
        fill_block(together, rank, bytes.data());
      }
      return;
    }
    case Call::kLook:
      for (const mob_rank_t rank : together.members) {
        results_[together.number].push_back(block(together.block, rank));
      }
      return;
    case Call::kDrop:
      blocks_.erase(together.block);
      return;
    case Call::kDestroyHeap:
      for (const int block : together.lost) blocks_.erase(block);
      return;
    default:
      return;
  }
}

void Model::move_data(const Together& together) {
  std::vector<Bytes> inputs;
  std::vector<Bytes> outputs;
  const auto own = [&](size_t member, const Buffer& buffer) {
    const Actor actor = shape_.actor_of(together.members[member], together.lane);
    return &locals_[static_cast<size_t>(actor)][buffer.at];
  };
  for (size_t m = 0; m < together.size(); ++m) {
    Bytes& input = inputs.emplace_back(made_input(together, m));
    if (together.in[m].place == Buffer::kItsOwn) {
      std::memcpy(input.data(), own(m, together.in[m]), input.size());
    }
    Bytes& output = outputs.emplace_back(output_bytes(together, m), kUnwritten);
    if (together.out[m].place == Buffer::kItsOwn) {
      std::memcpy(output.data(), own(m, together.out[m]), output.size());
    }
    if (together.in_place && !output.empty() && !input.empty() && together.call != Call::kScatter) {
      std::memcpy(output.data() + place_in_output(together, m), input.data(), input.size());
    }
  }
  combine_all(together, inputs, &outputs);
  for (size_t m = 0; m < together.size(); ++m) {
    if (together.out[m].place != Buffer::kItsOwn) continue;
    std::memcpy(own(m, together.out[m]), outputs[m].data(), outputs[m].size());
  }
  results_[together.number] = std::move(outputs);
}

}  // namespace random_program
