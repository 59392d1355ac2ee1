// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace mobius::os {

// For a thread that works for a moment at a time when it is woken: has the kernel let it run at
// once beside a thread that computes, instead of when that has used up its time slice, which takes
// milliseconds. It gets no larger share of the processor. Nothing happens where the kernel (before
// Linux 6.12) or the thread's scheduling policy knows no such wish.
void ask_for_short_slices();

// The processor that the calling thread runs on, by number; -1 where nobody knows. It may run on
// another one by the time the caller looks.
int own_processor();

}  // namespace mobius::os
