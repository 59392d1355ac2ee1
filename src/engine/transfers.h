// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How a described transfer is carried out: checked, routed, moved, announced.

#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>

#include "transport/shm/accumulate.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

class Engine;

// Who is told of a transfer, as pointers here; null for nobody.
struct Notice {
  mob_counter* origin = nullptr;
  mob_counter* target = nullptr;
  mob_counter* completion = nullptr;
  uint64_t* signal = nullptr;
};

class Transfers {
 public:
  explicit Transfers(Engine& engine) : engine_(engine) {}

  // Up to where a call waits: local completion, or a start with a handle, or a start that only the
  // context remembers.
  enum class Mode { kBlocking, kHandle, kImplicit };

  // Runs one transfer. `*handle` is written in mode kHandle only.
  mob_status_t run(const char* call, const mob_transfer_t& transfer, Mode mode, uint64_t* handle);

  // Combines elements of `rank`, which are reached at their address plus `remote_delta`, under the
  // locks of that rank.
  void accumulate(mob_rank_t rank, const transport::Shape& shape, ptrdiff_t remote_delta,
                  const transport::Combination& combination);

 private:
  mob_status_t resolve_notice(const char* call, const mob_transfer_t& transfer, Notice* notice);
  bool reach_all(mob_rank_t rank, const transport::Shape& shape, ptrdiff_t* delta);
  mob_status_t explain(const char* call, mob_rank_t rank, const transport::Shape& shape);
  void announce(const mob_transfer_t& transfer, const Notice& notice);

  Engine& engine_;
};

}  // namespace mobius::engine
