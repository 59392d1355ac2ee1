// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Collective calls of much data on one host. The members read and write each other's peer buffers
// in place (peer_buffers.h) and share the copying evenly. Arguments are as in collective.h. `*done`
// stays false, with nothing done, if a member cannot lend its buffer.

#include <cstddef>

#include "engine/collective/collective.h"
#include "engine/collective/peer_buffers.h"

namespace mobius::engine {

mob_status_t broadcast_directly(PeerBuffers& buffers, mob_rank_t root, void* buffer, size_t bytes,
                                bool* done);
// `out` is null if the root discards the blocks. Each member's own block is in place already, here
// and below.
mob_status_t gather_directly(PeerBuffers& buffers, mob_rank_t root, const void* in, size_t mine,
                             void* out, const Blocks& blocks, bool* done);
mob_status_t allgather_directly(PeerBuffers& buffers, const void* in, void* out,
                                const Blocks& blocks, bool* done);
mob_status_t scatter_directly(PeerBuffers& buffers, mob_rank_t root, const void* in, void* out,
                              size_t bytes, bool* done);
mob_status_t alltoall_directly(PeerBuffers& buffers, const void* in, const Blocks& in_blocks,
                               void* out, const Blocks& out_blocks, bool* done);
mob_status_t fold_directly(PeerBuffers& buffers, FoldResult result, const Combiner& combine,
                           const void* in, void* out, size_t count, bool* done);

}  // namespace mobius::engine
