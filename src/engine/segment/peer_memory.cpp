// SPDX-License-Identifier: BSD-3-Clause
#include "engine/segment/peer_memory.h"

#include <algorithm>
#include <cerrno>

#include "engine/segment/segment.h"
#include "transport/cma/cma.h"
#include "transport/shm/copy_peer.h"

namespace mobius::engine {

void* mapped(Segment& segment, mob_rank_t rank, uintptr_t remote, size_t bytes) {
  void* address = reinterpret_cast<void*>(remote);
  return segment.peers().is_same_process(rank) ? address : segment.reach(rank, address, bytes);
}

int copy_with_peer(Segment& segment, bool by_kernel, mob_rank_t rank, uintptr_t remote, void* local,
                   size_t bytes, bool put) {
  void* direct = mapped(segment, rank, remote, bytes);
  if (direct != nullptr) {
    if (put) {
      transport::copy_to_peer(direct, local, bytes);
    } else {
      transport::copy_from_peer(local, direct, bytes);
    }
    return 0;
  }
  if (!by_kernel) return EPERM;
  // The kernel stops silently at 2 GiB less a page.
  constexpr size_t kMost = size_t{1} << 30;
  auto* here = static_cast<unsigned char*>(local);
  for (size_t done = 0; done < bytes; done += kMost) {
    const size_t part = std::min(kMost, bytes - done);
    if (const int error = transport::cma_copy(segment.peers().pid_of(rank), remote + done,
                                              here + done, part, put)) {
      return error;
    }
  }
  return 0;
}

}  // namespace mobius::engine
