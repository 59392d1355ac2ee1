// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/failure.h>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it

int mob_rank_alive(mob_rank_t rank) {
  if (const mob_status_t status = api::check_rank("mob_rank_alive", rank)) return status;
  engine::Engine& engine = engine::engine();
  const mob_rank_t index = engine::Engine::host_index(rank);
  return engine.liveness().is_dead(index) || engine.liveness().has_left(index) ? 0 : 1;
}
