// SPDX-License-Identifier: BSD-3-Clause
#include "engine/collective/collective.h"

#include <mobius/collective.h>

#include <new>
#include <utility>

#include "api/check.h"
#include "engine/common/instrumentation.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::check_not_null;
using api::check_team;
using api::kChecks;
using api::together;
using base::fail;
using engine::Blocks;
using engine::Combiner;
using engine::FoldResult;
using engine::Team;
using Kind = engine::FoldResult::Kind;

namespace {

// The first checks of every call here.
mob_status_t enter(const char* call, mob_team_t team, Team** found) {
  if (const mob_status_t status = check_team(call, team, found)) return status;
  if (const mob_status_t status = api::check_may_wait(call)) return status;
  (*found)->services().instrumentation.count_call(call);
  return MOB_OK;
}

mob_status_t check_root(const char* call, const Team& team, mob_rank_t root) {
  if (!kChecks || (root >= 0 && root < team.size())) [[likely]] {
    return MOB_OK;
  }
  return fail(MOB_ERR_RANK, "%s: root %d is not in the team, whose ranks are 0 to %d", call, root,
              team.size() - 1);
}

mob_status_t check_buffer(const char* call, const void* buffer, size_t bytes, const char* what) {
  return bytes == 0 ? MOB_OK : check_not_null(call, buffer, what);
}

// Checks that `count` items of `bytes` bytes do not overflow.
mob_status_t check_product(const char* call, size_t count, size_t bytes) {
  size_t total = 0;
  if (!kChecks || (!__builtin_mul_overflow(count, bytes, &total) && total <= PTRDIFF_MAX))
      [[likely]] {
    return MOB_OK;
  }
  return fail(MOB_ERR_RANGE, "%s: %zu times %zu bytes are more than any memory has", call, count,
              bytes);
}

mob_status_t check_packed(const char* call, const Team& team, size_t bytes) {
  return check_product(call, static_cast<size_t>(team.size()), bytes);
}

// Checks the two lists of blocks and their buffer.
mob_status_t check_listed(const char* call, const Team& team, const void* buffer,
                          const size_t* counts, const size_t* displacements, const char* what) {
  if (!kChecks) return MOB_OK;
  if (const mob_status_t status = check_not_null(call, counts, "a list of sizes")) return status;
  if (const mob_status_t status = check_not_null(call, displacements, "a list of displacements"))
    return status;
  for (mob_rank_t r = 0; r < team.size(); ++r) {
    size_t end = 0;
    if (__builtin_add_overflow(counts[r], displacements[r], &end) || end > PTRDIFF_MAX) {
      return fail(MOB_ERR_RANGE, "%s: %zu bytes at %zu for member %d are more than any memory has",
                  call, counts[r], displacements[r], r);
    }
    if (const mob_status_t status = check_buffer(call, buffer, counts[r], what)) return status;
  }
  return MOB_OK;
}

mob_status_t check_elements(const char* call, const void* buffer, size_t count, size_t alignment,
                            const char* what) {
  if (const mob_status_t status = check_buffer(call, buffer, count, what)) return status;
  if (!kChecks || count == 0 || reinterpret_cast<uintptr_t>(buffer) % alignment == 0) [[likely]] {
    return MOB_OK;
  }
  return fail(MOB_ERR_ARGUMENT, "%s: %s at %p is not aligned to the %zu bytes of its type", call,
              what, buffer, alignment);
}

// `alignment`: of elements of a library type; 1 for a user's operation, which knows its own.
mob_status_t check_fold(const char* call, const Team& team, FoldResult result, size_t element_bytes,
                        size_t alignment, const void* in, const void* out, size_t count) {
  if (result.kind == Kind::kRoot) {
    if (const mob_status_t status = check_root(call, team, result.root)) return status;
  }
  if (const mob_status_t status = check_product(call, count, element_bytes)) return status;
  if (const mob_status_t status = check_elements(call, in, count, alignment, "the input")) {
    return status;
  }
  const bool gets_none = (result.kind == Kind::kRoot && team.rank() != result.root) ||
                         (result.kind == Kind::kExclusive && team.rank() == 0);
  return gets_none ? MOB_OK : check_elements(call, out, count, alignment, "the output");
}

mob_status_t fold(const char* call, mob_team_t team, FoldResult result, mob_op_t op,
                  mob_type_t type, const void* in, void* out, size_t count) {
  Team* found = nullptr;
  if (const mob_status_t status = enter(call, team, &found)) return status;
  if (kChecks && !transport::op_is_defined(op, type)) [[unlikely]] {
    return transport::element_bytes(type) == 0
               ? fail(MOB_ERR_ARGUMENT, "%s: %d is not a type of elements (mob_type_t)", call,
                      static_cast<int>(type))
               : fail(MOB_ERR_ARGUMENT, "%s: operation %d (%s) is not defined on %s (see mob_op_t)",
                      call, static_cast<int>(op), transport::op_name(op),
                      transport::type_name(type));
  }
  const Combiner combine(op, type);
  mob_status_t status = check_fold(call, *found, result, combine.element_bytes(),
                                   transport::element_alignment(type), in, out, count);
  if (status != MOB_OK) return status;
  return together(call, *found,
                  [&] { return engine::fold(*found, result, combine, in, out, count); });
}

mob_status_t fold_user(const char* call, mob_team_t team, FoldResult result,
                       const mob_user_op_t* op, const void* in, void* out, size_t count) {
  Team* found = nullptr;
  if (const mob_status_t status = enter(call, team, &found)) return status;
  if (const mob_status_t status = check_not_null(call, op, "the operation")) return status;
  if (kChecks && (op->combine == nullptr || op->element_bytes == 0)) [[unlikely]] {
    return fail(MOB_ERR_ARGUMENT, "%s: the operation has %s", call,
                op->combine == nullptr ? "no function" : "elements of no bytes");
  }
  mob_status_t status = check_fold(call, *found, result, op->element_bytes, 1, in, out, count);
  if (status != MOB_OK) return status;
  const Combiner combine(*op);
  return together(call, *found,
                  [&] { return engine::fold(*found, result, combine, in, out, count); });
}

}  // namespace

mob_status_t mob_team_barrier(mob_team_t team) {
  constexpr const char* kCall = "mob_team_barrier";
  Team* found = nullptr;
  if (const mob_status_t status = enter(kCall, team, &found)) return status;
  return together(kCall, *found, [&] {
    const mob_status_t others = engine::complete_elsewhere(kCall, engine::engine_of_object(team));
    const mob_status_t status = found->complete_and_meet(kCall);
    return status != MOB_OK ? status : others;
  });
}

mob_status_t mob_broadcast(mob_team_t team, mob_rank_t root, void* buffer, size_t bytes) {
  constexpr const char* kCall = "mob_broadcast";
  Team* found = nullptr;
  if (const mob_status_t status = enter(kCall, team, &found)) return status;
  if (const mob_status_t status = check_root(kCall, *found, root)) return status;
  if (const mob_status_t status = check_product(kCall, 1, bytes)) return status;
  if (const mob_status_t status = check_buffer(kCall, buffer, bytes, "the buffer")) return status;
  return together(kCall, *found, [&] { return engine::broadcast(*found, root, buffer, bytes); });
}

mob_status_t mob_reduce(mob_team_t team, mob_rank_t root, mob_op_t op, mob_type_t type,
                        const void* in, void* out, size_t count) {
  return fold("mob_reduce", team, {Kind::kRoot, root}, op, type, in, out, count);
}

mob_status_t mob_allreduce(mob_team_t team, mob_op_t op, mob_type_t type, const void* in, void* out,
                           size_t count) {
  return fold("mob_allreduce", team, {Kind::kAll}, op, type, in, out, count);
}

mob_status_t mob_scan(mob_team_t team, mob_op_t op, mob_type_t type, const void* in, void* out,
                      size_t count) {
  return fold("mob_scan", team, {Kind::kScan}, op, type, in, out, count);
}

mob_status_t mob_exscan(mob_team_t team, mob_op_t op, mob_type_t type, const void* in, void* out,
                        size_t count) {
  return fold("mob_exscan", team, {Kind::kExclusive}, op, type, in, out, count);
}

mob_status_t mob_reduce_user(mob_team_t team, mob_rank_t root, const mob_user_op_t* op,
                             const void* in, void* out, size_t count) {
  return fold_user("mob_reduce_user", team, {Kind::kRoot, root}, op, in, out, count);
}

mob_status_t mob_allreduce_user(mob_team_t team, const mob_user_op_t* op, const void* in, void* out,
                                size_t count) {
  return fold_user("mob_allreduce_user", team, {Kind::kAll}, op, in, out, count);
}

mob_status_t mob_scan_user(mob_team_t team, const mob_user_op_t* op, const void* in, void* out,
                           size_t count) {
  return fold_user("mob_scan_user", team, {Kind::kScan}, op, in, out, count);
}

mob_status_t mob_exscan_user(mob_team_t team, const mob_user_op_t* op, const void* in, void* out,
                             size_t count) {
  return fold_user("mob_exscan_user", team, {Kind::kExclusive}, op, in, out, count);
}

mob_status_t mob_gather(mob_team_t team, mob_rank_t root, const void* in, void* out, size_t bytes) {
  constexpr const char* kCall = "mob_gather";
  Team* found = nullptr;
  if (const mob_status_t status = enter(kCall, team, &found)) return status;
  if (const mob_status_t status = check_root(kCall, *found, root)) return status;
  if (const mob_status_t status = check_packed(kCall, *found, bytes)) return status;
  if (const mob_status_t status = check_buffer(kCall, in, bytes, "the input")) return status;
  if (found->rank() == root) {
    if (const mob_status_t status = check_buffer(kCall, out, bytes, "the output")) return status;
  }
  return together(kCall, *found, [&] {
    return engine::gather(*found, root, in, bytes, out, Blocks::packed(bytes));
  });
}

mob_status_t mob_gatherv(mob_team_t team, mob_rank_t root, const void* in, size_t bytes, void* out,
                         const size_t* counts, const size_t* displacements) {
  constexpr const char* kCall = "mob_gatherv";
  Team* found = nullptr;
  if (const mob_status_t status = enter(kCall, team, &found)) return status;
  if (const mob_status_t status = check_root(kCall, *found, root)) return status;
  if (const mob_status_t status = check_product(kCall, 1, bytes)) return status;
  if (const mob_status_t status = check_buffer(kCall, in, bytes, "the input")) return status;
  if (found->rank() == root) {
    const mob_status_t status =
        check_listed(kCall, *found, out, counts, displacements, "the output");
    if (status != MOB_OK) return status;
  }
  return together(kCall, *found, [&] {
    return engine::gather(*found, root, in, bytes, out, Blocks::listed(counts, displacements));
  });
}

mob_status_t mob_allgather(mob_team_t team, const void* in, void* out, size_t bytes) {
  constexpr const char* kCall = "mob_allgather";
  Team* found = nullptr;
  if (const mob_status_t status = enter(kCall, team, &found)) return status;
  if (const mob_status_t status = check_packed(kCall, *found, bytes)) return status;
  if (const mob_status_t status = check_buffer(kCall, in, bytes, "the input")) return status;
  if (const mob_status_t status = check_buffer(kCall, out, bytes, "the output")) return status;
  return together(kCall, *found,
                  [&] { return engine::allgather(*found, in, out, Blocks::packed(bytes)); });
}

mob_status_t mob_allgatherv(mob_team_t team, const void* in, void* out, const size_t* counts,
                            const size_t* displacements) {
  constexpr const char* kCall = "mob_allgatherv";
  Team* found = nullptr;
  if (const mob_status_t status = enter(kCall, team, &found)) return status;
  mob_status_t status = check_listed(kCall, *found, out, counts, displacements, "the output");
  if (status != MOB_OK) return status;
  status = check_buffer(kCall, in, counts[found->rank()], "the input");
  if (status != MOB_OK) return status;
  return together(kCall, *found, [&] {
    return engine::allgather(*found, in, out, Blocks::listed(counts, displacements));
  });
}

mob_status_t mob_scatter(mob_team_t team, mob_rank_t root, const void* in, void* out,
                         size_t bytes) {
  constexpr const char* kCall = "mob_scatter";
  Team* found = nullptr;
  if (const mob_status_t status = enter(kCall, team, &found)) return status;
  if (const mob_status_t status = check_root(kCall, *found, root)) return status;
  if (const mob_status_t status = check_packed(kCall, *found, bytes)) return status;
  if (found->rank() == root) {
    if (const mob_status_t status = check_buffer(kCall, in, bytes, "the input")) return status;
  }
  if (const mob_status_t status = check_buffer(kCall, out, bytes, "the output")) return status;
  return together(kCall, *found, [&] { return engine::scatter(*found, root, in, out, bytes); });
}

mob_status_t mob_alltoall(mob_team_t team, const void* in, void* out, size_t bytes) {
  constexpr const char* kCall = "mob_alltoall";
  Team* found = nullptr;
  if (const mob_status_t status = enter(kCall, team, &found)) return status;
  if (const mob_status_t status = check_packed(kCall, *found, bytes)) return status;
  if (const mob_status_t status = check_buffer(kCall, in, bytes, "the input")) return status;
  if (const mob_status_t status = check_buffer(kCall, out, bytes, "the output")) return status;
  return together(kCall, *found, [&] {
    return engine::alltoall(*found, in, Blocks::packed(bytes), out, Blocks::packed(bytes));
  });
}

mob_status_t mob_alltoallv(mob_team_t team, const void* in, const size_t* in_counts,
                           const size_t* in_displacements, void* out, const size_t* out_counts,
                           const size_t* out_displacements) {
  constexpr const char* kCall = "mob_alltoallv";
  Team* found = nullptr;
  if (const mob_status_t status = enter(kCall, team, &found)) return status;
  mob_status_t status = check_listed(kCall, *found, in, in_counts, in_displacements, "the input");
  if (status != MOB_OK) return status;
  status = check_listed(kCall, *found, out, out_counts, out_displacements, "the output");
  if (status != MOB_OK) return status;
  const mob_rank_t me = found->rank();
  if (kChecks && in_counts[me] != out_counts[me]) [[unlikely]] {
    return fail(MOB_ERR_ARGUMENT,
                "%s: this member gives itself %zu bytes but takes %zu; the sizes must match", kCall,
                in_counts[me], out_counts[me]);
  }
  return together(kCall, *found, [&] {
    return engine::alltoall(*found, in, Blocks::listed(in_counts, in_displacements), out,
                            Blocks::listed(out_counts, out_displacements));
  });
}
