// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mobius/mobius.h>

#include <cstdint>

namespace mobius_test {

// Runs each kind of operation between all pairs of members of a team, and checks what it did.
// `is_one_job`: no member is of another job. Those do not reach blocks of mob_local_alloc().
// Collective over the team. Prints each wrong result; returns how many there were.
int exercise(mob_team_t team, bool is_one_job = true);

// Memory of the segment that all processes of the job share.
uint64_t segment_bytes();

// How much a process holds of each resource that it could leak.
struct Resources {
  uint64_t segment_bytes;
  uint64_t address_space_bytes;
  uint64_t private_bytes;
  uint64_t descriptors;
};
Resources resources();
// Whether they are about the same as before `cycles` times a process came and went. A number is
// never given out again, and has some pages of its own. Prints what has grown.
bool has_not_grown(const Resources& before, int cycles);

// For operations that exercise() sends messages with: register before the first member calls it.
void register_exercise();

}  // namespace mobius_test
