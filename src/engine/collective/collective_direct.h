// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Collective calls of much data on one host: the members read and write each other's memory where
// it lies, each as much as the others (peer_buffers.h). Arguments are those of collective.h.
// `*done` stays false, with nothing done, where memory is not lent.

#include <cstddef>

#include "engine/collective/collective.h"
#include "engine/collective/peer_buffers.h"

namespace mobius::engine {

mob_status_t broadcast_directly(PeerBuffers& lending, mob_rank_t root, void* buffer, size_t bytes,
                                bool* done);
// `out` null at the root: it has no use for the blocks. Own blocks are in place here and below.
mob_status_t gather_directly(PeerBuffers& lending, mob_rank_t root, const void* in, size_t mine,
                             void* out, const Blocks& blocks, bool* done);
mob_status_t allgather_directly(PeerBuffers& lending, const void* in, void* out,
                                const Blocks& blocks, bool* done);
mob_status_t scatter_directly(PeerBuffers& lending, mob_rank_t root, const void* in, void* out,
                              size_t bytes, bool* done);
mob_status_t alltoall_directly(PeerBuffers& lending, const void* in, const Blocks& in_blocks,
                               void* out, const Blocks& out_blocks, bool* done);
mob_status_t fold_directly(PeerBuffers& lending, FoldResult result, const Combiner& combine,
                           const void* in, void* out, size_t count, bool* done);

}  // namespace mobius::engine
