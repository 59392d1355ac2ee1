// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Collective calls that move or combine data. Each function is collective over its team, and a team
// runs one at a time. Callers have checked all arguments; roots are ranks of the team. Fails with
// MOB_ERR_PEER when a member died.

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

// Where the members' blocks lie in a buffer: packed and of equal length, or at listed places.
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

// Member r's `in`, of `mine` bytes, becomes block r of the root's `out`. Other members' `out` and
// lists are ignored.
mob_status_t gather(Team& team, mob_rank_t root, const void* in, size_t mine, void* out,
                    const Blocks& blocks);
// The same for sizes that match, when all members know the largest.
mob_status_t gather_sized(Team& team, mob_rank_t root, const void* in, size_t mine, void* out,
                          const Blocks& blocks, size_t largest);
// Member r's `in` becomes block r of every member's `out`. `in` may be the caller's own block of
// it.
mob_status_t allgather(Team& team, const void* in, void* out, const Blocks& blocks);
// Block r of the root's `in` becomes member r's `out`.
mob_status_t scatter(Team& team, mob_rank_t root, const void* in, void* out, size_t bytes);
// Block r of member s's `in` becomes block s of member r's `out`. `in` may be `out`.
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
  // Whether operands may lie at this alignment. Built-in operations need the natural alignment of
  // the type; a user's function may rely on more (mob_user_op_t).
  bool fits(const void* memory) const {
    constexpr uintptr_t kAlignment = 16;
    return user_ == nullptr || reinterpret_cast<uintptr_t>(memory) % kAlignment == 0;
  }
  // Whether the grouping of the operands does not change the result.
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

// Which members get the result, and of which members' values.
struct FoldResult {
  enum class Kind {
    kAll,       // every member: of all values
    kRoot,      // the root: of all values
    kScan,      // every member: of the values up to its own
    kExclusive  // every member but the first: of the values before its own
  } kind;
  mob_rank_t root = 0;
};

// Whether the root combines all values alone. With few members the others would save it nothing by
// combining slices, because the root would have to collect those slices.
inline bool combines_alone(const FoldResult& result, size_t members) {
  return result.kind == FoldResult::Kind::kRoot && members <= 3;
}

// Up to this many bytes of all members together, every member combines all of them itself. That
// costs less than a second round that distributes results.
inline constexpr size_t kRedundantBytes = size_t{4} << 10;

// Combines the members' vectors of `count` elements in rank order, ((x0 op x1) op x2) …, for every
// size. `in` may be `out`.
mob_status_t fold(Team& team, FoldResult result, const Combiner& combine, const void* in, void* out,
                  size_t count);

}  // namespace mobius::engine
