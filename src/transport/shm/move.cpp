// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/move.h"

#include <cstring>

#include "transport/shm/copy_peer.h"
#include "transport/shm/kernels/kernels.h"

namespace mobius::transport {
namespace {

template <bool kToRemote>
void move_run(char* remote, char* local, size_t bytes) {
  if constexpr (kToRemote) {
    copy_to_peer(remote, local, bytes);
  } else {
    copy_from_peer(local, remote, bytes);
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

// Runs of kBytes bytes or, if that is 0, of `bytes(i)`; run i is at there(i) and here(i).
template <bool kToRemote, size_t kBytes, typename There, typename Here, typename Bytes>
void move_each(size_t count, There there, Here here, Bytes bytes) {
  for (size_t i = 0; i < count; ++i) {
    if constexpr (kBytes == 0) {
      move_run<kToRemote>(there(i), here(i), bytes(i));
    } else if constexpr (kToRemote) {
      std::memcpy(there(i), here(i), kBytes);
    } else {
      std::memcpy(here(i), there(i), kBytes);
    }
  }
}

// Runs of equal length. A short run costs a load and a store besides finding its places.
template <bool kToRemote, typename There, typename Here>
void move_even(size_t count, size_t bytes, There there, Here here) {
  const auto length = [bytes](size_t) { return bytes; };
  switch (bytes) {
    case 4:
      return move_each<kToRemote, 4>(count, there, here, length);
    case 8:
      return move_each<kToRemote, 8>(count, there, here, length);
    case 16:
      return move_each<kToRemote, 16>(count, there, here, length);
    case 32:
      return move_each<kToRemote, 32>(count, there, here, length);
    default:
      return move_each<kToRemote, 0>(count, there, here, length);
  }
}

// Moves lists whose runs need not be cut; false for other shapes.
template <bool kToRemote>
bool move_list(const Shape& shape, ptrdiff_t remote_delta) {
  const auto reached = [remote_delta](void* remote) {
    return static_cast<char*>(remote) + remote_delta;
  };
  if (shape.kind == MOB_PIECES) {
    // Copies of the shape's members: for all the compiler knows, the stores could change the shape.
    move_even<kToRemote>(
        shape.piece_count, shape.run_bytes,
        [=, remotes = shape.remotes](size_t i) { return reached(remotes[i]); },
        [locals = shape.locals](size_t i) { return static_cast<char*>(locals[i]); });
    return true;
  }
  if (shape.kind != MOB_SPANS) return false;
  const mob_span_t* remotes = shape.remote_spans;
  const mob_span_t* locals = shape.local_spans;
  const size_t bytes = shape.run_bytes;
  const auto there = [=](size_t i) { return reached(remotes[i].address); };
  const auto here = [=](size_t i) { return static_cast<char*>(locals[i].address); };
  if (shape.is_paired && bytes != 0) {
    move_even<kToRemote>(shape.remote_span_count, bytes, there, here);
  } else if (shape.is_paired) {
    move_each<kToRemote, 0>(shape.remote_span_count, there, here,
                            [=](size_t i) { return remotes[i].bytes; });
  } else if (bytes == 0) {
    return false;
  } else if (shape.local_span_count == 1) {
    move_even<kToRemote>(shape.remote_span_count, bytes, there,
                         [=, packed = here(0)](size_t i) { return packed + i * bytes; });
  } else {
    move_even<kToRemote>(
        shape.local_span_count, bytes,
        [=, packed = there(0)](size_t i) { return packed + i * bytes; }, here);
  }
  return true;
}

template <bool kToRemote>
void move_shape(const Shape& shape, ptrdiff_t remote_delta) {
  if (move_list<kToRemote>(shape, remote_delta)) return;
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
