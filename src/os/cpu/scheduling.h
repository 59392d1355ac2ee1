// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sched.h>

namespace mobius::os {

// For a thread that works for a moment whenever it is woken: asks the kernel to run it at once
// beside a computing thread, instead of when that thread has used up its time slice, which takes
// milliseconds. The thread's share of the processor does not grow. Has no effect on kernels before
// Linux 6.12, or if the thread's scheduling policy has no slices.
void ask_for_short_slices();

// The number of the processor on which the calling thread runs; -1 if unknown. The thread may run
// on another one by the time the caller reads the number.
int own_processor();

// Moves the calling thread to that processor, one of those where it is allowed. Restores the set of
// allowed processors afterwards. If another thread changes this thread's set in between, that
// change is lost.
void move_to_processor(int processor, const cpu_set_t& allowed);

}  // namespace mobius::os
