// SPDX-License-Identifier: BSD-3-Clause

// Reductions and scans. Every algorithm combines in rank order, so that the result depends neither
// on the size of the data nor on the path they take.

#include <algorithm>
#include <cstring>
#include <vector>

#include "engine/collective/chunking.h"
#include "engine/collective/collective.h"
#include "engine/collective/collective_direct.h"
#include "engine/collective/collective_tuning.h"
#include "engine/collective/inter_host.h"
#include "transport/shm/copy.h"
#include "transport/shm/copy_peer.h"

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
    if (total_ <= kInlineBytes) return whole(Bulk::kNone, 0, total_);
    if (total_ * members() <= kRedundantBytes) return whole(bulk_of_whole(), 0, total_);
    return take_faster_way(
        team_, CollectiveKind::kFold, total_,
        [&](PeerBuffers& buffers, bool* done) {
          return fold_directly(buffers, result_, combine_, in_, out_, total_ / element_, done);
        },
        [&] { return in_rounds(); });
  }

 private:
  mob_status_t in_rounds() {
    if (element_ > kBulkBytes) return by_broadcasts();
    const Pieces pieces(total_, element_, kBulkBytes);
    // With two members, combining all the data costs each no more than combining one slice and
    // collecting the other one.
    const bool redundantly = members() <= 2 || combines_alone(result_, members());
    for (size_t offset = 0; offset < total_; offset += pieces.bytes()) {
      const size_t now = std::min(pieces.bytes(), total_ - offset);
      const mob_status_t status =
          redundantly ? whole(bulk_of_whole(), offset, now) : piece(offset, now);
      if (status != MOB_OK) return status;
    }
    return MOB_OK;
  }

  size_t members() const { return static_cast<size_t>(team_.size()); }
  bool is_scan() const { return result_.kind == Kind::kScan || result_.kind == Kind::kExclusive; }

  // The rank up to which this member combines values; -1 if it gets no result.
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

  // Whether no other member needs this member's values: it is the root, or the last in a scan.
  bool is_reader() const {
    return result_.kind == Kind::kRoot ? team_.rank() == result_.root
                                       : scans_by_flags() && team_.rank() == team_.size() - 1;
  }
  // Whether each member waits only for those before it. Members that meet by a shared counter do so
  // in scans, too, because they share processors.
  bool scans_by_flags() const { return is_scan() && rounds_.meets_by_flags(); }

  Bulk bulk_of_whole() const {
    const bool all_meet = result_.kind != Kind::kRoot && !scans_by_flags();
    return all_meet ? Bulk::kMet : Bulk::kNext;
  }

  // Every member publishes a piece of its data. Members that get a result combine all pieces alone.
  mob_status_t whole(Bulk bulk, size_t offset, size_t bytes) {
    const mob_rank_t me = team_.rank();
    mob_status_t status = rounds_.begin(is_reader() ? Role::kReads : Role::kWrites, bulk, bytes);
    if (status != MOB_OK) return status;
    if (!is_reader()) transport::copy_part_to_peer(shown(bulk, me), in_ + offset, bytes);
    if ((status = hand_in_own())) return status;
    if (last() >= 0) combine_shown(bulk, offset, bytes);
    rounds_.end();
    return MOB_OK;
  }

  // Waits, at members that get a result, until the values that they need are published.
  mob_status_t hand_in_own() {
    if (!scans_by_flags()) return hand_in();
    if (!is_reader()) rounds_.post_to_all();
    for (mob_rank_t r = 0; r < team_.rank(); ++r) {
      if (const mob_status_t status = rounds_.await(r)) return status;
    }
    return MOB_OK;
  }
  // The same for the values of all members.
  mob_status_t hand_in() {
    if (result_.kind != Kind::kRoot) return rounds_.meet();
    if (is_reader()) return rounds_.await_all();
    rounds_.post_to(result_.root);
    return MOB_OK;
  }

  void combine_shown(Bulk bulk, size_t offset, size_t bytes) {
    const mob_rank_t me = team_.rank();
    // This member reads its own values from `in_`, because the cache lines of its published copy
    // may be at another processor by now. It reads the published copy, if there is one, when the
    // first member's values would overwrite `in_`, or when `in_` is badly aligned.
    const bool is_overwritten = in_ == out_ && me != 0;
    const bool is_own_shown = !is_reader() && (is_overwritten || (me != 0 && !combine_.fits(in_)));
    const bool is_aside = (is_overwritten && is_reader()) || !combine_.fits(out_);
    unsigned char* folded = out_ + offset;
    if (is_aside) {
      scratch_.resize(bytes);
      folded = scratch_.data();
    }
    for (mob_rank_t r = 0; r <= last(); ++r) {
      const bool is_shown = r != me || is_own_shown;
      const unsigned char* values = is_shown ? shown(bulk, r) : in_ + offset;
      if (r == 0) {
        if (values != folded) transport::copy(folded, values, bytes);
      } else if (bulk == Bulk::kNone) {
        alignas(64) unsigned char aligned[kInlineBytes];  // the shared lines are less aligned
        std::memcpy(aligned, values, bytes);
        combine_(folded, aligned, bytes / element_);
      } else if (!is_shown && !combine_.fits(in_)) {
        own_.assign(values, values + bytes);
        combine_(folded, own_.data(), bytes / element_);
      } else {
        combine_(folded, values, bytes / element_);
      }
    }
    if (is_aside) transport::copy(out_ + offset, folded, bytes);
  }

  unsigned char* shown(Bulk bulk, mob_rank_t rank) const {
    return bulk == Bulk::kNone ? rounds_.line(rank) : rounds_.bulk(rank);
  }

  // Every member publishes a piece, combines one slice of all pieces, and reads the results of all
  // slices.
  mob_status_t piece(size_t offset, size_t bytes) {
    mob_status_t status = rounds_.begin(Role::kWrites, Bulk::kMet, bytes);
    if (status != MOB_OK) return status;
    transport::copy(rounds_.bulk(team_.rank()), in_ + offset, bytes);
    if ((status = rounds_.meet())) return status;
    combine_slice(bytes / element_);
    rounds_.end();
    const bool collects = result_.kind == Kind::kRoot && is_reader();
    status = rounds_.begin(collects ? Role::kReads : Role::kWrites, Bulk::kSame, bytes);
    if (status == MOB_OK) status = hand_in();
    if (status != MOB_OK) return status;
    if (last() >= 0) {
      // A scan leaves each result at its member; a reduction leaves its only result at the first
      // member.
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

  // Handles elements larger than a member's shared buffer, one by one.
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
  std::vector<unsigned char> own_;
};

}  // namespace

mob_status_t fold(Team& team, FoldResult result, const Combiner& combine, const void* in, void* out,
                  size_t count) {
  if (InterHost* const hosts = InterHost::of(team))
    return hosts->fold(result, combine, in, out, count);
  return Fold(team, result, combine, in, out, count).run();
}

}  // namespace mobius::engine
