// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Makes the steps of one actor in one round.

#include <vector>

#include "random/hazards.h"
#include "random/program.h"

namespace random_program {

class ActorBuilder {
 public:
  // `told` counts, by actor, the counts of target counters; all builders share it.
  ActorBuilder(mobius_test::Random& random, const Shape& shape, Round& round, Actor self,
               std::vector<uint64_t>& told)
      : random_(random),
        shape_(shape),
        round_(round),
        self_(self),
        told_(told),
        lane_(round.lanes[static_cast<size_t>(shape.lane_of(self))]) {
    use_blocks(lane_.blocks);
  }

  void build_before();
  void build_after();  // called when the `before` of every actor exists

 private:
  using Accesses = std::vector<Access>;

  void add_random(bool may_tell);
  void add_private(const Segment& segment);
  void add_elements(const Segment& segment, bool commuting);
  void add_message(const Segment& segment);
  void add_chain(const Segment& segment);
  void add_flag(const Segment& segment, size_t word);
  bool add_together(size_t end);
  void add_completing(const Together& together, const Step& step);
  void use_blocks(const std::vector<Segment>& segments);
  void forget_block(int block);
  void add_value(const Segment& segment, bool write);
  void add_update(const Segment& segment);
  void add_get(const Segment& segment);
  void add_awaits();

  // Adds a step that carries out `plan` within the segment; false if nothing fits.
  bool shape_in(const Segment& segment, Plan* plan);
  void add_transfer(Step step);
  void choose_mode(Step* step);
  void push(Step step, const Accesses& accesses);
  void meet(Hazards::Need need);
  void complete_locally();
  void complete_remotely(mob_rank_t rank);
  void await_completion();

  Range some_local(size_t least);
  bool may_use(const Segment& segment, bool after) const;
  size_t next_log() { return logs_++; }

  mobius_test::Random& random_;
  const Shape& shape_;
  Round& round_;
  const Actor self_;
  std::vector<uint64_t>& told_;
  const Lane& lane_;
  size_t next_together_ = 0;
  std::vector<Segment> blocks_;  // existing blocks whose place the actor knows
  std::vector<Step>* steps_ = nullptr;
  Hazards hazards_;
  bool may_tell_ = false;
  bool all_counted_ = true;  // every open transfer counts the completion counter
  uint64_t origin_count_ = 0;
  uint64_t completion_count_ = 0;
  size_t logs_ = 0;
};

}  // namespace random_program
