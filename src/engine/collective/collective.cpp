// SPDX-License-Identifier: BSD-3-Clause
#include "engine/collective/collective.h"

#include <algorithm>
#include <vector>

#include "base/status.h"
#include "engine/collective/chunking.h"
#include "engine/collective/collective_direct.h"
#include "engine/collective/collective_tuning.h"
#include "engine/collective/inter_host.h"
#include "transport/shm/copy_peer.h"

namespace mobius::engine {
namespace {

using Bulk = Rounds::Bulk;
using Role = Rounds::Role;

// Copies a block that stays in this process. Often it is in place already.
void copy_own(void* to, const void* from, size_t bytes) {
  if (to != from) transport::copy(to, from, bytes);
}

// The number of bytes that a block of `bytes` bytes has in the piece at `offset`.
size_t part_of(size_t bytes, size_t offset, size_t piece) {
  return offset < bytes ? std::min(piece, bytes - offset) : 0;
}

mob_status_t broadcast_in_rounds(Team& team, mob_rank_t root, void* buffer, size_t bytes) {
  mob_status_t status = MOB_OK;
  Rounds& rounds = team.rounds();
  const bool is_root = team.rank() == root;
  const bool small = bytes <= kInlineBytes;
  const Pieces pieces(bytes, 1, kBulkBytes);
  for (size_t offset = 0; offset < bytes; offset += pieces.bytes()) {
    const size_t now = std::min(pieces.bytes(), bytes - offset);
    status = rounds.begin(is_root ? Role::kWrites : Role::kReads, small ? Bulk::kNone : Bulk::kNext,
                          pieces.bytes());
    if (status != MOB_OK) return status;
    unsigned char* shared = small ? rounds.line(root) : rounds.bulk(root);
    if (is_root) {
      transport::copy_part_to_peer(shared, bytes_of(buffer) + offset, now);
      rounds.post_to_all();
    } else {
      if ((status = rounds.await(root))) return status;
      rounds.fetch_of_later_round(root);
      transport::copy(bytes_of(buffer) + offset, shared, now);
    }
    rounds.end();
  }
  return MOB_OK;
}

// `out` is null at the root if the root discards the blocks.
mob_status_t gather_in_rounds(Team& team, mob_rank_t root, const void* in, size_t mine, void* out,
                              const Blocks& blocks, size_t largest) {
  const bool is_root = team.rank() == root;
  Rounds& rounds = team.rounds();
  const bool small = largest <= kInlineBytes;
  const Pieces pieces(largest, 1, kBulkBytes);
  for (size_t offset = 0; offset < largest; offset += pieces.bytes()) {
    mob_status_t status = rounds.begin(is_root ? Role::kReads : Role::kWrites,
                                       small ? Bulk::kNone : Bulk::kNext, pieces.bytes());
    if (status != MOB_OK) return status;
    if (!is_root) {
      const size_t now = part_of(mine, offset, pieces.bytes());
      unsigned char* shared = small ? rounds.line(team.rank()) : rounds.bulk(team.rank());
      if (now != 0) transport::copy_part_to_peer(shared, bytes_of(in) + offset, now);
      rounds.post_to(root);
    }
    for (mob_rank_t r = 0; is_root && r < team.size(); ++r) {
      if (r == root) continue;
      if ((status = rounds.await(r))) return status;
      const size_t now = part_of(blocks.size(r), offset, pieces.bytes());
      if (now == 0 || out == nullptr) continue;
      transport::copy(bytes_of(out) + blocks.at(r) + offset,
                      small ? rounds.line(r) : rounds.bulk(r), now);
    }
    rounds.end();
  }
  return MOB_OK;
}

mob_status_t allgather_in_rounds(Team& team, void* out, const Blocks& blocks) {
  const mob_rank_t me = team.rank();
  const size_t mine = blocks.size(me);
  const size_t largest = blocks.largest(team.size());
  mob_status_t status = MOB_OK;
  Rounds& rounds = team.rounds();
  const bool small = largest <= kInlineBytes;
  const Pieces pieces(largest, 1, kBulkBytes);
  for (size_t offset = 0; offset < largest; offset += pieces.bytes()) {
    status = rounds.begin(Role::kWrites, small ? Bulk::kNone : Bulk::kMet, pieces.bytes());
    if (status != MOB_OK) return status;
    const size_t own = part_of(mine, offset, pieces.bytes());
    if (own != 0) {
      transport::copy_part_to_peer(small ? rounds.line(me) : rounds.bulk(me),
                                   bytes_of(out) + blocks.at(me) + offset, own);
    }
    if ((status = rounds.meet())) return status;
    for (mob_rank_t i = 1; i < team.size(); ++i) {
      const mob_rank_t r = (me + i) % team.size();
      const size_t now = part_of(blocks.size(r), offset, pieces.bytes());
      if (now == 0) continue;
      transport::copy(bytes_of(out) + blocks.at(r) + offset,
                      small ? rounds.line(r) : rounds.bulk(r), now);
    }
    rounds.end();
  }
  return MOB_OK;
}

mob_status_t scatter_in_rounds(Team& team, mob_rank_t root, const void* in, void* out,
                               size_t bytes) {
  const Blocks blocks = Blocks::packed(bytes);
  const mob_rank_t me = team.rank();
  const bool is_root = me == root;
  Rounds& rounds = team.rounds();
  const auto members = static_cast<size_t>(team.size());
  const bool small = bytes <= kInlineBytes / members;
  const Pieces pieces(bytes, 1, kBulkBytes / members);
  for (size_t offset = 0; offset < bytes; offset += pieces.bytes()) {
    const size_t now = std::min(pieces.bytes(), bytes - offset);
    mob_status_t status = rounds.begin(is_root ? Role::kWrites : Role::kReads,
                                       small ? Bulk::kNone : Bulk::kNext, members * pieces.bytes());
    if (status != MOB_OK) return status;
    unsigned char* shared = small ? rounds.line(root) : rounds.bulk(root);
    if (is_root) {
      for (mob_rank_t r = 0; r < team.size(); ++r) {
        if (r == root) continue;
        transport::copy_part_to_peer(shared + static_cast<size_t>(r) * now,
                                     bytes_of(in) + blocks.at(r) + offset, now);
      }
      rounds.post_to_all();
    } else {
      if ((status = rounds.await(root))) return status;
      transport::copy(bytes_of(out) + offset, shared + static_cast<size_t>(me) * now, now);
    }
    rounds.end();
  }
  return MOB_OK;
}

mob_status_t alltoall_in_rounds(Team& team, const void* in, const Blocks& in_blocks, void* out,
                                const Blocks& out_blocks, size_t largest) {
  const mob_rank_t me = team.rank();
  const auto members = static_cast<size_t>(team.size());
  mob_status_t status = MOB_OK;
  Rounds& rounds = team.rounds();
  const bool small = largest <= kInlineBytes / members;
  const Pieces pieces(largest, 1, kBulkBytes / members);
  for (size_t offset = 0; offset < largest; offset += pieces.bytes()) {
    status =
        rounds.begin(Role::kWrites, small ? Bulk::kNone : Bulk::kMet, members * pieces.bytes());
    if (status != MOB_OK) return status;
    // Safe in place: each member copies a piece of its input out before it writes the others'
    // blocks over it.
    unsigned char* own = small ? rounds.line(me) : rounds.bulk(me);
    for (mob_rank_t r = 0; r < team.size(); ++r) {
      const size_t now = part_of(in_blocks.size(r), offset, pieces.bytes());
      if (r == me || now == 0) continue;
      transport::copy_part_to_peer(own + static_cast<size_t>(r) * pieces.bytes(),
                                   bytes_of(in) + in_blocks.at(r) + offset, now);
    }
    if ((status = rounds.meet())) return status;
    for (mob_rank_t i = 1; i < team.size(); ++i) {
      const mob_rank_t r = (me + i) % team.size();
      const size_t now = part_of(out_blocks.size(r), offset, pieces.bytes());
      if (now == 0) continue;
      transport::copy(
          bytes_of(out) + out_blocks.at(r) + offset,
          (small ? rounds.line(r) : rounds.bulk(r)) + static_cast<size_t>(me) * pieces.bytes(),
          now);
    }
    rounds.end();
  }
  return MOB_OK;
}

}  // namespace

size_t Blocks::largest(mob_rank_t members) const {
  return by_lists ? *std::max_element(counts, counts + members) : bytes;
}

mob_status_t broadcast(Team& team, mob_rank_t root, void* buffer, size_t bytes) {
  if (InterHost* const hosts = InterHost::of(team)) return hosts->broadcast(root, buffer, bytes);
  if (bytes == 0 || team.size() == 1) return MOB_OK;
  return take_faster_way(
      team, CollectiveKind::kBroadcast, bytes,
      [&](PeerBuffers& buffers, bool* done) {
        return broadcast_directly(buffers, root, buffer, bytes, done);
      },
      [&] { return broadcast_in_rounds(team, root, buffer, bytes); });
}

mob_status_t gather(Team& team, mob_rank_t root, const void* in, size_t mine, void* out,
                    const Blocks& blocks) {
  if (InterHost* const hosts = InterHost::of(team))
    return hosts->gather(root, in, mine, out, blocks);
  const bool is_root = team.rank() == root;
  size_t largest = mine;
  std::vector<size_t> sizes;
  if (blocks.by_lists) {
    // No member but its owner knows the size of a block.
    if (const mob_status_t status = team.exchange(mine, &sizes)) return status;
    largest = *std::ranges::max_element(sizes);
  }
  mob_status_t mismatch = MOB_OK;
  for (mob_rank_t r = 0; is_root && blocks.by_lists && r < team.size(); ++r) {
    const size_t sent = sizes[static_cast<size_t>(r)];
    if (sent == blocks.size(r) || mismatch != MOB_OK) continue;
    mismatch = base::fail(MOB_ERR_ARGUMENT,
                          "mob_gatherv: member %d passes %zu bytes but the root expects %zu", r,
                          sent, blocks.size(r));
  }
  void* const wanted = mismatch == MOB_OK ? out : nullptr;
  const mob_status_t status = gather_sized(team, root, in, mine, wanted, blocks, largest);
  return status != MOB_OK ? status : mismatch;
}

mob_status_t gather_sized(Team& team, mob_rank_t root, const void* in, size_t mine, void* out,
                          const Blocks& blocks, size_t largest) {
  if (team.rank() == root && out != nullptr) copy_own(bytes_of(out) + blocks.at(root), in, mine);
  if (largest == 0 || team.size() == 1) return MOB_OK;
  return take_faster_way(
      team, CollectiveKind::kGather, largest,
      [&](PeerBuffers& buffers, bool* done) {
        return gather_directly(buffers, root, in, mine, out, blocks, done);
      },
      [&] { return gather_in_rounds(team, root, in, mine, out, blocks, largest); });
}

mob_status_t allgather(Team& team, const void* in, void* out, const Blocks& blocks) {
  if (InterHost* const hosts = InterHost::of(team)) return hosts->allgather(in, out, blocks);
  const mob_rank_t me = team.rank();
  const size_t mine = blocks.size(me);
  const size_t largest = blocks.largest(team.size());
  copy_own(bytes_of(out) + blocks.at(me), in, mine);
  if (largest == 0 || team.size() == 1) return MOB_OK;
  return take_faster_way(
      team, CollectiveKind::kAllgather, largest,
      [&](PeerBuffers& buffers, bool* done) {
        return allgather_directly(buffers, in, out, blocks, done);
      },
      [&] { return allgather_in_rounds(team, out, blocks); });
}

mob_status_t scatter(Team& team, mob_rank_t root, const void* in, void* out, size_t bytes) {
  if (InterHost* const hosts = InterHost::of(team)) return hosts->scatter(root, in, out, bytes);
  const Blocks blocks = Blocks::packed(bytes);
  const mob_rank_t me = team.rank();
  const bool is_root = me == root;
  if (is_root) copy_own(out, bytes_of(in) + blocks.at(me), bytes);
  if (bytes == 0 || team.size() == 1) return MOB_OK;
  return take_faster_way(
      team, CollectiveKind::kScatter, bytes,
      [&](PeerBuffers& buffers, bool* done) {
        return scatter_directly(buffers, root, in, out, bytes, done);
      },
      [&] { return scatter_in_rounds(team, root, in, out, bytes); });
}

mob_status_t alltoall(Team& team, const void* in, const Blocks& in_blocks, void* out,
                      const Blocks& out_blocks) {
  if (InterHost* const hosts = InterHost::of(team))
    return hosts->alltoall(in, in_blocks, out, out_blocks);
  const mob_rank_t me = team.rank();
  size_t largest = std::max(in_blocks.largest(team.size()), out_blocks.largest(team.size()));
  mob_status_t status = MOB_OK;
  if (in_blocks.by_lists) {
    std::vector<size_t> all;
    if ((status = team.exchange(largest, &all))) return status;
    largest = *std::ranges::max_element(all);
  }
  copy_own(bytes_of(out) + out_blocks.at(me), bytes_of(in) + in_blocks.at(me), in_blocks.size(me));
  if (team.size() == 1) return MOB_OK;
  return take_faster_way(
      team, CollectiveKind::kAlltoall, largest,
      [&](PeerBuffers& buffers, bool* done) {
        return alltoall_directly(buffers, in, in_blocks, out, out_blocks, done);
      },
      [&] { return alltoall_in_rounds(team, in, in_blocks, out, out_blocks, largest); });
}

}  // namespace mobius::engine
