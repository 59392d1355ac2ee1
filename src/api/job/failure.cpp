// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/failure.h>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it

int mob_rank_alive(mob_rank_t rank) {
  if (const mob_status_t status = api::check_rank("mob_rank_alive", rank)) return status;
  const engine::EngineOf at = engine::engine_of(rank);
  return at.engine.peers().has_gone(at.rank) ? 0 : 1;
}
