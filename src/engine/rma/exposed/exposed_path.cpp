// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rma/exposed/exposed_path.h"

#include <cerrno>

#include "base/status.h"
#include "engine/rma/completion_signals.h"
#include "engine/rma/exposed/exposures.h"
#include "engine/rma/exposed/path_costs.h"
#include "engine/rma/request_path.h"
#include "engine/rma/shape_parts.h"
#include "engine/segment/kernel_copy.h"
#include "engine/segment/segment.h"
#include "os/memory/accessible_memory.h"
#include "os/sync/futex.h"
#include "transport/cma/cma.h"
#include "transport/shm/shape.h"

namespace mobius::engine {

using base::fail;
using transport::Shape;

bool ExposedPath::is_exposed(mob_rank_t rank, const Shape& shape) {
  ListedRange known{};  // most lists stay within one range
  const auto covered = [&](const void* remote, size_t bytes) {
    return exposures_.covers(rank, reinterpret_cast<uintptr_t>(remote), bytes, &known) ||
           segment_.reach(rank, remote, bytes) != nullptr;
  };
  if (shape.total_bytes == 0) return true;
  return for_each_part(shape, covered);
}

void ExposedPath::find_route(const mob_transfer_t& transfer, const Shape& shape,
                             const Notice& notice, Route* route) {
  if (segment_.peers().is_same_process(transfer.rank)) {
    route->delta = 0;
    return;
  }
  const bool is_box = shape.kind == MOB_CONTIGUOUS || shape.kind == MOB_STRIDED;
  route->may_read_gaps =
      is_box && exposures_.covers(transfer.rank, shape.lowest, shape.highest - shape.lowest);
  const size_t cma_ns = notice.by_target || !kernel_copy_.allowed(transfer.rank)
                            ? SIZE_MAX
                            : kernel_time(transfer.kind, shape, route->may_read_gaps);
  route->path =
      cma_ns <= kServiceNs + shape.total_bytes / kStageBytesPerNs ? Path::kCma : Path::kMessage;
  // If the kernel reads gaps, it copies those as well.
  const bool reads_gaps = transfer.kind == MOB_GET && shape.kind == MOB_STRIDED &&
                          cma_ns < transport::cma_put_pieces(shape) * kPieceNs;
  const size_t copied = reads_gaps ? shape.highest - shape.lowest : shape.total_bytes;
  route->calls = cma_ns > kCallNs || cma_ns + copied / kKernelBytesPerNs > kCallNs;
}

// The kernel's approximate time in nanoseconds beside copying the bytes; SIZE_MAX if it cannot
// carry the transfer out.
size_t ExposedPath::kernel_time(mob_kind_t kind, const Shape& shape, bool may_read_gaps) {
  if (kind == MOB_PUT) return transport::cma_put_pieces(shape) * kPieceNs;
  if (kind == MOB_GET) return transport::cma_get_pieces(shape, may_read_gaps) * kPieceNs;
  return SIZE_MAX;
}

bool ExposedPath::copy_covered(mob_rank_t rank, uintptr_t remote, const void* local, size_t bytes,
                               bool put) {
  if (!segment_.peers().is_rank(rank, mob_size_) || !exposures_.covers(rank, remote, bytes) ||
      segment_.peers().is_same_process(rank) || !kernel_copy_.allowed(rank)) {
    return false;
  }
  const Delegation::Stay stay(delegation_);
  if (bytes <= Delegation::kMostBytes && delegation_.is_attended(rank)) {
    return copy_attended(rank, remote, local, bytes, put);
  }
  return transport::cma_copy(segment_.peers().pid_of(rank), remote, local, bytes, put) == 0;
}

// Has the target copy, or the kernel if that was faster for about as many bytes.
bool ExposedPath::copy_attended(mob_rank_t rank, uintptr_t remote, const void* local, size_t bytes,
                                bool put) {
  ExposedTuning::Turn turn;
  if (bytes >= ExposedTuning::kLeastBytes) turn = tuning_.begin(put, bytes);
  const uint64_t begin_ns = turn.is_timed ? os::now_ns() : 0;
  const bool delegates = turn.delegates && delegation_.copy(rank, remote, local, bytes, put);
  if (!delegates &&
      transport::cma_copy(segment_.peers().pid_of(rank), remote, local, bytes, put) != 0) {
    return false;
  }
  if (turn.is_timed && delegates == turn.delegates) {
    tuning_.add(put, bytes, delegates, os::now_ns() - begin_ns);
  }
  return true;
}

// Whether copy_attended() may carry it out.
bool ExposedPath::is_attended_range(const Operation& operation) {
  const mob_transfer_t& transfer = *operation.transfer;
  return (transfer.kind == MOB_PUT || transfer.kind == MOB_GET) &&
         operation.shape.kind == MOB_CONTIGUOUS &&
         operation.shape.total_bytes - 1 < Delegation::kMostBytes && !operation.notice.by_target &&
         delegation_.is_attended(transfer.rank);
}

mob_status_t ExposedPath::carry(const Operation& operation) {
  const Delegation::Stay stay(delegation_);
  if (is_attended_range(operation)) {
    const Shape& shape = operation.shape;
    const mob_transfer_t& transfer = *operation.transfer;
    if (copy_attended(transfer.rank, shape.lowest, shape.local, shape.total_bytes,
                      transfer.kind == MOB_PUT)) {
      signals_.announce(transfer, operation.notice);
      return MOB_OK;
    }
  }
  return ask_waiting_target(operation) == Delegation::Outcome::kDone ? MOB_OK
                                                                     : carry_by_kernel(operation);
}

Delegation::Outcome ExposedPath::ask_waiting_target(const Operation& operation) {
  using enum Delegation::Outcome;
  const mob_transfer_t& transfer = *operation.transfer;
  const bool put = transfer.kind == MOB_PUT;
  if (operation.notice.by_target || operation.shape.total_bytes == 0) return kNotDelegated;
  const Delegation::Outcome outcome =
      put || transfer.kind == MOB_GET
          ? delegation_.move(transfer.rank, operation.shape, put, operation.route.calls)
          : delegation_.combine(transfer, operation.shape);
  if (outcome == kDone) signals_.announce(transfer, operation.notice);
  return outcome;
}

namespace {

// The kernel's EFAULT does not tell whose memory it was.
uintptr_t forbidden_local(const transport::Shape& shape, bool to_write) {
  const os::AccessibleMemory memory(to_write);
  uintptr_t found = 0;
  transport::for_each_run(shape, [&](char*, char* local, size_t bytes) {
    found = memory.first_outside(reinterpret_cast<uintptr_t>(local), bytes);
    return found == 0 ? MOB_OK : MOB_ERR_ARGUMENT;
  });
  return found;
}

}  // namespace

mob_status_t ExposedPath::carry_by_kernel(const Operation& operation) {
  const mob_transfer_t& transfer = *operation.transfer;
  const pid_t pid = segment_.peers().pid_of(transfer.rank);
  const int error = transfer.kind == MOB_PUT
                        ? transport::cma_put(pid, operation.shape)
                        : transport::cma_get(pid, operation.shape, operation.route.may_read_gaps);
  switch (error) {
    case 0:
      signals_.announce(transfer, operation.notice);
      return MOB_OK;
    case EPERM:
    case ENOSYS:
      kernel_copy_.refuse();
      return requests_.run(operation.call, transfer, operation.shape, operation.mode,
                           operation.handle);
    case ESRCH:
      return fail(MOB_ERR_PEER, "%s: rank %d died", operation.call, transfer.rank);
    case EFAULT:
      if (const uintptr_t own = forbidden_local(operation.shape, transfer.kind == MOB_GET)) {
        return fail(MOB_ERR_ARGUMENT,
                    "%s: the caller's memory at %p is not mapped, or may not be %s", operation.call,
                    reinterpret_cast<void*>(own), transfer.kind == MOB_GET ? "written" : "read");
      }
      return fail(MOB_ERR_RANGE,
                  "%s: rank %d exposed memory at %p, but it is not mapped, or may not be %s",
                  operation.call, transfer.rank, static_cast<const void*>(operation.shape.remote),
                  transfer.kind == MOB_PUT ? "written" : "read");
    default:
      return base::fail_errno(MOB_ERR_SYSTEM, error,
                              "%s: the kernel did not copy from or to rank %d", operation.call,
                              transfer.rank);
  }
}

mob_status_t ExposedPath::put(mob_rank_t rank, const mob_span_t* remote, const mob_span_t* local,
                              size_t count) {
  if (kernel_copy_.allowed(rank)) {
    const auto first = reinterpret_cast<uintptr_t>(remote->address);
    if (count == 1 && copy_covered(rank, first, local->address, remote->bytes, true)) {
      return MOB_OK;
    }
    Shape all;
    all.kind = MOB_SPANS;
    all.remote_spans = remote;
    all.local_spans = local;
    all.remote_span_count = all.local_span_count = count;
    for (size_t i = 0; i < count; ++i) all.total_bytes += remote[i].bytes;
    if (delegation_.move(rank, all, true, false) == Delegation::Outcome::kDone) return MOB_OK;
    if (transport::cma_put(segment_.peers().pid_of(rank), all) == 0) return MOB_OK;
  }
  // One by one: finds the failing puts, and carries out the others.
  mob_status_t first = MOB_OK;
  for (size_t i = 0; i < count; ++i) {
    mob_transfer_t transfer{};
    transfer.kind = MOB_PUT;
    transfer.rank = rank;
    transfer.remote = remote[i].address;
    transfer.local = local[i].address;
    transfer.bytes = remote[i].bytes;
    Operation operation;
    operation.call = "a put that was only started";  // by any call
    operation.transfer = &transfer;
    operation.mode = Mode::kImplicit;
    mob_status_t status = transport::normalise(operation.call, transfer, &operation.shape);
    if (status == MOB_OK) status = carry_by_kernel(operation);
    if (first == MOB_OK) first = status;
  }
  return first;
}

}  // namespace mobius::engine
