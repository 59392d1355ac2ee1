// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Makes the joint operations of the actors of one lane.

#include <vector>

#include "random/program.h"

namespace random_program {

// The next numbers in a program.
struct Numbers {
  int steps = 0;
  int teams = 0;
  int heaps = 0;
  int blocks = 0;
};

class LaneBuilder {
 public:
  LaneBuilder(mobius_test::Random& random, const Shape& shape, int lane, Numbers& numbers);

  // In the last round, all remaining objects are freed.
  Lane build(bool last);

 private:
  struct Team {
    int number;
    std::vector<mob_rank_t> members;
  };
  struct Heap {
    int number;
    int team;
    size_t used;
  };
  struct Block {
    int number;
    int team;
    int heap;  // -1: none
    Memory memory;
    size_t lead;
    size_t bytes;
    std::vector<Segment> segments;
  };

  void add_random();
  void close();
  Together start(Call call, const Team& team);
  void push(Together together) { lane_.steps.push_back(std::move(together)); }

  // lane_data.cpp
  void add_data();
  void choose_counts(Together* together, size_t bytes);
  void choose_buffers(Together* together);

  void add_split();
  void add_free_team();
  void add_exclusion();

  // lane_memory.cpp
  void add_heap();
  void destroy_heap(size_t which);
  void add_block();
  void add_resize();
  void add_hand_over();
  void add_look();
  void drop_block(size_t which);
  Together start(Call call, const Block& block);
  std::vector<Segment> new_uses(const Block& block);
  Heap& heap_of(const Block& block);
  const Team& team_of(int number) const;
  bool in_use(const Team& team) const;
  // Exists for the whole program.
  bool is_lanes(int number) const { return number < shape_.threads; }

  mobius_test::Random& random_;
  const Shape& shape_;
  const int number_;
  Numbers& numbers_;
  const bool idle_;
  Lane lane_;
  std::vector<Team> teams_;
  std::vector<Heap> heaps_;
  std::vector<Block> blocks_;
};

}  // namespace random_program
