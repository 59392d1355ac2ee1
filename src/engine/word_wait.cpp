// SPDX-License-Identifier: BSD-3-Clause
#include "engine/word_wait.h"

#include "base/status.h"

namespace mobius::engine {

mob_status_t AnyDeathWatch::look() {
  const mob_rank_t mates = engine_.host().size();
  for (mob_rank_t index = 0; index < mates; ++index) {
    if (!engine_.liveness().is_dead(index)) continue;
    return base::fail(MOB_ERR_PEER,
                      "%s: rank %d died; if others are to change what is waited for, wait again",
                      call_, index);
  }
  return MOB_OK;
}

}  // namespace mobius::engine
