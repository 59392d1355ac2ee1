// SPDX-License-Identifier: BSD-3-Clause

// The origin's side of remote memory access: memory offered to the target, or writes with a key
// that the target has given.

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/common/instrumentation.h"
#include "engine/message/message.h"
#include "engine/network/network.h"
#include "engine/progress/progress.h"
#include "engine/progress/waiter.h"
#include "engine/request/am_rma.h"
#include "engine/request/am_rma_parts.h"
#include "engine/request/link_observer.h"
#include "os/sync/futex.h"
#include "schedule/link_meter.h"

namespace mobius::engine {

using base::fail;
using transport::Shape;

namespace {

// Whether the transfer notifies at the target, which only the target can do.
bool tells_target(const mob_transfer_t& transfer) {
  return transfer.target_counter != nullptr || transfer.signal != nullptr;
}

}  // namespace

bool AmRma::is_bulk(const mob_transfer_t& transfer, const Shape& shape, Mode mode) const {
  if (services_.peers.is_here(transfer.rank)) return false;
  NetworkRma& bulk = services_.network.rma();
  const NetworkRma::Extent extent = bulk.extent_of(transfer.kind, shape);
  if (!bulk.is_worth(extent)) return is_bare(transfer, shape);
  return mode != Mode::kBlocking || bulk.is_worth_waiting_for(extent);
}

// Whether the transfer moves one contiguous range, and needs no message, or a request alone for a
// get. Only for memory whose key is here: its owner does not free it before it has written the data
// of earlier requests, because the withdrawal of the key is ordered behind those data. Exposed
// memory could be withdrawn while the target writes from it, which would break a TCP connection; an
// answer in a message reports the error instead.
bool AmRma::is_bare(const mob_transfer_t& transfer, const Shape& shape) const {
  return can_be_bare(transfer, shape) && has_key_for(transfer);
}

bool AmRma::can_be_bare(const mob_transfer_t& transfer, const Shape& shape) const {
  return services_.network.rma().is_worth_bare(shape.total_bytes) && shape.kind == MOB_CONTIGUOUS &&
         !services_.peers.is_here(transfer.rank) &&
         ((transfer.kind == MOB_PUT && !tells_target(transfer)) ||
          is_told_by_note(transfer, shape));
}

bool AmRma::has_key_for(const mob_transfer_t& transfer) const {
  const auto remote = reinterpret_cast<uintptr_t>(transfer.remote);
  return services_.rkeys.has(transfer.rank, remote, remote + transfer.bytes);
}

// Whether the arrival of the bytes of a get is enough as its answer.
bool AmRma::is_told_by_note(const mob_transfer_t& transfer, const Shape& shape) const {
  return transfer.kind == MOB_GET && shape.kind == MOB_CONTIGUOUS && !tells_target(transfer) &&
         services_.network.rma().can_note(shape.total_bytes);
}

// Use of a target's key, for the lifetime of this object.
struct AmRma::RkeyLoan {
  Rkeys& keys;
  const mob_rank_t target;
  Rkeys::Key key{};
  bool is_there;

  RkeyLoan(Rkeys& all, mob_rank_t rank, const Shape& shape)
      : keys(all), target(rank), is_there(all.borrow(rank, shape.lowest, shape.highest, &key)) {}
  ~RkeyLoan() {
    if (is_there) keys.let_go(target, key.id);
  }
  RkeyLoan(const RkeyLoan&) = delete;
  RkeyLoan& operator=(const RkeyLoan&) = delete;

  NetworkRma::Run run_at(const char* there, const char* here, size_t bytes) const {
    const uint64_t at = key.base + (reinterpret_cast<uintptr_t>(there) - key.start);
    return {reinterpret_cast<uintptr_t>(here), bytes, at, key.key};
  }
};

bool AmRma::goes_unasked(const mob_transfer_t& transfer) const {
  return transfer.kind == MOB_PUT && !tells_target(transfer) && has_key_for(transfer);
}

// Writes by a key that the target has given, if that is all the transfer needs, and if the write
// overtakes no earlier operation. False: the target must be asked.
bool AmRma::write_unasked(const mob_transfer_t& transfer, const Shape& shape, Whole& whole) {
  const mob_rank_t target = transfer.rank;
  if (transfer.kind != MOB_PUT || tells_target(transfer) || shape.highest == 0 ||
      services_.completion.has_ordered_at(target)) {
    return false;
  }
  const auto loan = std::make_shared<RkeyLoan>(services_.rkeys, target, shape);
  if (!loan->is_there) return false;
  std::vector<NetworkRma::Run> runs;
  static_cast<void>(transport::for_each_run(shape, [&](char* there, char* here, size_t bytes) {
    for (size_t done = 0; done < bytes; done += NetworkRma::kMostWritten) {
      const size_t now = std::min(NetworkRma::kMostWritten, bytes - done);
      runs.push_back(loan->run_at(there + done, here + done, now));
    }
    return MOB_OK;
  }));
  const bool tells_of_link =
      shape.kind == MOB_CONTIGUOUS && shape.total_bytes >= schedule::LinkMeter::kLargeBytes;
  const uint64_t begun_ns = tells_of_link ? os::now_ns() : 0;
  NetworkRma& bulk = services_.network.rma();
  const auto done = [this, &whole, loan, begun_ns, count = runs.size(),
                     bytes = shape.total_bytes](mob_status_t status) {
    services_.network.rma().note_withdrawn(loan->target, count);
    if (status != MOB_OK) {
      fail(status, "rank %d: %s", loan->target, std::string(mob_last_error()).c_str());
    } else if (begun_ns != 0) {
      services_.links.moved(loan->target, bytes, 0, os::now_ns() - begun_ns);
    }
    finish_part(whole, status);
  };
  bulk.note_offered(target, runs.size());
  whole.is_unasked = true;
  whole.parts.fetch_add(1, std::memory_order_relaxed);
  try {
    bulk.write(target, runs, done);
  } catch (const std::bad_alloc&) {
    whole.parts.fetch_sub(1, std::memory_order_relaxed);
    bulk.note_withdrawn(target, runs.size());
    throw;
  }
  return true;
}

mob_status_t AmRma::send_bulk(const char* call, const mob_transfer_t& transfer, const Shape& shape,
                              Whole& whole) {
  if (write_unasked(transfer, shape, whole)) return MOB_OK;
  auto part = std::make_unique<Part>();
  part->whole = &whole;
  part->kind = transfer.kind;
  part->box.total_bytes = shape.total_bytes;
  part->self = this;
  NetworkRma& bulk = services_.network.rma();
  const size_t most = bulk.extent_of(transfer.kind, shape).runs;
  part->runs.reserve(most);
  part->offered.reserve(most);
  part->target = transfer.rank;
  bulk.note_offered(transfer.rank, most);
  part->offered_runs = most;
  const mob_status_t status = transport::for_each_run(shape, [&](char* there, char* here,
                                                                 size_t bytes) {
    transport::ofi::Registration& offered = part->offered.emplace_back();
    const mob_status_t made = bulk.offer(here, bytes, &offered);
    part->runs.push_back({reinterpret_cast<uintptr_t>(there), bytes, offered.base, offered.key});
    return made;
  });
  if (status != MOB_OK) {
    release_stage(*part);
    return status;
  }
  Request request{};
  describe(transfer, true, &request);
  request.stage = kMovedByTarget;
  part->wants_key = transfer.kind == MOB_PUT;
  request.wants_key = part->wants_key ? 1 : 0;
  if (is_told_by_note(transfer, shape)) {
    request.wants_note = 1;
    part->note = part->runs[0].key;
  }
  request.list_bytes = part->runs.size() * sizeof(NetworkRma::Run);
  request.data_bytes = shape.total_bytes;
  const void* payload = part->runs.data();
  return send(call, transfer.rank, std::move(part), request, payload, request.list_bytes);
}

}  // namespace mobius::engine
