// SPDX-License-Identifier: BSD-3-Clause
#include "engine/collective/collective_direct.h"

#include <algorithm>
#include <memory>

#include "engine/collective/chunking.h"
#include "engine/collective/peer_buffers.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

// The two ends of a copy share it in whole pages, the unit in which the kernel copies.
constexpr size_t kPage = 4096;

bool all_lend(const PeerBuffers& buffers, PeerBuffer PeerBufferList::* which) {
  for (mob_rank_t r = 0; r < buffers.team().size(); ++r) {
    if ((buffers.of(r).*which).kind == PeerBuffer::Kind::kNone) return false;
  }
  return true;
}

// How the root and the n - 1 other members share the copying between them: each of the others
// copies this many leading bytes of its own block, and the root copies the rest of every block. All
// n then copy equally much.
size_t dealt_to_others(size_t bytes, mob_rank_t members) {
  const size_t rest = bytes / static_cast<size_t>(members);
  return bytes - rest / kPage * kPage;
}

}  // namespace

mob_status_t broadcast_directly(PeerBuffers& buffers, mob_rank_t root, void* buffer, size_t bytes,
                                bool* done) {
  const Team& team = buffers.team();
  const PeerBuffer mine = buffers.lend(buffer, bytes);
  if (const mob_status_t status = buffers.exchange({mine, mine, {}})) return status;
  const PeerBuffer from = buffers.of(root).in;
  if (!(*done = from.kind != PeerBuffer::Kind::kNone)) return MOB_OK;
  const size_t theirs = dealt_to_others(bytes, team.size());
  const bool is_root = team.rank() == root;
  if (!is_root) {
    const bool is_written = buffers.of(team.rank()).out.kind != PeerBuffer::Kind::kNone;
    buffers.get(root, from, 0, buffer, is_written ? theirs : bytes);
  }
  for (mob_rank_t r = 0; is_root && r < team.size(); ++r) {
    const PeerBuffer to = buffers.of(r).out;
    if (r == root || to.kind == PeerBuffer::Kind::kNone) continue;
    buffers.put(r, to, theirs, bytes_of(buffer) + theirs, bytes - theirs);
  }
  return buffers.settle();
}

mob_status_t gather_directly(PeerBuffers& buffers, mob_rank_t root, const void* in, size_t mine,
                             void* out, const Blocks& blocks, bool* done) {
  const Team& team = buffers.team();
  const bool is_root = team.rank() == root;
  PeerBufferList offered{buffers.lend(in, mine), {}, {}};
  // With lists only the root knows where blocks go, so it copies them all.
  const size_t bytes = blocks.by_lists ? 0 : blocks.bytes;
  if (is_root && bytes != 0) {
    offered.out = buffers.lend(out, static_cast<size_t>(team.size()) * bytes);
  }
  if (const mob_status_t status = buffers.exchange(offered)) return status;
  if (!(*done = all_lend(buffers, &PeerBufferList::in))) return MOB_OK;
  const PeerBuffer to = buffers.of(root).out;
  const bool shares = to.kind != PeerBuffer::Kind::kNone;
  const size_t theirs = dealt_to_others(bytes, team.size());
  if (!is_root && shares) buffers.put(root, to, blocks.at(team.rank()), in, theirs);
  for (mob_rank_t r = 0; is_root && out != nullptr && r < team.size(); ++r) {
    if (r == root) continue;
    const size_t from = shares ? theirs : 0;
    buffers.get(r, buffers.of(r).in, from, bytes_of(out) + blocks.at(r) + from,
                blocks.size(r) - from);
  }
  return buffers.settle();
}

mob_status_t allgather_directly(PeerBuffers& buffers, const void* in, void* out,
                                const Blocks& blocks, bool* done) {
  const Team& team = buffers.team();
  const mob_rank_t me = team.rank();
  const PeerBuffer mine = buffers.lend(in, blocks.size(me));
  if (const mob_status_t status = buffers.exchange({mine, {}, {}})) return status;
  if (!(*done = all_lend(buffers, &PeerBufferList::in))) return MOB_OK;
  for (mob_rank_t i = 1; i < team.size(); ++i) {
    const mob_rank_t r = (me + i) % team.size();  // members start with different peers
    buffers.get(r, buffers.of(r).in, 0, bytes_of(out) + blocks.at(r), blocks.size(r));
  }
  return buffers.settle();
}

mob_status_t scatter_directly(PeerBuffers& buffers, mob_rank_t root, const void* in, void* out,
                              size_t bytes, bool* done) {
  const Team& team = buffers.team();
  const mob_rank_t me = team.rank();
  const bool is_root = me == root;
  const Blocks blocks = Blocks::packed(bytes);
  PeerBufferList offered{{}, buffers.lend(out, bytes), {}};
  if (is_root) offered.in = buffers.lend(in, static_cast<size_t>(team.size()) * bytes);
  if (const mob_status_t status = buffers.exchange(offered)) return status;
  const PeerBuffer from = buffers.of(root).in;
  if (!(*done = from.kind != PeerBuffer::Kind::kNone)) return MOB_OK;
  const size_t theirs = dealt_to_others(bytes, team.size());
  if (!is_root) {
    buffers.get(root, from, blocks.at(me), out,
                buffers.of(me).out.kind == PeerBuffer::Kind::kNone ? bytes : theirs);
  }
  for (mob_rank_t r = 0; is_root && r < team.size(); ++r) {
    const PeerBuffer to = buffers.of(r).out;
    if (r == root || to.kind == PeerBuffer::Kind::kNone) continue;
    buffers.put(r, to, theirs, bytes_of(in) + blocks.at(r) + theirs, bytes - theirs);
  }
  return buffers.settle();
}

mob_status_t alltoall_directly(PeerBuffers& buffers, const void* in, const Blocks& in_blocks,
                               void* out, const Blocks& out_blocks, bool* done) {
  const Team& team = buffers.team();
  const mob_rank_t me = team.rank();
  PeerBufferList offered;
  // In place, members would overwrite blocks that others still have to read.
  if (in != out) {
    size_t end = 0;
    for (mob_rank_t r = 0; r < team.size(); ++r) {
      end = std::max(end, in_blocks.at(r) + in_blocks.size(r));
    }
    offered.in = buffers.lend(in, end);
    // With lists only the owner of a block knows where it lies.
    if (in_blocks.by_lists) {
      offered.list =
          buffers.lend(in_blocks.displacements, static_cast<size_t>(team.size()) * sizeof(size_t));
    }
  }
  if (const mob_status_t status = buffers.exchange(offered)) return status;
  *done = all_lend(buffers, &PeerBufferList::in) &&
          (!in_blocks.by_lists || all_lend(buffers, &PeerBufferList::list));
  if (!*done) return MOB_OK;
  for (mob_rank_t i = 1; i < team.size(); ++i) {
    const mob_rank_t r = (me + i) % team.size();
    const size_t bytes = out_blocks.size(r);
    if (bytes == 0) continue;
    size_t at = in_blocks.at(me);
    if (in_blocks.by_lists) {
      const size_t place = static_cast<size_t>(me) * sizeof at;
      buffers.get(r, buffers.of(r).list, place, &at, sizeof at);
    }
    buffers.get(r, buffers.of(r).in, at, bytes_of(out) + out_blocks.at(r), bytes);
  }
  return buffers.settle();
}

namespace {

// Every member combines one slice of all members' vectors and writes the result to the members that
// want it. With few members the root combines all of it alone.
class DirectFold {
 public:
  using Kind = FoldResult::Kind;

  DirectFold(Team& team, PeerBuffers& buffers, FoldResult result, const Combiner& combine,
             const void* in, void* out)
      : team_(team),
        buffers_(buffers),
        result_(result),
        combine_(combine),
        in_(bytes_of(in)),
        out_(bytes_of(out)),
        element_(combine.element_bytes()) {}

  bool wants_result(mob_rank_t member) const {
    switch (result_.kind) {
      case Kind::kRoot:
        return member == result_.root;
      case Kind::kExclusive:
        return member != 0;
      case Kind::kAll:
      case Kind::kScan:
        return true;
    }
    return false;
  }

  bool is_possible() const {
    for (mob_rank_t r = 0; r < team_.size(); ++r) {
      const PeerBufferList& offered = buffers_.of(r);
      if (offered.in.kind == PeerBuffer::Kind::kNone) return false;
      if (wants_result(r) && offered.out.kind == PeerBuffer::Kind::kNone) return false;
    }
    return true;
  }

  void run(size_t count) {
    const auto me = static_cast<size_t>(team_.rank());
    const auto members = static_cast<size_t>(team_.size());
    const bool alone = combines_alone(result_, members) && count * element_ < kSharedBytes;
    if (alone && team_.rank() != result_.root) return;
    const Slice slice = alone ? Slice(count, element_, 0, 1) : Slice(count, element_, me, members);
    const size_t end = slice.first + slice.size;
    const size_t most = std::max(kPieceBytes / element_, size_t{1});
    const size_t piece_bytes = std::min(most, slice.size) * element_;
    // Possible if this member's own values are not needed after the first member's arrive.
    folds_in_place_ = (result_.kind == Kind::kAll ||
                       (result_.kind == Kind::kRoot && team_.rank() == result_.root)) &&
                      (in_ != out_ || me == 0) && combine_.fits(out_);
    if (!folds_in_place_) folded_ = std::make_unique_for_overwrite<unsigned char[]>(piece_bytes);
    next_ = std::make_unique_for_overwrite<unsigned char[]>(piece_bytes);
    for (size_t at = slice.first; at < end && buffers_.is_well(); at += most) {
      piece(at, std::min(most, end - at));
    }
  }

 private:
  // From this size on the others help the root, even if they are few.
  static constexpr size_t kSharedBytes = size_t{128} << 10;
  // This much stays in the second-level cache together with its operands.
  static constexpr size_t kPieceBytes = size_t{64} << 10;
  // This much stays in the first-level cache together with its operands.
  static constexpr size_t kChunkBytes = size_t{8} << 10;

  void piece(size_t first, size_t count) {
    const size_t at = first * element_;
    const size_t bytes = count * element_;
    const Kind kind = result_.kind;
    unsigned char* const folded = folds_in_place_ ? out_ + at : folded_.get();
    const bool hands_out_first = kind == Kind::kScan || kind == Kind::kExclusive;
    mob_rank_t next = 0;
    if (hands_out_first || !combine_two(at, count, folded)) {
      take_first(at, bytes, folded);
      if (kind == Kind::kScan) hand_out(0, at, folded, bytes);
      next = 1;
    } else {
      next = 2;
    }
    for (mob_rank_t r = next; r < team_.size(); ++r) {
      const unsigned char* values = values_of(r, at, bytes);
      if (!buffers_.is_well()) return;  // never combines values that did not arrive
      // In place a member's result replaces its values. They have been read by now.
      if (kind == Kind::kExclusive) {
        if (values != next_.get()) transport::copy(next_.get(), values, bytes);
        values = next_.get();
        hand_out(r, at, folded, bytes);
      }
      combine_(folded, values, count);
      if (kind == Kind::kScan) hand_out(r, at, folded, bytes);
    }
    if (kind == Kind::kRoot) hand_out(result_.root, at, folded, bytes);
    for (mob_rank_t i = 0; kind == Kind::kAll && i < team_.size(); ++i) {
      hand_out((team_.rank() + i) % team_.size(), at, folded, bytes);
    }
  }

  // Combines the first two members' values chunk by chunk, while each copied chunk is in the
  // nearest cache. False, with nothing done, if the first member's values are not mapped here or
  // are in place already.
  bool combine_two(size_t at, size_t count, unsigned char* folded) {
    const unsigned char* const first = here(0, at, count * element_);
    if (first == nullptr || first == folded) return false;
    const unsigned char* const second = values_of(1, at, count * element_);
    if (!buffers_.is_well()) return true;
    const size_t most = std::max(kChunkBytes / element_, size_t{1});
    for (size_t done = 0; done < count; done += most) {
      const size_t now = std::min(most, count - done);
      const size_t place = done * element_;
      transport::copy(folded + place, first + place, now * element_);
      combine_(folded + place, second + place, now);
    }
    return true;
  }

  void take_first(size_t at, size_t bytes, unsigned char* to) {
    const unsigned char* const values = here(0, at, bytes);
    if (values == nullptr) {
      buffers_.get(0, buffers_.of(0).in, at, to, bytes);
    } else if (values != to) {
      transport::copy(to, values, bytes);
    }
  }

  // A member's values as a pointer; null if they are not mapped here.
  const unsigned char* here(mob_rank_t member, size_t at, size_t bytes) const {
    return member == team_.rank() ? in_ + at
                                  : buffers_.look(member, buffers_.of(member).in, at, bytes);
  }

  const unsigned char* values_of(mob_rank_t member, size_t at, size_t bytes) {
    const unsigned char* const values = here(member, at, bytes);
    if (values != nullptr && combine_.fits(values - at)) return values;
    if (values != nullptr) {
      transport::copy(next_.get(), values, bytes);
    } else {
      buffers_.get(member, buffers_.of(member).in, at, next_.get(), bytes);
    }
    return next_.get();
  }

  void hand_out(mob_rank_t member, size_t at, const unsigned char* from, size_t bytes) {
    if (member != team_.rank()) {
      buffers_.put(member, buffers_.of(member).out, at, from, bytes);
    } else if (from != out_ + at) {
      transport::copy(out_ + at, from, bytes);
    }
  }

  Team& team_;
  PeerBuffers& buffers_;
  const FoldResult result_;
  const Combiner& combine_;
  const unsigned char* const in_;
  unsigned char* const out_;
  const size_t element_;
  bool folds_in_place_ = false;  // combines in `out`
  std::unique_ptr<unsigned char[]> folded_;
  std::unique_ptr<unsigned char[]> next_;
};

}  // namespace

mob_status_t fold_directly(PeerBuffers& buffers, FoldResult result, const Combiner& combine,
                           const void* in, void* out, size_t count, bool* done) {
  Team& team = buffers.team();
  const size_t bytes = count * combine.element_bytes();
  DirectFold fold(team, buffers, result, combine, in, out);
  PeerBufferList offered{buffers.lend(in, bytes), {}, {}};
  if (fold.wants_result(team.rank())) offered.out = buffers.lend(out, bytes);
  if (const mob_status_t status = buffers.exchange(offered)) return status;
  if (!(*done = fold.is_possible())) return MOB_OK;
  fold.run(count);
  return buffers.settle();
}

}  // namespace mobius::engine
