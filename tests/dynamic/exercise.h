// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/mobius.h>

namespace mobius_test {

// Runs each kind of operation between all pairs of members of a team, and checks what it did.
// `is_one_job`: no member is of another job. Those do not reach blocks of mob_local_alloc().
// Collective over the team. Prints each wrong result; returns how many there were.
int exercise(mob_team_t team, bool is_one_job = true);

// For operations that exercise() sends messages with: register before the first member calls it.
void register_exercise();

}  // namespace mobius_test
