// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Cross-memory attach: the kernel copies between this process and another one of the same user,
// which takes no part. Any readable or writable memory of the other will do.

#include <mobius/status.h>

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "transport/shm/shape.h"

namespace mobius::transport {

// Copies one stretch. 0 or an errno as below. `local` is written unless `put`.
int cma_copy(pid_t pid, uintptr_t remote, const void* local, size_t bytes, bool put);

// Gets a shape from, or puts it into, the memory of process `pid`. 0, or the errno of the first
// system call that failed: EFAULT if some of the memory is not there (what lies before it was
// copied), ESRCH if the process is gone, EPERM if it is out of bounds for us.
int cma_put(pid_t pid, const Shape& shape);
// Reading a byte of a gap costs a twentieth of a nanosecond, a piece about 150 ns on top of its
// bytes.
inline constexpr size_t kWorthwhileGapBytes = 2048;
// Where runs lie so close to each other, whole stretches are read, gaps included, and taken apart
// here; `may_read_gaps` says whether all between the first and the last byte is the target's to
// read.
int cma_get(pid_t pid, const Shape& shape, bool may_read_gaps);

// Pieces that a put, or a get (see there), hands to the kernel.
size_t cma_put_pieces(const Shape& shape);
size_t cma_get_pieces(const Shape& shape, bool may_read_gaps);

}  // namespace mobius::transport
