// SPDX-License-Identifier: BSD-3-Clause
#include "engine/collective_direct.h"

#include <algorithm>
#include <vector>

#include "engine/engine.h"
#include "engine/lending.h"
#include "engine/pieces.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

// Bytes that the two ends of a copy deal out in whole pages, which the kernel copies at a time.
constexpr size_t kPage = 4096;

bool all_lend(const Lending& lending, Loan Loans::* which) {
  for (mob_rank_t r = 0; r < lending.team().size(); ++r) {
    if ((lending.of(r).*which).kind == Loan::Kind::kNone) return false;
  }
  return true;
}

// Of what one member has and n - 1 others want, or the other way round, each of the others copies
// the first so many bytes of its own, and the one the rest of all: so all n have as much to do.
size_t dealt_to_others(size_t bytes, mob_rank_t members) {
  const size_t rest = bytes / static_cast<size_t>(members);
  return bytes - rest / kPage * kPage;
}

}  // namespace

mob_status_t broadcast_directly(Lending& lending, mob_rank_t root, void* buffer, size_t bytes,
                                bool* done) {
  const Team& team = lending.team();
  const Loan mine = lending.lend(buffer, bytes);
  if (const mob_status_t status = lending.exchange({mine, mine, {}})) return status;
  const Loan from = lending.of(root).in;
  if (!(*done = from.kind != Loan::Kind::kNone)) return MOB_OK;
  const size_t theirs = dealt_to_others(bytes, team.size());
  const bool is_root = team.rank() == root;
  if (!is_root) {
    lending.get(root, from, 0, buffer, mine.kind == Loan::Kind::kNone ? bytes : theirs);
  }
  for (mob_rank_t r = 0; is_root && r < team.size(); ++r) {
    const Loan to = lending.of(r).out;
    if (r == root || to.kind == Loan::Kind::kNone) continue;
    lending.put(r, to, theirs, bytes_of(buffer) + theirs, bytes - theirs);
  }
  return lending.settle();
}

mob_status_t gather_directly(Lending& lending, mob_rank_t root, const void* in, size_t mine,
                             void* out, const Blocks& blocks, bool* done) {
  const Team& team = lending.team();
  const bool is_root = team.rank() == root;
  Loans loans{lending.lend(in, mine), {}, {}};
  // Lists are the root's alone: then it copies all.
  const size_t bytes = blocks.by_lists ? 0 : blocks.bytes;
  if (is_root && bytes != 0) {
    loans.out = lending.lend(out, static_cast<size_t>(team.size()) * bytes);
  }
  if (const mob_status_t status = lending.exchange(loans)) return status;
  if (!(*done = all_lend(lending, &Loans::in))) return MOB_OK;
  const Loan to = lending.of(root).out;
  const bool shares = to.kind != Loan::Kind::kNone;
  const size_t theirs = dealt_to_others(bytes, team.size());
  if (!is_root && shares) lending.put(root, to, blocks.at(team.rank()), in, theirs);
  for (mob_rank_t r = 0; is_root && out != nullptr && r < team.size(); ++r) {
    if (r == root) continue;
    const size_t from = shares ? theirs : 0;
    lending.get(r, lending.of(r).in, from, bytes_of(out) + blocks.at(r) + from,
                blocks.size(r) - from);
  }
  return lending.settle();
}

mob_status_t allgather_directly(Lending& lending, const void* in, void* out, const Blocks& blocks,
                                bool* done) {
  const Team& team = lending.team();
  const mob_rank_t me = team.rank();
  const Loan mine = lending.lend(in, blocks.size(me));
  if (const mob_status_t status = lending.exchange({mine, {}, {}})) return status;
  if (!(*done = all_lend(lending, &Loans::in))) return MOB_OK;
  for (mob_rank_t i = 1; i < team.size(); ++i) {
    const mob_rank_t r = (me + i) % team.size();  // everyone starts with another member
    lending.get(r, lending.of(r).in, 0, bytes_of(out) + blocks.at(r), blocks.size(r));
  }
  return lending.settle();
}

mob_status_t scatter_directly(Lending& lending, mob_rank_t root, const void* in, void* out,
                              size_t bytes, bool* done) {
  const Team& team = lending.team();
  const mob_rank_t me = team.rank();
  const bool is_root = me == root;
  const Blocks blocks = Blocks::packed(bytes);
  Loans loans{{}, lending.lend(out, bytes), {}};
  if (is_root) loans.in = lending.lend(in, static_cast<size_t>(team.size()) * bytes);
  if (const mob_status_t status = lending.exchange(loans)) return status;
  const Loan from = lending.of(root).in;
  if (!(*done = from.kind != Loan::Kind::kNone)) return MOB_OK;
  const size_t theirs = dealt_to_others(bytes, team.size());
  if (!is_root) {
    lending.get(root, from, blocks.at(me), out,
                loans.out.kind == Loan::Kind::kNone ? bytes : theirs);
  }
  for (mob_rank_t r = 0; is_root && r < team.size(); ++r) {
    const Loan to = lending.of(r).out;
    if (r == root || to.kind == Loan::Kind::kNone) continue;
    lending.put(r, to, theirs, bytes_of(in) + blocks.at(r) + theirs, bytes - theirs);
  }
  return lending.settle();
}

mob_status_t alltoall_directly(Lending& lending, const void* in, const Blocks& in_blocks, void* out,
                               const Blocks& out_blocks, bool* done) {
  const Team& team = lending.team();
  const mob_rank_t me = team.rank();
  Loans loans;
  // In place, the blocks to be read would be overwritten.
  if (in != out) {
    size_t end = 0;
    for (mob_rank_t r = 0; r < team.size(); ++r) {
      end = std::max(end, in_blocks.at(r) + in_blocks.size(r));
    }
    loans.in = lending.lend(in, end);
    // Where a block lies, where blocks are listed, knows only whose it is.
    if (in_blocks.by_lists) {
      loans.list =
          lending.lend(in_blocks.displacements, static_cast<size_t>(team.size()) * sizeof(size_t));
    }
  }
  if (const mob_status_t status = lending.exchange(loans)) return status;
  *done = all_lend(lending, &Loans::in) && (!in_blocks.by_lists || all_lend(lending, &Loans::list));
  if (!*done) return MOB_OK;
  for (mob_rank_t i = 1; i < team.size(); ++i) {
    const mob_rank_t r = (me + i) % team.size();
    const size_t bytes = out_blocks.size(r);
    if (bytes == 0) continue;
    size_t at = in_blocks.at(me);
    if (in_blocks.by_lists) {
      const size_t place = static_cast<size_t>(me) * sizeof at;
      lending.get(r, lending.of(r).list, place, &at, sizeof at);
    }
    lending.get(r, lending.of(r).in, at, bytes_of(out) + out_blocks.at(r), bytes);
  }
  return lending.settle();
}

namespace {

// Every member combines one slice of all members' vectors, and puts what is wanted of it where it
// is wanted.
class DirectFold {
 public:
  DirectFold(Team& team, Lending& lending, FoldResult result, const Combiner& combine,
             const void* in, void* out)
      : team_(team),
        lending_(lending),
        result_(result),
        combine_(combine),
        in_(bytes_of(in)),
        out_(bytes_of(out)),
        element_(combine.element_bytes()) {}

  bool wants_result(mob_rank_t member) const {
    switch (result_.kind) {
      case FoldResult::Kind::kRoot:
        return member == result_.root;
      case FoldResult::Kind::kExclusive:
        return member != 0;
      case FoldResult::Kind::kAll:
      case FoldResult::Kind::kScan:
        return true;
    }
    return false;
  }

  bool is_possible() const {
    for (mob_rank_t r = 0; r < team_.size(); ++r) {
      const Loans& loans = lending_.of(r);
      if (loans.in.kind == Loan::Kind::kNone) return false;
      if (wants_result(r) && loans.out.kind == Loan::Kind::kNone) return false;
    }
    return true;
  }

  void run(size_t count) {
    const Slice slice(count, element_, static_cast<size_t>(team_.rank()),
                      static_cast<size_t>(team_.size()));
    const size_t end = slice.first + slice.size;
    const size_t most = std::max(kPieceBytes / element_, size_t{1});
    folded_.resize(most * element_);
    next_.resize(most * element_);
    for (size_t at = slice.first; at < end; at += most) piece(at, std::min(most, end - at));
  }

 private:
  // What stays in the second-level cache with its operands.
  static constexpr size_t kPieceBytes = size_t{128} << 10;

  void piece(size_t first, size_t count) {
    const size_t at = first * element_;
    const size_t bytes = count * element_;
    const bool is_exclusive = result_.kind == FoldResult::Kind::kExclusive;
    for (mob_rank_t r = 0; r < team_.size(); ++r) {
      const unsigned char* values = values_of(r, at, bytes);
      // In place a member's result is where its values are: those are read by now.
      if (is_exclusive && r != 0) {
        if (values != next_.data()) transport::copy(next_.data(), values, bytes);
        values = next_.data();
        hand_out(r, at, bytes);
      }
      if (r == 0) {
        transport::copy(folded_.data(), values, bytes);
      } else {
        combine_(folded_.data(), values, count);
      }
      if (result_.kind == FoldResult::Kind::kScan) hand_out(r, at, bytes);
    }
    if (result_.kind == FoldResult::Kind::kRoot) hand_out(result_.root, at, bytes);
    for (mob_rank_t i = 0; result_.kind == FoldResult::Kind::kAll && i < team_.size(); ++i) {
      hand_out((team_.rank() + i) % team_.size(), at, bytes);
    }
  }

  const unsigned char* values_of(mob_rank_t member, size_t at, size_t bytes) {
    if (member == team_.rank()) return in_ + at;
    const Loan loan = lending_.of(member).in;
    if (const unsigned char* here = lending_.look(member, loan, at, bytes)) return here;
    lending_.get(member, loan, at, next_.data(), bytes);
    return next_.data();
  }

  void hand_out(mob_rank_t member, size_t at, size_t bytes) {
    if (member == team_.rank()) {
      transport::copy(out_ + at, folded_.data(), bytes);
    } else {
      lending_.put(member, lending_.of(member).out, at, folded_.data(), bytes);
    }
  }

  Team& team_;
  Lending& lending_;
  const FoldResult result_;
  const Combiner& combine_;
  const unsigned char* const in_;
  unsigned char* const out_;
  const size_t element_;
  std::vector<unsigned char> folded_;
  std::vector<unsigned char> next_;
};

}  // namespace

mob_status_t fold_directly(Lending& lending, FoldResult result, const Combiner& combine,
                           const void* in, void* out, size_t count, bool* done) {
  Team& team = lending.team();
  const size_t bytes = count * combine.element_bytes();
  DirectFold fold(team, lending, result, combine, in, out);
  Loans loans{lending.lend(in, bytes), {}, {}};
  if (fold.wants_result(team.rank())) loans.out = lending.lend(out, bytes);
  if (const mob_status_t status = lending.exchange(loans)) return status;
  if (!(*done = fold.is_possible())) return MOB_OK;
  fold.run(count);
  return lending.settle();
}

}  // namespace mobius::engine
