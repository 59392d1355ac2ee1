// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <new>

#include "engine/common/out_of_memory.h"
#include "engine/team/team.h"

namespace mobius::engine {

// For a collective call. If this member cannot go on, it tells the other members, which would
// otherwise wait for it until its next call.
template <typename Call>
mob_status_t together(const char* name, Team& team, Call call) {
  return without_exceptions(name, [&] {
    try {
      return call();
    } catch (const std::bad_alloc&) {
      team.resign();
      throw;
    }
  });
}

}  // namespace mobius::engine
