// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Copies any memory of another process of this host: through a mapping where there is one, else by
// the kernel (cross-memory attach).

#include <mobius/job.h>

#include <cstddef>
#include <cstdint>

namespace mobius::engine {

class Segment;

// `remote` of `rank` as a pointer in this process; null if it is not mapped here.
void* mapped(Segment& segment, mob_rank_t rank, uintptr_t remote, size_t bytes);

// Copies between this process and `rank`. 0 or an errno: ESRCH if that is gone, EFAULT if some of
// the memory is not there, EPERM if it is out of bounds. `local` is written unless `put`.
int copy_with_peer(Segment& segment, bool by_kernel, mob_rank_t rank, uintptr_t remote, void* local,
                   size_t bytes, bool put);

}  // namespace mobius::engine
