// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Carries out one actor's joint operations, with the library.

#include <map>
#include <string>
#include <vector>

#include "random/model.h"
#include "random/places.h"
#include "random/program.h"

namespace random_program {

class TogetherRunner {
 public:
  TogetherRunner(const Shape& shape, Actor self, const Places& places);
  ~TogetherRunner();
  TogetherRunner(const TogetherRunner&) = delete;
  TogetherRunner& operator=(const TogetherRunner&) = delete;

  // `own` is the actor's own memory.
  void run(const Together& together, const Model& model, unsigned char* own);

  // The place of a rank's block that the actor knows, as an address in that rank.
  unsigned char* place(int block, mob_rank_t rank) const {
    return blocks_.at(block).places[static_cast<size_t>(rank)];
  }
  // Checks the actor's existing blocks at the end of a round.
  void check_blocks(const Model& model) const;
  // Checks, at the end of a program, that everything was freed.
  void check_gone() const;

 private:
  struct Block {
    unsigned char* own = nullptr;        // without the lead
    std::vector<unsigned char*> places;  // the same place in every rank
    Bytes memory;                        // exposed memory
    mob_exposed_t exposed = nullptr;
    mob_mem_t allocation = nullptr;
  };
  // Room for a buffer of a collective call.
  struct Area {
    Bytes bytes;
    void* shared = nullptr;
    size_t shared_bytes = 0;
  };

  mob_team_t team_of(const Together& together) const;
  mob_heap_t heap_of(const Together& together) const;

  // together_data.cpp
  void move_data(const Together& together, const Model& model, unsigned char* own);
  void call(const Together& together, const void* in, void* out);
  void reduce(const Together& together, const void* in, void* out);
  unsigned char* room(Area* area, const Buffer& buffer, size_t bytes);

  void split(const Together& together);
  void check_team(const Together& together, size_t which, mob_team_t made);
  void exclude(const Together& together);

  // together_memory.cpp
  void create_heap(const Together& together);
  void destroy_heap(const Together& together);
  void allocate(const Together& together);
  void allocate_in_heap(const Together& together, Block* block);
  void resize(const Together& together);
  void expose(const Together& together, Block* block);
  void withdraw(Block* block);
  void find(const Together& together, Block* block);
  void check_heap(const Together& together);
  void look(const Together& together, const Model& model);
  void drop(const Together& together);

  const Shape& shape_;
  const mob_rank_t rank_;
  const int lane_;
  const Places& places_;
  std::map<int, mob_team_t> teams_;  // by number, without that of the lane
  std::map<int, mob_heap_t> heaps_;
  std::map<int, Block> blocks_;
  Area in_;
  Area out_;
};

}  // namespace random_program
