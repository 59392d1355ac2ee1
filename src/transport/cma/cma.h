// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Cross-memory attach: the kernel copies between this process and another process of the same user,
// which takes no part. Any readable or writable memory of the other process can be accessed.

#include <mobius/status.h>

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "transport/shm/shape.h"

namespace mobius::transport {

// Where only ancestors may attach to a process (Yama), lets all processes of the user attach to
// this one.
void allow_attach();

// Copies one contiguous range. Returns 0 or an errno as below. `local` is written unless `put`.
int cma_copy(pid_t pid, uintptr_t remote, const void* local, size_t bytes, bool put);

// Gets a shape from the memory of process `pid`, or puts it there. Returns 0, or the errno of the
// first system call that failed: EFAULT if some of the memory is not mapped (bytes before it were
// copied), ESRCH if the process is gone, EPERM if this process may not attach to it.
int cma_put(pid_t pid, const Shape& shape);
// Reading a byte of a gap costs a twentieth of a nanosecond; a piece costs about 150 ns besides its
// bytes.
inline constexpr size_t kWorthwhileGapBytes = 2048;
// Where runs lie close together, it reads whole spans, gaps included, and copies the runs out.
// `may_read_gaps` permits that: then everything between the first and the last byte belongs to the
// target.
int cma_get(pid_t pid, const Shape& shape, bool may_read_gaps);

// Number of pieces that a put, or a get without spans, hands to the kernel.
size_t cma_put_pieces(const Shape& shape);
size_t cma_get_pieces(const Shape& shape, bool may_read_gaps);

}  // namespace mobius::transport
