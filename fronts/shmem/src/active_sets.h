// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Active sets, by which OpenSHMEM named PEs before it had teams: PE_start, PE_start +
// 2^logPE_stride, and so on, PE_size of them.

#include <mobius/team.h>

namespace mobius::shmem {

// The team of an active set. The first call for a set makes it, in all its PEs and by means of
// pSync, and it is kept: the PEs of a set make the same calls for it.
mob_team_t team_of_active_set(int start, int log_stride, int size, long* p_sync, const char* call);

void forget_active_sets();

}  // namespace mobius::shmem
