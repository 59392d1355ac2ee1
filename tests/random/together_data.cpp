// SPDX-License-Identifier: BSD-3-Clause

// Collective calls that move data.

#include <algorithm>
#include <cstring>

#include "random/report.h"
#include "random/together_runner.h"

namespace random_program {

unsigned char* TogetherRunner::room(Area* area, const Buffer& buffer, size_t bytes) {
  const size_t needed = bytes + buffer.at + 16;
  if (buffer.place == Buffer::kShared) {
    if (area->shared_bytes < needed) {
      check(mob_local_realloc(area->shared, needed, &area->shared), "mob_local_realloc");
      area->shared_bytes = needed;
    }
    return static_cast<unsigned char*>(area->shared) + buffer.at;
  }
  if (area->bytes.size() < needed) area->bytes.resize(needed);
  return area->bytes.data() + buffer.at;
}

void TogetherRunner::move_data(const Together& together, const Model& model, unsigned char* own) {
  const auto self = static_cast<size_t>(together.member(rank_));
  const Buffer& from = together.in[self];
  const Buffer& to = together.out[self];
  const size_t in_bytes = input_bytes(together, self);
  const size_t out_bytes = output_bytes(together, self);
  const bool scatters = together.call == Call::kScatter;
  const bool in_place =
      in_bytes > 0 && out_bytes > 0 && (together.in_place || together.call == Call::kBroadcast);
  unsigned char* out = nullptr;
  if (out_bytes > 0) {
    out = to.place == Buffer::kItsOwn ? own + to.at : room(&out_, to, out_bytes);
    if (to.place != Buffer::kItsOwn) std::memset(out, kUnwritten, out_bytes);
  }
  Bytes given;
  unsigned char* in = nullptr;
  if (in_bytes > 0 && from.place == Buffer::kItsOwn) {
    in = own + from.at;
    given.assign(in, in + in_bytes);
  } else if (in_bytes > 0) {
    given = made_input(together, self);
    in = in_place && !scatters ? out + place_in_output(together, self) : room(&in_, from, in_bytes);
    std::memcpy(in, given.data(), in_bytes);
  }
  if (scatters && in_place) out = in + self * together.count;
  // The first member of an exclusive scan gets nothing.
  const bool nothing = together.call == Call::kExscan && self == 0 && !in_place;
  call(together, in, nothing && together.seed % 2 == 0 ? nullptr : out);
  if ((!in_place || scatters) && !std::equal(given.begin(), given.end(), in)) {
    report("changed what it was given: " + text_of(together));
  }
  const Bytes& expected = model.result(together.number, self);
  for (size_t at = 0; at < out_bytes; ++at) {
    if (out[at] == expected[at]) continue;
    report("byte " + std::to_string(at) + " of " + std::to_string(out_bytes) + " at member " +
           std::to_string(self) + " is " + std::to_string(out[at]) + " instead of " +
           std::to_string(expected[at]) + ": " + text_of(together));
  }
}

void TogetherRunner::call(const Together& together, const void* in, void* out) {
  if (reduces(together.call)) return reduce(together, in, out);
  const mob_team_t team = team_of(together);
  const auto self = static_cast<size_t>(together.member(rank_));
  const size_t bytes = together.count;
  const mob_rank_t root = together.root;
  switch (together.call) {
    case Call::kBroadcast:
      return check(mob_broadcast(team, root, out, bytes), "mob_broadcast");
    case Call::kGather:
      return check(mob_gather(team, root, in, out, bytes), "mob_gather");
    case Call::kGatherv: {
      // Only the root reads it.
      const bool is_root = together.root == together.member(rank_);
      const std::vector<size_t> places = displacements(together, self, true);
      return check(mob_gatherv(team, root, in, together.counts[self], out,
                               is_root ? together.counts.data() : nullptr,
                               is_root ? places.data() : nullptr),
                   "mob_gatherv");
    }
    case Call::kAllgather:
      return check(mob_allgather(team, in, out, bytes), "mob_allgather");
    case Call::kAllgatherv: {
      const std::vector<size_t> places = displacements(together, self, true);
      return check(mob_allgatherv(team, in, out, together.counts.data(), places.data()),
                   "mob_allgatherv");
    }
    case Call::kScatter:
      return check(mob_scatter(team, root, in, out, bytes), "mob_scatter");
    case Call::kAlltoall:
      return check(mob_alltoall(team, in, out, bytes), "mob_alltoall");
    default: {
      const std::vector<size_t> given = counts_of(together, self, false);
      const std::vector<size_t> got = counts_of(together, self, true);
      const std::vector<size_t> from = displacements(together, self, false);
      const std::vector<size_t> to = displacements(together, self, true);
      return check(mob_alltoallv(team, in, given.data(), from.data(), out, got.data(), to.data()),
                   "mob_alltoallv");
    }
  }
}

void TogetherRunner::reduce(const Together& together, const void* in, void* out) {
  const mob_team_t team = team_of(together);
  const mob_rank_t root = together.root;
  const mob_op_t op = together.op;
  const mob_type_t type = together.type;
  const size_t count = together.count;
  size_t element = together.element;
  const mob_user_op_t user = {compose, &element, element, 0};
  switch (together.call) {
    case Call::kReduce:
      return check(together.user ? mob_reduce_user(team, root, &user, in, out, count)
                                 : mob_reduce(team, root, op, type, in, out, count),
                   "mob_reduce");
    case Call::kAllreduce:
      return check(together.user ? mob_allreduce_user(team, &user, in, out, count)
                                 : mob_allreduce(team, op, type, in, out, count),
                   "mob_allreduce");
    case Call::kScan:
      return check(together.user ? mob_scan_user(team, &user, in, out, count)
                                 : mob_scan(team, op, type, in, out, count),
                   "mob_scan");
    default:
      return check(together.user ? mob_exscan_user(team, &user, in, out, count)
                                 : mob_exscan(team, op, type, in, out, count),
                   "mob_exscan");
  }
}

}  // namespace random_program
