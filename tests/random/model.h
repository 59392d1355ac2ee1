// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The sequential model: carries out a program, one actor after the other, on copies of all memory.

#include <map>
#include <vector>

#include "random/program.h"

namespace random_program {

// The contents that an actor must find when it has been informed.
struct Awaited {
  std::vector<uint64_t> words;
  std::vector<Bytes> regions;
  std::map<size_t, Bytes> flags;  // by segment: the data that was put before the words changed
};

class Model {
 public:
  void start(const Program& program);
  void run(const Round& round);

  // Swaps end in an order that the model does not know, so their words become 0 in memory and in
  // the model.
  void clear_swaps(const Round& round);

  const Bytes& part(mob_rank_t rank) const { return parts_[static_cast<size_t>(rank)]; }
  const Bytes& local(Actor actor) const { return locals_[static_cast<size_t>(actor)]; }
  const Awaited& awaited(Actor actor) const { return awaited_[static_cast<size_t>(actor)]; }
  // A member's result of a joint operation: the output of a call, or a block that it compared.
  const Bytes& result(int number, size_t member) const { return results_.at(number)[member]; }
  // A rank's block at the end of a round.
  const Bytes& block(int block, mob_rank_t rank) const {
    return blocks_.at(block)[static_cast<size_t>(rank)];
  }

 private:
  void run(const Round& round, std::vector<Step> ActorSteps::* phase);
  bool run_together(const Round& round, std::vector<Step> ActorSteps::* phase, Actor actor,
                    std::vector<size_t>* next);
  void run(const Together& together);
  void move_data(const Together& together);
  void note_awaited(const Round& round);
  void run(Actor actor, const Step& step);
  void transfer(Actor actor, const Step& step);
  void update(Actor actor, const Step& step);
  unsigned char* at(mob_rank_t rank, size_t offset, int block = -1) {
    const auto owner = static_cast<size_t>(rank);
    return block < 0 ? &parts_[owner][offset] : &blocks_.at(block)[owner][offset];
  }

  Shape shape_;
  std::map<int, std::vector<Bytes>> blocks_;   // by number: for every rank
  std::map<int, std::vector<Bytes>> results_;  // of the round, by number: for every member
  std::vector<Bytes> parts_;
  std::vector<Bytes> locals_;
  std::vector<Awaited> awaited_;
};

// The initial contents of memory.
void fill_part(const Program& program, mob_rank_t rank, unsigned char* part);
void fill_local(const Program& program, Actor actor, unsigned char* local);

}  // namespace random_program
