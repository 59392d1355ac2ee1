// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the members of a team do together beside meeting. Each function is collective over its team;
// one at a time per team. All arguments are valid; roots are ranks of the team. MOB_ERR_PEER when a
// member died.

#include <mobius/collective.h>

#include <cstddef>
#include <cstdint>

#include "engine/team/team.h"
#include "transport/shm/element.h"

namespace mobius::engine {

mob_status_t broadcast(Team& team, mob_rank_t root, void* buffer, size_t bytes);

inline const unsigned char* bytes_of(const void* memory) {
  return static_cast<const unsigned char*>(memory);
}
inline unsigned char* bytes_of(void* memory) { return static_cast<unsigned char*>(memory); }

// Where the blocks of the members lie in a buffer: packed and equally long, or as two lists say.
struct Blocks {
  static Blocks packed(size_t bytes) { return {bytes, false, nullptr, nullptr}; }
  static Blocks listed(const size_t* counts, const size_t* displacements) {
    return {0, true, counts, displacements};
  }

  size_t size(mob_rank_t rank) const { return by_lists ? counts[rank] : bytes; }
  size_t at(mob_rank_t rank) const {
    return by_lists ? displacements[rank] : static_cast<size_t>(rank) * bytes;
  }
  size_t largest(mob_rank_t members) const;

  size_t bytes;
  bool by_lists;
  const size_t* counts;
  const size_t* displacements;
};

// Member r's `in`, of `mine` bytes, becomes block r of the root's `out`. Only the root's `out` and
// lists are looked at.
mob_status_t gather(Team& team, mob_rank_t root, const void* in, size_t mine, void* out,
                    const Blocks& blocks);
// The same where the sizes are known to be right, and all know the largest.
mob_status_t gather_sized(Team& team, mob_rank_t root, const void* in, size_t mine, void* out,
                          const Blocks& blocks, size_t largest);
// Member r's `in` becomes block r of everyone's `out`. `in` may be the caller's own block of it.
mob_status_t allgather(Team& team, const void* in, void* out, const Blocks& blocks);
// Block r of the root's `in` becomes member r's `out`.
mob_status_t scatter(Team& team, mob_rank_t root, const void* in, void* out, size_t bytes);
// Block r of member s' `in` becomes block s of member r's `out`. `in` may be `out`.
mob_status_t alltoall(Team& team, const void* in, const Blocks& in_blocks, void* out,
                      const Blocks& out_blocks);

// An operation on elements: accumulated[i] := accumulated[i] op in[i].
class Combiner {
 public:
  Combiner(mob_op_t op, mob_type_t type)
      : kernel_(transport::plain_kernel(op, type)),
        element_bytes_(transport::element_bytes(type)),
        is_exact_(transport::is_integer(type) && op != MOB_REPLACE && op != MOB_NO_OP) {}
  explicit Combiner(const mob_user_op_t& user)
      : user_(user.combine), argument_(user.argument), element_bytes_(user.element_bytes) {}

  size_t element_bytes() const { return element_bytes_; }
  // Whether operands may be where such memory of the caller's is: built-in operations take elements
  // as their types are aligned, a user's may count on more (mob_user_op_t).
  bool fits(const void* memory) const {
    constexpr uintptr_t kAlignment = 16;
    return user_ == nullptr || reinterpret_cast<uintptr_t>(memory) % kAlignment == 0;
  }
  // Whether the result does not depend on how operands are grouped.
  bool is_exact() const { return is_exact_; }
  void operator()(void* accumulated, const void* in, size_t count) const {
    if (kernel_ != nullptr) {
      kernel_(transport::one_row(accumulated, in), count, nullptr, nullptr);
    } else {
      user_(accumulated, in, count, argument_);
    }
  }

 private:
  transport::Combine kernel_ = nullptr;
  void (*user_)(void* accumulated, const void* in, size_t count, void* argument) = nullptr;
  void* argument_ = nullptr;
  size_t element_bytes_;
  bool is_exact_ = false;
};

// Who gets which of the combined values.
struct FoldResult {
  enum class Kind {
    kAll,       // every member: those of all
    kRoot,      // one member: those of all
    kScan,      // every member: those up to its own
    kExclusive  // every member but the first: those before its own
  } kind;
  mob_rank_t root = 0;
};

// Whether one of few members that alone gets the combined values combines all of them, too: the
// others would save it nothing by combining slices that it had to collect.
inline bool combines_alone(const FoldResult& result, size_t members) {
  return result.kind == FoldResult::Kind::kRoot && members <= 3;
}

// Up to this much data of all members together, everyone combines all of it for itself: that is
// less than the second round costs in which results would be handed around.
inline constexpr size_t kRedundantBytes = size_t{4} << 10;

// Combines the members' vectors of `count` elements in rank order: ((x0 op x1) op x2) …, whatever
// the sizes are. `in` may be `out`.
mob_status_t fold(Team& team, FoldResult result, const Combiner& combine, const void* in, void* out,
                  size_t count);

}  // namespace mobius::engine
