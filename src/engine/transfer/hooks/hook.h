// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Hooks: carriers in front of another carrier that watch, delay, reorder or refuse operations.
// MOBIUS_HOOKS chooses them. With any hook every operation passes through here: nothing is inlined,
// and flushes and fences go out of line.

#include "engine/rma/operation.h"

namespace mobius::engine {

// Passes everything on; derived hooks override some functions. Any thread.
class Hook : public Carrier {
 public:
  explicit Hook(Carrier& next) : next_(next) {}

  mob_status_t carry(const Operation& operation) override { return next_.carry(operation); }
  mob_status_t update(const WordUpdate& update) override { return next_.update(update); }
  mob_status_t order() override { return next_.order(); }
  bool progress() override { return next_.progress(); }

  // End of the job: nothing is carried any more. Prints reports.
  virtual void finish() {}

 protected:
  Carrier& next_;
};

}  // namespace mobius::engine
