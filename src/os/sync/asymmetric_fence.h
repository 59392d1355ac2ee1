// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// One half of a full fence between two threads of a process, for the thread that needs it rarely.
// The other thread's half is a compiler barrier, which emits no instruction (mob_bias_enter_()).
// This half makes the kernel run a fence on every processor that runs a thread of this process
// (membarrier(2)), which takes some microseconds.

namespace mobius::os {

// Registers the process for heavy fences. Later calls have no effect. In a process of several
// threads the call may take tens of milliseconds, so call it where no thread waits. Any thread.
void prepare_heavy_fences();

// Whether the kernel has granted the registration. Never under ThreadSanitizer, which does not
// understand these fences.
bool has_heavy_fences();

// Requires has_heavy_fences().
void heavy_fence();

}  // namespace mobius::os
