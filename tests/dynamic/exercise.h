// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/mobius.h>

namespace mobius_test {

// Runs each kind of operation between all pairs of members of a team, and checks what it did.
// `reaches_blocks`: members reach each other's blocks of mob_local_alloc().
// Collective over the team. Prints each wrong result; returns how many there were.
int exercise(mob_team_t team, bool reaches_blocks = true);

// For operations that exercise() sends messages with: register before the first member calls it.
void register_exercise();

}  // namespace mobius_test
