// SPDX-License-Identifier: BSD-3-Clause
#include "operations/transfer.h"

#include <cstdio>

#include "binding/bootstrap.h"

namespace mobius::mpi {
namespace {

// Displacements and counts times units and extents.
__extension__ using Wide = __int128;

// Where an operation reaches beyond the memory of its target.
int raise_range(const Window& window, int rank, MPI_Aint displacement, Wide low, Wide high) {
  const Target& target = window.targets[rank];
  char text[200];
  static_cast<void>(std::snprintf(
      text, sizeof text,
      "displacement %lld of %llu bytes each: the call reaches bytes %.0f to %.0f of the memory of "
      "rank %d, which has %llu",
      static_cast<long long>(displacement), static_cast<unsigned long long>(target.unit),
      static_cast<double>(low), static_cast<double>(high), rank,
      static_cast<unsigned long long>(target.bytes)));
  return raise(window, MPI_ERR_RMA_RANGE, text);
}

}  // namespace

bool opens_epoch(Window* window) {
  // Of two threads that come at once, one finds that the other has opened it.
  if (window->access != Access::kFence) return window->access == Access::kFenceUsed;
  window->access = Access::kFenceUsed;
  window->all_open.store(1, std::memory_order_relaxed);
  return true;
}

Place find_place(Window* window, int rank, MPI_Aint displacement, int64_t count,
                 const Datatype& type) {
  Place place;
  if (rank == MPI_PROC_NULL) {
    place.is_nobody = true;
    return place;
  }
  if (rank < 0 || rank >= window->size) {
    place.error = raise(*window, MPI_ERR_RANK);
    return place;
  }
  const Target& target = window->targets[rank];
  if (!may_access(window, target)) {
    place.error = raise(*window, MPI_ERR_RMA_SYNC);
    return place;
  }
  if (displacement < 0 && !window->is_dynamic) {
    place.error = raise(*window, MPI_ERR_DISP);
    return place;
  }
  place.target = &target;
  place.address = target.base + static_cast<uint64_t>(displacement) * target.unit;
  if (count == 0 || type.bytes == 0) return place;
  const auto start = static_cast<Wide>(displacement) * static_cast<Wide>(target.unit);
  const auto shift = static_cast<Wide>(count - 1) * type.extent;
  const Wide low = start + type.low + (shift < 0 ? shift : 0);
  const Wide high = start + type.high + (shift > 0 ? shift : 0);
  // Displacements in dynamic windows are addresses.
  if (low < 0 || high > static_cast<Wide>(target.bytes) || (window->is_dynamic && low == 0)) {
    place.error = raise_range(*window, rank, displacement, low, high);
  }
  return place;
}

int check_side(const Window& window, const Side& side, const Datatype** type) {
  if (side.count < 0) return raise(window, MPI_ERR_COUNT);
  *type = datatypes.find(side.type);
  if (*type == nullptr) return raise(window, MPI_ERR_TYPE);
  return MPI_SUCCESS;
}

int check_buffer(const Window& window, const Side& side, const Datatype** type) {
  if (const int error = check_side(window, side, type)) return error;
  // Data of MPI_BOTTOM lies elsewhere.
  const bool is_nothing = side.count == 0 || (*type)->bytes == 0;
  if (side.address == nullptr && !is_nothing && (*type)->low == 0) {
    return raise(window, MPI_ERR_BUFFER);
  }
  return MPI_SUCCESS;
}

void Runs::list(std::vector<mob_span_t>* spans) const {
  spans->clear();
  if (is_solid()) {
    if (bytes() != 0) spans->push_back({base_, bytes()});
    return;
  }
  spans->reserve(static_cast<size_t>(count_) * type_.blocks.size());
  for (int64_t i = 0; i < count_; ++i) {
    char* const at = base_ + i * type_.extent;
    for (const Block& block : type_.blocks) {
      char* const address = at + block.offset;
      if (!spans->empty() &&
          static_cast<char*>(spans->back().address) + spans->back().bytes == address) {
        spans->back().bytes += block.bytes;
      } else {
        spans->push_back({address, block.bytes});
      }
    }
  }
}

bool Runs::as_grid(Grid* grid) const {
  if (!type_.is_regular) return false;
  const size_t inner = type_.blocks.size();
  *grid = {base_ + type_.blocks.front().offset,
           type_.blocks.front().bytes,
           {inner, static_cast<size_t>(count_)},
           {type_.stride, type_.extent}};
  if (inner == 1) {
    grid->counts[0] = grid->counts[1];
    grid->strides[0] = grid->strides[1];
    grid->counts[1] = 1;
  } else if (grid->counts[1] == 1 || type_.extent == type_.stride * static_cast<ptrdiff_t>(inner)) {
    grid->counts[0] *= grid->counts[1];
    grid->counts[1] = 1;
  }
  return true;
}

namespace {

// Runs without gaps, as the other side has them.
Runs::Grid like(char* base, const Runs::Grid& other) {
  const auto bytes = static_cast<ptrdiff_t>(other.bytes);
  return {base,
          other.bytes,
          {other.counts[0], other.counts[1]},
          {bytes, bytes * static_cast<ptrdiff_t>(other.counts[0])}};
}

bool as_grids(const Runs& local, const Runs& remote, Runs::Grid* here, Runs::Grid* there) {
  if (local.is_solid()) {
    if (!remote.as_grid(there)) return false;
    *here = like(local.base(), *there);
    return true;
  }
  if (!local.as_grid(here)) return false;
  if (remote.is_solid()) {
    *there = like(remote.base(), *here);
    return true;
  }
  return remote.as_grid(there) && here->bytes == there->bytes &&
         here->counts[0] == there->counts[0] && here->counts[1] == there->counts[1];
}

}  // namespace

void describe_shape(mob_transfer_t* transfer, const Runs& local, const Runs& remote, Lists* lists) {
  if (local.is_solid() && remote.is_solid()) {
    transfer->shape = MOB_CONTIGUOUS;
    transfer->local = local.base();
    transfer->remote = remote.base();
    transfer->bytes = remote.bytes();
    return;
  }
  Runs::Grid here{};
  Runs::Grid there{};
  if (as_grids(local, remote, &here, &there)) {
    transfer->shape = MOB_STRIDED;
    transfer->local = here.first;
    transfer->remote = there.first;
    transfer->bytes = there.bytes;
    transfer->dimensions = there.counts[1] > 1 ? 2 : 1;
    for (int i = 0; i < 2; ++i) {
      lists->counts[i] = there.counts[i];
      lists->local_strides[i] = here.strides[i];
      lists->remote_strides[i] = there.strides[i];
    }
    transfer->counts = lists->counts;
    transfer->local_strides = lists->local_strides;
    transfer->remote_strides = lists->remote_strides;
    return;
  }
  transfer->shape = MOB_SPANS;
  local.list(&lists->local);
  remote.list(&lists->remote);
  transfer->local_spans = lists->local.data();
  transfer->local_span_count = lists->local.size();
  transfer->remote_spans = lists->remote.data();
  transfer->remote_span_count = lists->remote.size();
}

Lists& lists_of_thread() {
  thread_local Lists lists;
  return lists;
}

mob_status_t start(const mob_transfer_t& transfer, Completion completion, mob_handle_t* handle) {
  if (completion == Completion::kAsked) return mob_transfer_nb(&transfer, handle);
  return completion == Completion::kLater ? mob_transfer_nbi(&transfer) : mob_transfer(&transfer);
}

}  // namespace mobius::mpi
