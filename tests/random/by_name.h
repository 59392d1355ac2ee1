// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/mobius.h>

#include "random/program.h"

namespace random_program {

// Carries out a transfer by the call that is named after its kind and shape. False if there is no
// such call.
bool call_by_name(const mob_transfer_t& transfer, Mode mode, mob_handle_t* handle,
                  mob_status_t* status);

}  // namespace random_program
