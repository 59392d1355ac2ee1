// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Transfers that their target carries out: on memory that the origin has not mapped, where
// cross-memory attach is refused, has no such operation (accumulates, read-modify-write), or would
// be slower.
//
// The origin packs what the target needs into a block of its own shared memory, the stage, and
// sends a short message; the target's progress works straight from and to the stage and answers. No
// data passes through the rings.

#include <mobius/message.h>
#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/completion.h"
#include "engine/operation.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

class Engine;

class Served {
 public:
  explicit Served(Engine& engine) : engine_(engine) {}

  // Readies this process to serve, and to be answered. Called before memory is exposed, and by
  // run(). Any thread.
  mob_status_t require();

  // Starts a checked transfer, or runs it up to local completion in mode kBlocking.
  mob_status_t run(const char* call, const mob_transfer_t& transfer, const transport::Shape& shape,
                   Mode mode, uint64_t* handle);

  // mob_compare_swap8() and 4 on a word of the target.
  mob_status_t compare_swap(const char* call, mob_rank_t rank, void* remote, size_t bytes,
                            uint64_t expected, uint64_t desired, uint64_t* old);

 private:
  struct Request;
  struct Reply;
  struct Whole;
  struct Part;

  mob_status_t send_parts(const char* call, const mob_transfer_t& transfer,
                          const transport::Shape& shape, Whole& whole);
  mob_status_t send_box(const char* call, const mob_transfer_t& transfer,
                        const transport::Shape& shape, Whole& whole, bool last);
  mob_status_t send_runs(const char* call, const mob_transfer_t& transfer,
                         const std::vector<mob_span_t>& remote,
                         const std::vector<mob_span_t>& local, Whole& whole, bool last);
  mob_status_t make_stage(Part& part, size_t list_bytes, size_t data_bytes, size_t fetched_bytes);
  void release_stage(const Part& part);
  bool is_own_memory(const void* address, size_t bytes) const;
  mob_status_t send(const char* call, mob_rank_t rank, std::unique_ptr<Part> part,
                    Request& request);
  void finish_part(Whole& whole, mob_status_t status);

  // At the target.
  void serve(const mob_message_t& message);
  mob_status_t carry_out(mob_rank_t origin, const Request& request);
  mob_status_t check_remote(const Request& request, const transport::Shape& shape) const;
  static void compare_swap_here(const Request& request, void* old);

  // At the origin.
  void answered(const mob_message_t& message);

  Engine& engine_;
  std::once_flag registered_;
};

}  // namespace mobius::engine
