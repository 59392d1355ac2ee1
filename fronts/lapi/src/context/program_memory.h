// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Exposure of the program's memory as a target.

#include <mobius/status.h>

namespace lapi {

// Makes all memory of the process a target. Moves its static variables and its heap into shared
// memory, so that local peers access them without the kernel, unless the program has a thread that
// cannot be stopped for that moment.
mob_status_t expose_program();
void withdraw_program();

}  // namespace lapi
