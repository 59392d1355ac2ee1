// SPDX-License-Identifier: BSD-3-Clause

// Reductions and scans of teams on several hosts. If the grouping of the operands does not change
// the result, each host combines its own values first and sends a single one. If rounding or the
// user's function may depend on the grouping, all values travel and are combined in rank order, as
// on one host.

#include <algorithm>
#include <vector>

#include "engine/collective/inter_host.h"
#include "transport/shm/copy.h"

namespace mobius::engine {
namespace {

using Kind = FoldResult::Kind;

// The data of all members together in one message.
constexpr size_t kPieceBytes = size_t{256} << 10;

}  // namespace

mob_status_t InterHost::fold(FoldResult result, const Combiner& combine, const void* in, void* out,
                             size_t count) {
  if (count == 0) return MOB_OK;
  const bool is_scan = result.kind == Kind::kScan || result.kind == Kind::kExclusive;
  if (!is_scan && combine.is_exact()) return fold_by_hosts(result, combine, in, out, count);
  const size_t element = combine.element_bytes();
  const size_t members = static_cast<size_t>(map_.size());
  const size_t step = std::max<size_t>(kPieceBytes / (element * members), 1);
  for (size_t first = 0; first < count; first += step) {
    const mob_status_t status =
        fold_in_order(result, combine, static_cast<const char*>(in) + first * element,
                      static_cast<char*>(out) + first * element, std::min(step, count - first));
    if (status != MOB_OK) return status;
  }
  return MOB_OK;
}

mob_status_t InterHost::fold_by_hosts(FoldResult result, const Combiner& combine, const void* in,
                                      void* out, size_t count) {
  const size_t bytes = count * combine.element_bytes();
  std::vector<size_t> starts{0};
  for (size_t i = 0; i < groups_.size(); ++i) starts.push_back(starts.back() + bytes);
  std::vector<char> partial(leads() ? starts.back() : bytes);
  char* own = partial.data() + (leads() ? starts[own_] : 0);
  mob_status_t status = engine::fold(*local_team_, {Kind::kRoot, 0}, combine, in, own, count);
  mob_status_t exchanged = MOB_OK;
  if (leads()) {
    exchanged = exchange_leaders(status, partial, starts);
    for (size_t group = 1; exchanged == MOB_OK && group < groups_.size(); ++group) {
      combine(partial.data(), partial.data() + starts[group], count);
    }
  }
  // hand_on() reads the result from `partial` at the leader and writes it there at the other
  // members.
  if (status == MOB_OK) status = hand_on(exchanged, partial.data(), bytes);
  if (status != MOB_OK) return ended(status);
  forget_one_way();
  if (result.kind == Kind::kAll || rank_ == result.root)
    transport::copy(out, partial.data(), bytes);
  return MOB_OK;
}

mob_status_t InterHost::fold_in_order(FoldResult result, const Combiner& combine, const char* in,
                                      char* out, size_t count) {
  const size_t bytes = count * combine.element_bytes();
  std::vector<char> all(bytes * static_cast<size_t>(map_.size()));
  const mob_status_t status = allgather(in, all.data(), Blocks::packed(bytes));
  if (status != MOB_OK) return status;
  mob_rank_t last = map_.size() - 1;
  if (result.kind == Kind::kScan) last = rank_;
  if (result.kind == Kind::kExclusive) last = rank_ - 1;
  if (last < 0 || (result.kind == Kind::kRoot && rank_ != result.root)) return MOB_OK;
  for (mob_rank_t member = 1; member <= last; ++member) {
    combine(all.data(), all.data() + static_cast<size_t>(member) * bytes, count);
  }
  transport::copy(out, all.data(), bytes);
  return MOB_OK;
}

}  // namespace mobius::engine
