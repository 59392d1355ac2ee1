// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Hooks: carriers that stand in front of another one to watch, delay, reorder or refuse what goes
// through. MOBIUS_HOOKS chooses them. While there is any, every operation comes this way: nothing
// is inlined, and flushes and fences go out of line.

#include "engine/rma/operation.h"

namespace mobius::engine {

// Passes everything on; hooks override what they are for. Any thread.
class Hook : public Carrier {
 public:
  explicit Hook(Carrier& next) : next_(next) {}

  mob_status_t carry(const Operation& operation) override { return next_.carry(operation); }
  mob_status_t update(const WordUpdate& update) override { return next_.update(update); }
  mob_status_t order() override { return next_.order(); }
  bool progress() override { return next_.progress(); }

  // The end of the job: nothing is carried any more. Reports go out here.
  virtual void finish() {}

 protected:
  Carrier& next_;
};

}  // namespace mobius::engine
