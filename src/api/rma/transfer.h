// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/transfer.h>

#include "engine/transfer/router.h"

namespace mobius::api {

// Checks state and rank and runs a transfer. Every named put, get and accumulate that is not done
// directly ends here. `handle` is for mode kHandle.
mob_status_t run_transfer(const char* call, const mob_transfer_t& transfer,
                          engine::Mode mode = engine::Mode::kBlocking,
                          mob_handle_t* handle = nullptr);

}  // namespace mobius::api
