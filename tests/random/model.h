// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The sequential model: carries out a program, one actor after the other, on copies of all memory.

#include <vector>

#include "random/program.h"

namespace random_program {

using Bytes = std::vector<unsigned char>;

// What an actor must find when it has been told.
struct Awaited {
  std::vector<uint64_t> words;
  std::vector<Bytes> regions;
};

class Model {
 public:
  void start(const Program& program);
  void run(const Round& round);

  // Swaps end in an order that the model does not know: its words become 0 there, and here.
  void clear_swaps(const Round& round);

  const Bytes& part(mob_rank_t rank) const { return parts_[static_cast<size_t>(rank)]; }
  const Bytes& local(Actor actor) const { return locals_[static_cast<size_t>(actor)]; }
  const Awaited& awaited(Actor actor) const { return awaited_[static_cast<size_t>(actor)]; }

 private:
  void run(Actor actor, const Step& step);
  void transfer(Actor actor, const Step& step);
  void update(Actor actor, const Step& step);
  unsigned char* at(mob_rank_t rank, size_t offset) {
    return &parts_[static_cast<size_t>(rank)][offset];
  }

  std::vector<Bytes> parts_;
  std::vector<Bytes> locals_;
  std::vector<Awaited> awaited_;
};

// What memory holds at first.
void fill_part(const Program& program, mob_rank_t rank, unsigned char* part);
void fill_local(const Program& program, Actor actor, unsigned char* local);

}  // namespace random_program
