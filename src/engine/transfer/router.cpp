// SPDX-License-Identifier: BSD-3-Clause
#include "engine/transfer/router.h"

#include <cstring>

#include "base/status.h"
#include "engine/progress/completion.h"
#include "engine/progress/progress.h"
#include "engine/request/am_rma.h"
#include "engine/rma/shape_parts.h"
#include "engine/scheduler/scheduler.h"
#include "transport/shm/copy_peer.h"
#include "transport/shm/element.h"
#include "transport/shm/kernels/kernels.h"

namespace mobius::engine {

using transport::Shape;

mob_status_t Router::open(const base::Settings& settings) {
  if (const mob_status_t status =
          hooks_.open(settings, paths_.segment.peers().rank(), paths_.completion, *this))
    return status;
  if (hooks_.empty()) return MOB_OK;
  first_ = &hooks_.first();
  Completion::stay_out_of_line(true);
  return MOB_OK;
}

void Router::close(bool report) {
  if (!hooked()) return;
  first_ = this;
  Completion::stay_out_of_line(false);
  hooks_.close(report);
}

mob_status_t Router::run(const char* call, const mob_transfer_t& transfer, Mode mode,
                         uint64_t* handle) {
  Operation operation;
  operation.mode = mode;
  operation.handle = handle;
  if (const mob_status_t status = prepare(call, transfer, &operation)) return status;
  if (mode == Mode::kHandle) *handle = MOB_HANDLE_DONE;
  return first_->carry(operation);
}

mob_status_t Router::put_unmapped(const char* call, mob_rank_t rank, void* remote,
                                  const void* local, size_t bytes) {
  mob_status_t status = MOB_OK;
  if (paths_.scheduler.try_put(call, rank, remote, local, bytes, Scheduler::Urgency::kUrgent,
                               &status))
    return status;
  if (copy_exposed(rank, remote, local, bytes, true)) return MOB_OK;
  return run(call, contiguous(MOB_PUT, rank, remote, local, bytes), Mode::kBlocking, nullptr);
}

mob_status_t Router::get_unmapped(const char* call, mob_rank_t rank, const void* remote,
                                  void* local, size_t bytes) {
  mob_status_t status = MOB_OK;
  if (paths_.scheduler.try_get(call, rank, remote, local, bytes, &status)) return status;
  if (copy_exposed(rank, remote, local, bytes, false)) return MOB_OK;
  return run(call, contiguous(MOB_GET, rank, remote, local, bytes), Mode::kBlocking, nullptr);
}

mob_status_t Router::put_unmapped_nbi(const char* call, mob_rank_t rank, void* remote,
                                      const void* local, size_t bytes) {
  mob_status_t status = MOB_OK;
  if (bytes <= Scheduler::kMostCopied &&
      paths_.scheduler.try_put(call, rank, remote, local, bytes, Scheduler::Urgency::kAtFlush,
                               &status)) {
    return status;
  }
  if (puts_go_alone() && copy_exposed(rank, remote, local, bytes, true)) return MOB_OK;
  return run(call, contiguous(MOB_PUT, rank, remote, local, bytes), Mode::kImplicit, nullptr);
}

mob_status_t Router::get_unmapped_nbi(const char* call, mob_rank_t rank, const void* remote,
                                      void* local, size_t bytes) {
  if (copy_exposed(rank, remote, local, bytes, false)) return MOB_OK;
  return run(call, contiguous(MOB_GET, rank, remote, local, bytes), Mode::kImplicit, nullptr);
}

mob_status_t Router::put_unmapped_value(const char* call, mob_rank_t rank, void* remote,
                                        const void* value, size_t bytes) {
  mob_status_t status = MOB_OK;
  if (paths_.scheduler.try_put(call, rank, remote, value, bytes, Scheduler::Urgency::kUrgent,
                               &status))
    return status;
  return run(call, contiguous(MOB_PUT, rank, remote, value, bytes), Mode::kBlocking, nullptr);
}

mob_status_t Router::get_unmapped_value(const char* call, mob_rank_t rank, const void* remote,
                                        void* value, size_t bytes) {
  mob_status_t status = MOB_OK;
  if (paths_.scheduler.try_get(call, rank, remote, value, bytes, &status)) return status;
  return run(call, contiguous(MOB_GET, rank, remote, value, bytes), Mode::kBlocking, nullptr);
}

// Checks the transfer and chooses its path.
mob_status_t Router::prepare(const char* call, const mob_transfer_t& transfer,
                             Operation* operation) {
  operation->call = call;
  operation->transfer = &transfer;
  if (const mob_status_t status = transport::normalise(call, transfer, &operation->shape)) {
    return status;
  }
  if (const mob_status_t status = paths_.signals.resolve(call, transfer, &operation->notice)) {
    return status;
  }
  if (!paths_.segment.peers().is_here(transfer.rank)) {
    // The target validates its own addresses and reports errors in its reply.
    operation->route.path = Path::kNetwork;
  } else if (operation->notice.by_target ||
             !reach_all(transfer.rank, operation->shape, &operation->route.delta)) {
    if (!paths_.exposed.is_exposed(transfer.rank, operation->shape)) {
      return explain(call, transfer.rank, operation->shape);
    }
    paths_.exposed.find_route(transfer, operation->shape, operation->notice, &operation->route);
  }
  return MOB_OK;
}

bool Router::copy_and_tell(const Telling& telling) {
  const mob_rank_t rank = telling.rank;
  if (!paths_.segment.peers().is_rank(rank, mob_size_) || hooked()) return false;
  const uintptr_t misaligned = reinterpret_cast<uintptr_t>(telling.signal) |
                               reinterpret_cast<uintptr_t>(telling.origin_word) |
                               reinterpret_cast<uintptr_t>(telling.completion_word);
  if (misaligned % sizeof(uint64_t) != 0) return false;
  const auto find = [&](void* remote, size_t bytes) {
    return paths_.segment.is_at_hand(rank, remote, bytes)
               ? remote
               : paths_.segment.reach(rank, remote, bytes);
  };
  uint64_t* word = nullptr;
  if (telling.signal != nullptr) {
    word = static_cast<uint64_t*>(find(telling.signal, sizeof(uint64_t)));
    if (word == nullptr) return false;
  }
  if (telling.bytes != 0) {
    void* here = find(telling.remote, telling.bytes);
    if (here == nullptr || telling.local == nullptr) return false;
    if (telling.is_put) {
      transport::copy_to_peer(here, telling.local, telling.bytes);
    } else {
      transport::copy_from_peer(telling.local, here, telling.bytes);
    }
  }
  if (word != nullptr) paths_.signals.signal(rank, word, telling.signal_value, telling.signal_op);
  paths_.signals.count_own(telling.origin_word, telling.completion_word);
  return true;
}

bool Router::run_rows(const mob_transfer_t& transfer) {
  // Limits that rule out overflow of sizes; larger boxes would gain by streaming.
  constexpr size_t kMostBytes = size_t{64} << 10;
  constexpr size_t kLongestStride = size_t{1} << 24;
  if (transfer.shape != MOB_STRIDED || transfer.dimensions != 1 || counts(transfer) ||
      transfer.signal != nullptr || hooked() || transfer.counts == nullptr ||
      transfer.remote_strides == nullptr || transfer.local_strides == nullptr ||
      transfer.local == nullptr || !paths_.segment.peers().is_rank(transfer.rank, mob_size_)) {
    return false;
  }
  const size_t bytes = transfer.bytes;
  const size_t count = *transfer.counts;
  const auto remote_stride = static_cast<size_t>(*transfer.remote_strides);
  const auto local_stride = static_cast<size_t>(*transfer.local_strides);
  if (bytes - 1 >= transport::kRowBytesMax || count - 1 >= kMostBytes / bytes ||
      remote_stride - bytes > kLongestStride || local_stride - bytes > kLongestStride) {
    return false;
  }
  const size_t reach = (count - 1) * remote_stride + bytes;
  void* const there = paths_.segment.is_at_hand(transfer.rank, transfer.remote, reach)
                          ? transfer.remote
                          : paths_.segment.reach(transfer.rank, transfer.remote, reach);
  if (there == nullptr) return false;
  auto* const remote = static_cast<char*>(there);
  auto* const local = static_cast<char*>(transfer.local);
  const auto far = static_cast<ptrdiff_t>(remote_stride);
  const auto near = static_cast<ptrdiff_t>(local_stride);
  switch (transfer.kind) {
    case MOB_PUT:
      transport::kernels().move_rows({remote, local, far, near, count}, bytes);
      return true;
    case MOB_GET:
      transport::kernels().move_rows({local, remote, near, far, count}, bytes);
      return true;
    case MOB_ACCUMULATE: {
      transport::ElementOp element;
      if (!transport::find_element_op(transfer.op, transfer.type, &element) ||
          bytes % element.bytes != 0 || remote_stride % element.alignment != 0 ||
          (transfer.scale != nullptr && transfer.op != MOB_SUM)) {
        return false;
      }
      return paths_.segment.accumulate_locks().accumulate_few(
          paths_.segment.peers().host_index(transfer.rank),
          reinterpret_cast<uintptr_t>(transfer.remote), reach, {remote, local, far, near, count},
          bytes / element.bytes, {transfer.type, transfer.op, transfer.scale, nullptr}, element);
    }
    case MOB_FETCH_ACCUMULATE:
      break;
  }
  return false;
}

bool Router::accumulate_few(mob_rank_t rank, void* remote, const void* local, size_t count,
                            const transport::Combination& what) {
  transport::ElementOp element;
  if (!paths_.segment.peers().is_rank(rank, mob_size_) || hooked() || local == nullptr ||
      count - 1 >= transport::kLockBlockBytes ||
      !transport::find_element_op(what.op, what.type, &element)) {
    return false;
  }
  const size_t bytes = count * element.bytes;
  void* here = paths_.segment.is_at_hand(rank, remote, bytes)
                   ? remote
                   : paths_.segment.reach(rank, remote, bytes);
  return here != nullptr &&
         paths_.segment.accumulate_locks().accumulate_few(
             paths_.segment.peers().host_index(rank), reinterpret_cast<uintptr_t>(remote), bytes,
             transport::one_row(here, local), count, what, element);
}

mob_status_t Router::carry(const Operation& operation) {
  using enum Delegation::Outcome;
  switch (operation.route.path) {
    case Path::kDirect:
      paths_.local.perform(*operation.transfer, operation.shape, operation.route.delta);
      paths_.signals.announce(*operation.transfer, operation.notice);
      return MOB_OK;
    case Path::kCma:
      if (paths_.exposed_batch.takes(operation)) return paths_.exposed_batch.record(operation);
      paths_.exposed_batch.issue();
      return paths_.exposed.carry(operation);
    case Path::kMessage: {
      paths_.exposed_batch.issue();
      // If requests by message are pending at the target, this operation must follow them:
      // otherwise a get would not see an earlier put.
      if (paths_.completion.is_awaited(operation.transfer->rank)) break;
      const Delegation::Stay stay(paths_.delegation);
      const Delegation::Outcome outcome = paths_.exposed.ask_waiting_target(operation);
      if (outcome == kDone) return MOB_OK;
      const bool copies =
          operation.transfer->kind == MOB_PUT || operation.transfer->kind == MOB_GET;
      if (outcome == kNobodyCame && copies &&
          paths_.kernel_copy.allowed(operation.transfer->rank)) {
        return paths_.exposed.carry_by_kernel(operation);
      }
      break;
    }
    case Path::kNetwork:
      if (mob_status_t status{}; paths_.deferred.takes(operation, &status)) {
        return status;
      }
      if (mob_status_t status{}; paths_.scheduler.try_submit(operation, &status)) return status;
      paths_.scheduler.issue(operation.transfer->rank);
      paths_.progress.note_start();
      break;
  }
  return paths_.requests.run(operation.call, *operation.transfer, operation.shape, operation.mode,
                             operation.handle);
}

mob_status_t Router::fence() {
  constexpr const char* kCall = "mob_fence";
  if (const mob_status_t status = paths_.deferred.complete(kCall, Completion::kAll)) {
    return status;
  }
  return first_->order();
}

// Operations by loads and stores are in order, and so are operations on other hosts, all in one
// stream. Requests to local peers must be awaited: a later put on another path would overtake them.
mob_status_t Router::order_for(const char* call) {
  paths_.exposed_batch.issue();
  paths_.scheduler.fence();
  return paths_.completion.order(call);
}

// Updates a word that only the target's process has mapped. A reader that sees the new value must
// also see the caller's earlier operations at this target.
mob_status_t Router::update_by_target(const WordUpdate& update) {
  if (const mob_status_t status = order_for(update.call)) return status;
  if (update.what == MOB_RMW_COMPARE_SWAP_) {
    if (!paths_.segment.peers().is_here(update.rank)) {
      const mob_status_t status = paths_.deferred.gain(update.call);
      if (status != MOB_OK) return status;
      paths_.scheduler.issue(update.rank);
    }
    uint64_t held = 0;
    if (paths_.segment.peers().is_here(update.rank) &&
        paths_.delegation.compare_swap(update.rank, update.remote, update.bytes, update.expected,
                                       update.value, &held) == Delegation::Outcome::kDone) {
      std::memcpy(update.old, &held, update.bytes);
      return MOB_OK;
    }
    const mob_status_t status =
        paths_.requests.compare_swap(update.call, update.rank, update.remote, update.bytes,
                                     update.expected, update.value, &held);
    if (status == MOB_OK) std::memcpy(update.old, &held, update.bytes);
    return status;
  }
  constexpr mob_op_t kOps[] = {MOB_SUM, MOB_BAND, MOB_BOR, MOB_BXOR, MOB_REPLACE};
  uint64_t operand = update.value;  // the low bytes come first
  mob_transfer_t transfer{};
  transfer.kind = MOB_FETCH_ACCUMULATE;
  transfer.rank = update.rank;
  transfer.remote = update.remote;
  transfer.local = &operand;
  transfer.bytes = update.bytes;
  transfer.type = update.bytes == 8 ? MOB_UINT64 : MOB_UINT32;
  transfer.op = kOps[update.what];
  transfer.fetched = update.old;
  // The hooks have seen it as an update already.
  Operation operation;
  if (const mob_status_t status = prepare(update.call, transfer, &operation)) return status;
  return carry(operation);
}

mob_status_t Router::update(const WordUpdate& update) {
  if (update.word == nullptr) return update_by_target(update);
  paths_.local.update(update);
  return MOB_OK;
}

// Whether this process has mapped all of the target's bytes; `delta` is the difference of their
// addresses here.
bool Router::reach_all(mob_rank_t rank, const Shape& shape, ptrdiff_t* delta) {
  if (shape.total_bytes == 0) return true;
  const auto reaches = [&](const void* remote, size_t bytes) {
    // Lists name the same region again and again: the cached translation is less than half the
    // work.
    if (paths_.segment.is_at_hand(rank, remote, bytes)) {
      *delta = 0;
      return true;
    }
    auto* here = static_cast<char*>(paths_.segment.reach(rank, remote, bytes));
    if (here == nullptr) return false;
    *delta = here - static_cast<const char*>(remote);
    return true;
  };
  const bool is_list = shape.kind == MOB_PIECES || shape.kind == MOB_SPANS;
  // Most lists lie within one region: one check instead of one per piece.
  if (is_list && shape.highest != 0 &&
      reaches(reinterpret_cast<const void*>(shape.lowest), shape.highest - shape.lowest)) {
    return true;
  }
  return for_each_part(shape, reaches);
}

mob_status_t Router::explain(const char* call, mob_rank_t rank, const Shape& shape) {
  mob_status_t status = MOB_OK;
  for_each_part(shape, [&](const void* remote, size_t bytes) {
    if (paths_.segment.reach(rank, remote, bytes) != nullptr ||
        paths_.exposures.covers(rank, reinterpret_cast<uintptr_t>(remote), bytes)) {
      return true;
    }
    status = paths_.segment.explain_unreachable(call, rank, remote, bytes);
    return false;
  });
  return status;
}

}  // namespace mobius::engine
