// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Carries out the steps of one actor with the library.

#include <cstdint>
#include <string>
#include <vector>

#include "random/model.h"
#include "random/places.h"
#include "random/program.h"
#include "random/report.h"
#include "random/together_runner.h"

namespace random_program {

// Handlers that every rank registers before it runs programs.
enum Handler : unsigned {
  kPlace,   // the header is the payload's address
  kArrive,  // for synchronisation
};
void place_payload(const mob_message_t* message, void* argument, mob_delivery_t* delivery);

class ActorRunner {
 public:
  ActorRunner(const Shape& shape, Actor self, const Places& places);
  ~ActorRunner();
  ActorRunner(const ActorRunner&) = delete;
  ActorRunner& operator=(const ActorRunner&) = delete;

  mob_counter_t told() const { return told_; }
  const std::vector<uint64_t>& log() const { return log_; }

  void start(const Program& program);
  void run(const Round& round, const Model& model);
  void check_local(const Model& model) const;
  void finish();

 private:
  void run(const Step& step, const Model& model);
  void transfer(const Step& step);
  void start_transfer(const Step& step, const mob_transfer_t& transfer);
  mob_status_t send(const Step& step, const mob_transfer_t& transfer, mob_handle_t* handle);
  void update(const Step& step);
  void chain(const Step& step);
  uint64_t locked_update(const Step& step);
  uint64_t chain_of_compare_swaps(const Step& step);
  void complete(const Step& step);
  void await_flags(const Step& step, const Model& model);
  void check_flag(const Step& step, size_t word, const Model& model) const;
  void await(const Step& step, const Model& model);
  void await_counter(mob_counter_t counter, uint64_t count, const char* which);
  unsigned char* at(mob_rank_t rank, size_t offset, int block = -1) const {
    return (block < 0 ? places_.parts[static_cast<size_t>(rank)] : together_.place(block, rank)) +
           offset;
  }

  const Shape& shape_;
  const Actor self_;
  const mob_rank_t rank_;
  const Places& places_;
  TogetherRunner together_;
  const Round* round_ = nullptr;
  mob_counter_t told_ = nullptr;
  mob_counter_t origin_ = nullptr;
  mob_counter_t completion_ = nullptr;
  mob_context_t context_ = MOB_CONTEXT_DEFAULT;
  Bytes local_;
  std::vector<Bytes> anything_;  // results that this round fetches and does not compare
  std::vector<mob_handle_t> handles_;
  std::vector<uint64_t> log_;
};

}  // namespace random_program
