// SPDX-License-Identifier: BSD-3-Clause
#include "random/by_name.h"

namespace random_program {

namespace {

bool contiguous(const mob_transfer_t& t, mob_status_t* status) {
  const size_t count = t.bytes / (mob_type_bytes(t.type) == 0 ? 1 : mob_type_bytes(t.type));
  switch (t.kind) {
    case MOB_PUT:
      *status = t.signal == nullptr ? mob_put(t.rank, t.remote, t.local, t.bytes)
                                    : mob_put_signal(t.rank, t.remote, t.local, t.bytes, t.signal,
                                                     t.signal_value, t.signal_op);
      return true;
    case MOB_GET:
      *status = t.signal == nullptr ? mob_get(t.rank, t.remote, t.local, t.bytes)
                                    : mob_get_signal(t.rank, t.remote, t.local, t.bytes, t.signal,
                                                     t.signal_value, t.signal_op);
      return true;
    case MOB_ACCUMULATE:
      *status = t.scale == nullptr
                    ? mob_accumulate(t.rank, t.remote, t.local, count, t.type, t.op)
                    : mob_accumulate_scaled(t.rank, t.remote, t.local, count, t.type, t.scale);
      return true;
    case MOB_FETCH_ACCUMULATE:
      if (t.scale != nullptr) return false;
      *status = mob_fetch_accumulate(t.rank, t.remote, t.local, t.fetched, count, t.type, t.op);
      return true;
  }
  return false;
}

bool strided(const mob_transfer_t& t, mob_status_t* status) {
  switch (t.kind) {
    case MOB_PUT:
      *status = mob_put_strided(t.rank, t.remote, t.remote_strides, t.local, t.local_strides,
                                t.bytes, t.counts, t.dimensions);
      return true;
    case MOB_GET:
      *status = mob_get_strided(t.rank, t.remote, t.remote_strides, t.local, t.local_strides,
                                t.bytes, t.counts, t.dimensions);
      return true;
    case MOB_ACCUMULATE:
      *status = mob_accumulate_strided(t.rank, t.remote, t.remote_strides, t.local, t.local_strides,
                                       t.bytes, t.counts, t.dimensions, t.type, t.op, t.scale);
      return true;
    case MOB_FETCH_ACCUMULATE:
      break;
  }
  return false;
}

bool pieces(const mob_transfer_t& t, mob_status_t* status) {
  switch (t.kind) {
    case MOB_PUT:
      *status = mob_put_pieces(t.rank, t.remotes, t.locals, t.count, t.bytes);
      return true;
    case MOB_GET:
      *status = mob_get_pieces(t.rank, t.remotes, t.locals, t.count, t.bytes);
      return true;
    case MOB_ACCUMULATE:
      *status = mob_accumulate_pieces(t.rank, t.remotes, t.locals, t.count, t.bytes, t.type, t.op,
                                      t.scale);
      return true;
    case MOB_FETCH_ACCUMULATE:
      break;
  }
  return false;
}

bool started(const mob_transfer_t& t, Mode mode, mob_handle_t* handle, mob_status_t* status) {
  if (t.shape != MOB_CONTIGUOUS || t.signal != nullptr) return false;
  if (t.kind == MOB_PUT) {
    *status = mode == Mode::kHandle ? mob_put_nb(t.rank, t.remote, t.local, t.bytes, handle)
                                    : mob_put_nbi(t.rank, t.remote, t.local, t.bytes);
    return true;
  }
  if (t.kind == MOB_GET) {
    *status = mode == Mode::kHandle ? mob_get_nb(t.rank, t.remote, t.local, t.bytes, handle)
                                    : mob_get_nbi(t.rank, t.remote, t.local, t.bytes);
    return true;
  }
  return false;
}

}  // namespace

bool call_by_name(const mob_transfer_t& t, Mode mode, mob_handle_t* handle, mob_status_t* status) {
  if (t.origin_counter != nullptr || t.target_counter != nullptr ||
      t.completion_counter != nullptr) {
    return false;
  }
  if (mode != Mode::kBlocking) return started(t, mode, handle, status);
  if (t.shape == MOB_CONTIGUOUS) return contiguous(t, status);
  if (t.signal != nullptr) return false;
  if (t.shape == MOB_STRIDED) return strided(t, status);
  return t.shape == MOB_PIECES && pieces(t, status);
}

}  // namespace random_program
