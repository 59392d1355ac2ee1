// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Two fences that make one full fence between two threads of a process, where one of them comes
// often and the other hardly ever: the light one keeps the compiler from moving accesses and is no
// instruction; the heavy one has the kernel run a fence on every processor that runs a thread of
// this process (membarrier(2)), which takes some microseconds.

#include <atomic>

namespace mobius::os {

inline void light_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// Asks the kernel for heavy fences; once per process, again without effect. In a process of several
// threads that may take tens of milliseconds: call it where nobody waits. Any thread.
void prepare_heavy_fences();

// Whether that was done and granted. Never under ThreadSanitizer, which knows nothing of them.
bool has_heavy_fences();

// Only where has_heavy_fences().
void heavy_fence();

}  // namespace mobius::os
