// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/atomic.h>

#include "api/check.h"
#include "api/rma/transfer.h"

using namespace mobius;  // NOLINT(google-build-using-namespace): this file is the C face of it
using api::run_transfer;
using base::fail;

namespace {

mob_transfer_t array(mob_kind_t kind, mob_rank_t rank, void* remote, const void* local,
                     size_t count, mob_type_t type, mob_op_t op) {
  mob_transfer_t transfer{};
  transfer.kind = kind;
  transfer.rank = rank;
  transfer.remote = remote;
  transfer.local = const_cast<void*>(local);
  // Overflow: more bytes than any target has, as the error says.
  if (__builtin_mul_overflow(count, mob_type_bytes(type), &transfer.bytes)) {
    transfer.bytes = SIZE_MAX - SIZE_MAX % 16;
  }
  transfer.type = type;
  transfer.op = op;
  return transfer;
}

bool accumulate_few(mob_rank_t rank, void* remote, const void* local, size_t count,
                    const transport::Combination& what) {
  if (mob_size_ == 0) return false;
  const engine::EngineOf at = engine::engine_of(rank, remote);
  return at.engine.router().accumulate_few(at.rank, remote, local, count, what);
}

struct RmwNames {
  const char* of8;
  const char* of4;
};

constexpr RmwNames kNames[] = {
    {"mob_fetch_add8", "mob_fetch_add4"}, {"mob_fetch_and8", "mob_fetch_and4"},
    {"mob_fetch_or8", "mob_fetch_or4"},   {"mob_fetch_xor8", "mob_fetch_xor4"},
    {"mob_swap8", "mob_swap4"},           {"mob_compare_swap8", "mob_compare_swap4"}};

mob_status_t rmw(mob_rmw_t_ what, mob_rank_t rank, void* remote, uint64_t value, uint64_t expected,
                 void* old, unsigned bytes) {
  const char* call = bytes == 8 ? kNames[what].of8 : kNames[what].of4;
  if (const mob_status_t status = api::check_rank(call, rank)) return status;
  if (const mob_status_t status = api::check_not_null(call, old, "the result")) return status;
  if (const mob_status_t status = api::check_not_null(call, remote, "the remote address")) {
    return status;
  }
  if (reinterpret_cast<uintptr_t>(remote) % bytes != 0) {
    return fail(MOB_ERR_ARGUMENT, "%s: the word at %p is not aligned to its %u bytes", call, remote,
                bytes);
  }
  const engine::EngineOf at = engine::engine_of(rank, remote);
  engine::Engine& engine = at.engine;
  rank = at.rank;
  void* word = engine.segment().reach_word(rank, remote, bytes);
  if (word == nullptr && engine.peers().is_here(rank)) {
    if (!engine.exposures().covers(rank, reinterpret_cast<uintptr_t>(remote), bytes)) {
      return engine.segment().explain_unreachable(call, rank, remote, bytes);
    }
    if (engine.peers().is_same_process(rank)) word = remote;
  }
  return api::without_exceptions(call, [&] {
    return engine.router().run({call, rank, what, remote, word, value, expected, old, bytes});
  });
}

}  // namespace

mob_status_t mob_rmw_out_of_line_(mob_rmw_t_ what, mob_rank_t rank, void* remote, uint64_t value,
                                  uint64_t expected, void* old, unsigned log2_bytes) {
  return rmw(what, rank, remote, value, expected, old, 1u << log2_bytes);
}

mob_status_t mob_fetch_op(mob_rank_t rank, void* remote, mob_type_t type, mob_op_t op,
                          const void* operand, void* old) {
  // An operation without operand gets an address that is never read.
  const void* local = op == MOB_NO_OP && operand == nullptr ? old : operand;
  mob_transfer_t transfer = array(MOB_FETCH_ACCUMULATE, rank, remote, local, 1, type, op);
  transfer.fetched = old;
  // Orders as the calls on words do. MOB_ERR_STATE means a call before mob_init(), which is
  // reported below, or a handler, which must not wait.
  const mob_status_t ordered = mob_fence();
  if (ordered != MOB_OK && ordered != MOB_ERR_STATE) return ordered;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const mob_status_t status = run_transfer("mob_fetch_op", transfer);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return status;
}

mob_status_t mob_accumulate(mob_rank_t rank, void* remote, const void* local, size_t count,
                            mob_type_t type, mob_op_t op) {
  if (accumulate_few(rank, remote, local, count, {type, op, nullptr, nullptr})) return MOB_OK;
  return run_transfer("mob_accumulate",
                      array(MOB_ACCUMULATE, rank, remote, local, count, type, op));
}

mob_status_t mob_accumulate_scaled(mob_rank_t rank, void* remote, const void* local, size_t count,
                                   mob_type_t type, const void* scale) {
  if (const mob_status_t status =
          api::check_not_null("mob_accumulate_scaled", scale, "the scale")) {
    return status;
  }
  if (accumulate_few(rank, remote, local, count, {type, MOB_SUM, scale, nullptr})) return MOB_OK;
  mob_transfer_t transfer = array(MOB_ACCUMULATE, rank, remote, local, count, type, MOB_SUM);
  transfer.scale = scale;
  return run_transfer("mob_accumulate_scaled", transfer);
}

mob_status_t mob_fetch_accumulate(mob_rank_t rank, void* remote, const void* local, void* old,
                                  size_t count, mob_type_t type, mob_op_t op) {
  if (old != nullptr && accumulate_few(rank, remote, local, count, {type, op, nullptr, old})) {
    return MOB_OK;
  }
  mob_transfer_t transfer = array(MOB_FETCH_ACCUMULATE, rank, remote, local, count, type, op);
  transfer.fetched = old;
  return run_transfer("mob_fetch_accumulate", transfer);
}
