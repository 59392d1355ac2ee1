// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sched.h>

namespace mobius::os {

// For a thread that works for a moment at a time when it is woken: has the kernel let it run at
// once beside a thread that computes, instead of when that has used up its time slice, which takes
// milliseconds. It gets no larger share of the processor. Nothing happens where the kernel (before
// Linux 6.12) or the thread's scheduling policy knows no such wish.
void ask_for_short_slices();

// The processor that the calling thread runs on, by number; -1 where nobody knows. It may run on
// another one by the time the caller looks.
int own_processor();

// Has the calling thread go on on that processor, of those where it is allowed, which stays so:
// what is changed for a moment is put back. A change that somebody else makes to this thread's
// processors in that moment is lost.
void move_to_processor(int processor, const cpu_set_t& allowed);

}  // namespace mobius::os
