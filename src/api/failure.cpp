// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/failure.h>

#include "api/check.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it

int mob_rank_alive(mob_rank_t rank) {
  if (const mob_status_t status = api::check_rank("mob_rank_alive", rank)) return status;
  return engine::engine().peers().has_gone(rank) ? 0 : 1;
}
