// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/move.h"

#include "transport/shm/copy.h"
#include "transport/shm/kernels.h"

namespace mobius::transport {
namespace {

template <bool kToRemote>
void move_run(char* remote, char* local, size_t bytes) {
  if constexpr (kToRemote) {
    copy(remote, local, bytes);
  } else {
    copy(local, remote, bytes);
  }
}

// Boxes larger than the caches stream as contiguous copies do, unless their runs are so short that
// most lines would be written in two parts.
constexpr size_t kStreamRunBytes = 512;

template <bool kToRemote>
void move_box(const Shape& shape, ptrdiff_t remote_delta, bool streams) {
  const auto move_rows = streams ? kernels().stream : kernels().move_rows;
  for_each_row(shape, [&](char* remote, char* local) {
    remote += remote_delta;
    if constexpr (kToRemote) {
      move_rows({.to = remote,
                 .from = local,
                 .to_stride = shape.remote_strides[0],
                 .from_stride = shape.local_strides[0],
                 .count = shape.counts[0]},
                shape.run_bytes);
    } else {
      move_rows({.to = local,
                 .from = remote,
                 .to_stride = shape.local_strides[0],
                 .from_stride = shape.remote_strides[0],
                 .count = shape.counts[0]},
                shape.run_bytes);
    }
    return MOB_OK;
  });
}

template <bool kToRemote>
void move_shape(const Shape& shape, ptrdiff_t remote_delta) {
  if (shape.kind == MOB_STRIDED) {
    const bool streams =
        shape.run_bytes >= kStreamRunBytes && shape.total_bytes >= copy_tuning().stream_from_bytes;
    if (streams || shape.run_bytes <= kRowBytesMax) {
      move_box<kToRemote>(shape, remote_delta, streams);
      return;
    }
  }
  for_each_run(shape, [remote_delta](char* remote, char* local, size_t bytes) {
    move_run<kToRemote>(remote + remote_delta, local, bytes);
    return MOB_OK;
  });
}

}  // namespace

void move(const Shape& shape, ptrdiff_t remote_delta, bool to_remote) {
  if (shape.total_bytes == 0) return;
  if (to_remote) {
    move_shape<true>(shape, remote_delta);
  } else {
    move_shape<false>(shape, remote_delta);
  }
}

}  // namespace mobius::transport
