// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// How a described transfer is carried out: checked, routed, moved, announced.

#include <mobius/transfer.h>

#include <cstddef>
#include <cstdint>

#include "engine/operation.h"
#include "transport/shm/accumulate.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

class Engine;

// Checks and routes operations, and is the last carrier of the chain: the one that moves bytes.
class Transfers final : private Carrier {
 public:
  explicit Transfers(Engine& engine) : engine_(engine) {}

  // Runs one transfer. `*handle` is written in mode kHandle only.
  mob_status_t run(const char* call, const mob_transfer_t& transfer, Mode mode, uint64_t* handle);

  // Runs one update, whose word is reached already.
  mob_status_t run(const WordUpdate& update) { return first_->update(update); }

  // mob_fence() where it is not a fence of this processor alone.
  mob_status_t fence() { return first_->order(); }

  // Pushes on what is under way; whether there was anything to do.
  bool poll() { return hooked() && first_->progress(); }

  // Whether operations must come here rather than be done on the spot by their callers.
  bool hooked() const { return first_ != this; }

  // Combines elements of `rank`, which are reached at their address plus `remote_delta`, under the
  // locks of that rank.
  void accumulate(mob_rank_t rank, const transport::Shape& shape, ptrdiff_t remote_delta,
                  const transport::Combination& combination);

 private:
  mob_status_t carry(const Operation& operation) override;
  mob_status_t update(const WordUpdate& update) override;
  mob_status_t order() override { return MOB_OK; }
  bool progress() override { return false; }

  mob_status_t resolve_notice(const char* call, const mob_transfer_t& transfer, Notice* notice);
  bool reach_all(mob_rank_t rank, const transport::Shape& shape, ptrdiff_t* delta);
  mob_status_t explain(const char* call, mob_rank_t rank, const transport::Shape& shape);
  void announce(const mob_transfer_t& transfer, const Notice& notice);

  Engine& engine_;
  Carrier* first_ = this;
};

}  // namespace mobius::engine
