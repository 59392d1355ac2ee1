// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What of a program's memory is a target, and how fast.

#include <mobius/status.h>

namespace lapi {

// Makes all memory of the process a target. Its static variables and its heap move into shared
// memory, so that host-mates reach them without the kernel, unless the program has a thread that
// cannot be stopped for that moment.
mob_status_t expose_program();
void withdraw_program();

}  // namespace lapi
