// SPDX-License-Identifier: BSD-3-Clause

// Reductions and scans. All combine in rank order, so that neither the size of the data nor the way
// it takes shows in the result.

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/across.h"
#include "engine/collective.h"
#include "engine/collective_direct.h"
#include "engine/collective_ways.h"
#include "engine/pieces.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

using Bulk = Rounds::Bulk;
using Role = Rounds::Role;
using Kind = FoldResult::Kind;

class Fold {
 public:
  Fold(Team& team, FoldResult result, const Combiner& combine, const void* in, void* out,
       size_t count)
      : team_(team),
        rounds_(team.rounds()),
        result_(result),
        combine_(combine),
        in_(static_cast<const unsigned char*>(in)),
        out_(static_cast<unsigned char*>(out)),
        element_(combine.element_bytes()),
        total_(count * element_) {}

  mob_status_t run() {
    if (total_ == 0) return MOB_OK;
    if (team_.size() == 1) {
      if (last() == 0 && in_ != out_) transport::copy(out_, in_, total_);
      return MOB_OK;
    }
    if (total_ <= kInlineBytes) return whole(Bulk::kNone);
    if (total_ * static_cast<size_t>(team_.size()) <= kRedundantBytes) return whole(Bulk::kNext);
    return take_faster_way(
        team_, CollectiveKind::kFold, total_,
        [&](Lending& lending, bool* done) {
          return fold_directly(lending, result_, combine_, in_, out_, total_ / element_, done);
        },
        [&] { return in_rounds(); });
  }

 private:
  mob_status_t in_rounds() {
    if (element_ > kBulkBytes) return by_broadcasts();
    const Pieces pieces(total_, element_, kBulkBytes);
    for (size_t offset = 0; offset < total_; offset += pieces.bytes()) {
      const size_t now = std::min(pieces.bytes(), total_ - offset);
      if (const mob_status_t status = piece(offset, now)) return status;
    }
    return MOB_OK;
  }

  bool is_scan() const { return result_.kind == Kind::kScan || result_.kind == Kind::kExclusive; }

  // The rank up to which this member gets values combined; -1: it gets none.
  mob_rank_t last() const {
    switch (result_.kind) {
      case Kind::kAll:
        return team_.size() - 1;
      case Kind::kRoot:
        return team_.rank() == result_.root ? team_.size() - 1 : -1;
      case Kind::kScan:
        return team_.rank();
      case Kind::kExclusive:
        return team_.rank() - 1;
    }
    return -1;
  }

  // Starts a round whose results only those need who get any.
  mob_status_t begin(Bulk bulk) {
    const bool only_reads = result_.kind == Kind::kRoot && team_.rank() == result_.root;
    return rounds_.begin(only_reads ? Role::kReads : Role::kWrites, bulk);
  }
  // Until those who get results may read what all have written.
  mob_status_t hand_in() {
    if (result_.kind != Kind::kRoot) return rounds_.meet();
    if (team_.rank() == result_.root) return rounds_.await_all();
    rounds_.post_to(result_.root);
    return MOB_OK;
  }

  // Everyone shows all its data; who gets results combines them alone.
  mob_status_t whole(Bulk bulk) {
    mob_status_t status = begin(bulk);
    if (status != MOB_OK) return status;
    const bool gathers = result_.kind == Kind::kRoot && team_.rank() == result_.root;
    if (!gathers) transport::copy(shown(bulk, team_.rank()), in_, total_);
    if ((status = hand_in())) return status;
    if (last() >= 0) {
      // Elements of any type are aligned here, which in lines they need not be.
      alignas(64) unsigned char folded[kRedundantBytes];
      alignas(64) unsigned char next[kRedundantBytes];
      for (mob_rank_t r = 0; r <= last(); ++r) {
        const unsigned char* values = gathers && r == team_.rank() ? in_ : shown(bulk, r);
        std::memcpy(r == 0 ? folded : next, values, total_);
        if (r != 0) combine_(folded, next, total_ / element_);
      }
      std::memcpy(out_, folded, total_);
    }
    rounds_.end();
    return MOB_OK;
  }
  unsigned char* shown(Bulk bulk, mob_rank_t rank) const {
    return bulk == Bulk::kNone ? rounds_.line(rank) : rounds_.bulk(rank);
  }

  // Everyone shows a piece, combines one slice of all members' pieces, and reads results of all
  // slices.
  mob_status_t piece(size_t offset, size_t bytes) {
    mob_status_t status = rounds_.begin(Role::kWrites, Bulk::kNext);
    if (status != MOB_OK) return status;
    transport::copy(rounds_.bulk(team_.rank()), in_ + offset, bytes);
    if ((status = rounds_.meet())) return status;
    combine_slice(bytes / element_);
    rounds_.end();
    if ((status = begin(Bulk::kSame))) return status;
    if ((status = hand_in())) return status;
    if (last() >= 0) {
      // A scan leaves results in place, a reduction has its one result at the first member.
      transport::copy(out_ + offset, rounds_.bulk(is_scan() ? last() : 0), bytes);
    }
    rounds_.end();
    return MOB_OK;
  }

  void combine_slice(size_t count) {
    const Slice slice(count, element_, static_cast<size_t>(team_.rank()),
                      static_cast<size_t>(team_.size()));
    if (slice.size == 0) return;
    const size_t at = slice.first * element_;
    const size_t bytes = slice.size * element_;
    if (!is_scan()) {
      for (mob_rank_t r = 1; r < team_.size(); ++r) {
        combine_(rounds_.bulk(0) + at, rounds_.bulk(r) + at, slice.size);
      }
      return;
    }
    scratch_.resize(bytes);
    transport::copy(scratch_.data(), rounds_.bulk(0) + at, bytes);
    for (mob_rank_t r = 1; r < team_.size(); ++r) {
      combine_(scratch_.data(), rounds_.bulk(r) + at, slice.size);
      transport::copy(rounds_.bulk(r) + at, scratch_.data(), bytes);
    }
  }

  // Elements larger than what a member can show, one by one.
  mob_status_t by_broadcasts() {
    std::vector<unsigned char> mine(element_);
    std::vector<unsigned char> theirs(element_);
    std::vector<unsigned char> folded(element_);
    for (size_t offset = 0; offset < total_; offset += element_) {
      std::memcpy(mine.data(), in_ + offset, element_);
      for (mob_rank_t r = 0; r < team_.size(); ++r) {
        std::vector<unsigned char>& values = r == team_.rank() ? mine : theirs;
        const mob_status_t status = broadcast(team_, r, values.data(), element_);
        if (status != MOB_OK) return status;
        if (r > last()) continue;
        if (r == 0) {
          folded = values;
        } else {
          combine_(folded.data(), values.data(), 1);
        }
      }
      if (last() >= 0) std::memcpy(out_ + offset, folded.data(), element_);
    }
    return MOB_OK;
  }

  Team& team_;
  Rounds& rounds_;
  const FoldResult result_;
  const Combiner& combine_;
  const unsigned char* const in_;
  unsigned char* const out_;
  const size_t element_;
  const size_t total_;
  std::vector<unsigned char> scratch_;
};

}  // namespace

mob_status_t fold(Team& team, FoldResult result, const Combiner& combine, const void* in, void* out,
                  size_t count) {
  if (team.across() != nullptr) return team.across()->fold(result, combine, in, out, count);
  return Fold(team, result, combine, in, out, count).run();
}

}  // namespace mobius::engine
