// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Carries out, at the target, the packed messages of other hosts' schedulers: many operations on
// this process' memory, in order, with one answer.

#include <mobius/message.h>

#include "engine/pack_wire.h"

namespace mobius::schedule {
struct Arrived;
}  // namespace mobius::schedule

namespace mobius::engine {

class Engine;

class Packs {
 public:
  explicit Packs(Engine& engine) : engine_(engine) {}

  // Readies this process to be asked.
  void open();

 private:
  struct Whole;

  void serve(const mob_message_t& message, mob_delivery_t* delivery);
  void serve_pieces(mob_rank_t origin, const PackRequest& request, const unsigned char* bytes,
                    size_t count);
  mob_status_t carry_out(mob_rank_t origin, const schedule::Arrived& piece, bool is_checked,
                         unsigned char* answer);
  mob_status_t move(const schedule::Arrived& piece, bool is_checked, unsigned char* answer) const;
  mob_status_t combine(const schedule::Arrived& piece, unsigned char* answer);

  Engine& engine_;
};

}  // namespace mobius::engine
