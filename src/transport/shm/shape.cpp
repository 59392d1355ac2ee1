// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/shape.h"

#include <algorithm>
#include <new>

#include "transport/shm/element.h"
#include "transport/shm/kernels/kernels.h"
#include "transport/shm/overlap.h"

namespace mobius::transport {
namespace {

using base::fail;

bool is_accumulate(const mob_transfer_t& transfer) {
  return transfer.kind == MOB_ACCUMULATE || transfer.kind == MOB_FETCH_ACCUMULATE;
}

mob_status_t check_kind(const char* call, const mob_transfer_t& transfer) {
  switch (transfer.kind) {
    case MOB_PUT:
    case MOB_GET:
      return MOB_OK;
    case MOB_ACCUMULATE:
    case MOB_FETCH_ACCUMULATE:
      break;
    default:
      return fail(MOB_ERR_ARGUMENT, "%s: %d is not a kind of transfer (mob_kind_t)", call,
                  static_cast<int>(transfer.kind));
  }
  if (element_bytes(transfer.type) == 0) {
    return fail(MOB_ERR_ARGUMENT, "%s: %d is not a type of elements (mob_type_t)", call,
                static_cast<int>(transfer.type));
  }
  if (transfer.op < 0 || transfer.op >= static_cast<int>(MOB_OP_COUNT)) {
    return fail(MOB_ERR_ARGUMENT, "%s: %d is not an operation (mob_op_t)", call,
                static_cast<int>(transfer.op));
  }
  if (!op_is_defined(transfer.op, transfer.type)) {
    return fail(MOB_ERR_ARGUMENT, "%s: %s is not defined on %s (see mob_op_t)", call,
                op_name(transfer.op), type_name(transfer.type));
  }
  if (transfer.scale != nullptr && transfer.op != MOB_SUM) {
    return fail(MOB_ERR_ARGUMENT, "%s: only MOB_SUM takes a scale, but one is given with %s", call,
                op_name(transfer.op));
  }
  return MOB_OK;
}

// Every run of an accumulate must be a multiple of this, in length and in its address at the
// target.
struct Element {
  size_t bytes = 1;
  size_t alignment = 1;

  explicit Element(const mob_transfer_t& transfer) {
    if (!is_accumulate(transfer)) return;
    bytes = element_bytes(transfer.type);
    alignment = element_alignment(transfer.type);
  }

  bool divides(size_t length) const { return (length & (bytes - 1)) == 0; }
  bool aligns(const void* address) const {
    return (reinterpret_cast<uintptr_t>(address) & (alignment - 1)) == 0;
  }
  bool aligns(ptrdiff_t stride) const {
    return (static_cast<size_t>(stride) & (alignment - 1)) == 0;
  }
};

[[gnu::cold]] mob_status_t part_error(const char* call, const Element& element, size_t bytes) {
  return fail(MOB_ERR_ARGUMENT, "%s: %zu bytes are not whole elements of %zu bytes", call, bytes,
              element.bytes);
}

[[gnu::cold]] mob_status_t alignment_error(const char* call, const Element& element,
                                           const void* address) {
  return fail(MOB_ERR_ARGUMENT, "%s: the remote address %p is not a multiple of %zu, as the type's",
              call, address, element.alignment);
}

[[gnu::cold]] mob_status_t size_error(const char* call) {
  return fail(MOB_ERR_RANGE, "%s: the transfer's size overflows", call);
}

mob_status_t check_addresses(const char* call, const Element& element, const void* remote,
                             const void* local) {
  if (remote == nullptr) return fail(MOB_ERR_ARGUMENT, "%s: the remote address is null", call);
  if (local == nullptr) return fail(MOB_ERR_ARGUMENT, "%s: the local buffer is null", call);
  if (!element.aligns(remote)) return alignment_error(call, element, remote);
  return MOB_OK;
}

// Larger than any address space, and small enough to add and multiply a little without overflow.
constexpr size_t kLongest = size_t{1} << 60;

// Computes the first byte and one past the last byte of a box; false if it leaves the address
// space.
bool hull(const char* base, const Shape& box, const ptrdiff_t* strides, uintptr_t* lowest,
          uintptr_t* highest) {
  uintptr_t low = reinterpret_cast<uintptr_t>(base);
  uintptr_t high = low;
  if (__builtin_add_overflow(high, box.run_bytes, &high)) return false;
  for (int d = 0; d < box.dimensions; ++d) {
    ptrdiff_t length;
    if (__builtin_mul_overflow(static_cast<ptrdiff_t>(box.counts[d] - 1), strides[d], &length)) {
      return false;
    }
    if (length < 0 ? __builtin_sub_overflow(low, -static_cast<uintptr_t>(length), &low)
                   : __builtin_add_overflow(high, static_cast<uintptr_t>(length), &high)) {
      return false;
    }
  }
  *lowest = low;
  *highest = high;
  return high - low <= kLongest;
}

// Copies the dimensions that repeat something, and computes the number of bytes.
mob_status_t take_dimensions(const char* call, const mob_transfer_t& transfer, Shape* shape) {
  if (transfer.dimensions < 0 || transfer.dimensions >= static_cast<int>(MOB_MAX_DIMENSIONS)) {
    return fail(MOB_ERR_ARGUMENT, "%s: %d dimensions; a run may repeat in 0 to %d", call,
                transfer.dimensions, static_cast<int>(MOB_MAX_DIMENSIONS) - 1);
  }
  if (transfer.dimensions > 0 &&
      (transfer.counts == nullptr || transfer.remote_strides == nullptr ||
       transfer.local_strides == nullptr)) {
    return fail(MOB_ERR_ARGUMENT, "%s: the list of %s is null", call,
                transfer.counts == nullptr           ? "counts"
                : transfer.remote_strides == nullptr ? "remote strides"
                                                     : "local strides");
  }
  bool empty = transfer.bytes == 0;
  for (int d = 0; d < transfer.dimensions; ++d) empty = empty || transfer.counts[d] == 0;
  if (empty) return MOB_OK;

  size_t total = transfer.bytes;
  int kept = 0;
  for (int d = 0; d < transfer.dimensions; ++d) {
    if (transfer.counts[d] == 1) continue;
    if (__builtin_mul_overflow(total, transfer.counts[d], &total)) return size_error(call);
    shape->counts[kept] = transfer.counts[d];
    shape->remote_strides[kept] = transfer.remote_strides[d];
    shape->local_strides[kept] = transfer.local_strides[d];
    ++kept;
  }
  if (total > kLongest) return size_error(call);
  shape->total_bytes = total;
  shape->run_bytes = transfer.bytes;
  shape->dimensions = kept;
  return MOB_OK;
}

// Merges dimensions whose runs continue each other on both sides.
void merge_dimensions(Shape* shape) {
  int kept = 0;
  for (int d = 0; d < shape->dimensions; ++d) {
    const ptrdiff_t remote = shape->remote_strides[d];
    const ptrdiff_t local = shape->local_strides[d];
    if (kept == 0) {
      const auto run = static_cast<ptrdiff_t>(shape->run_bytes);
      if (remote == run && local == run) {
        shape->run_bytes *= shape->counts[d];
        continue;
      }
    } else {
      // Lies within the hull, which was found not to overflow.
      const auto inner = static_cast<ptrdiff_t>(shape->counts[kept - 1]);
      if (remote == inner * shape->remote_strides[kept - 1] &&
          local == inner * shape->local_strides[kept - 1]) {
        shape->counts[kept - 1] *= shape->counts[d];
        continue;
      }
    }
    shape->counts[kept] = shape->counts[d];
    shape->remote_strides[kept] = remote;
    shape->local_strides[kept] = local;
    ++kept;
  }
  shape->dimensions = kept;
  if (kept == 0) shape->kind = MOB_CONTIGUOUS;
}

mob_status_t normalise_box(const char* call, const mob_transfer_t& transfer, Shape* shape) {
  const Element element(transfer);
  if (transfer.shape == MOB_STRIDED) {
    if (const mob_status_t status = take_dimensions(call, transfer, shape)) return status;
  } else {
    shape->run_bytes = transfer.bytes;
    shape->total_bytes = transfer.bytes;
  }
  if (!element.divides(transfer.bytes)) return part_error(call, element, transfer.bytes);
  if (shape->total_bytes == 0) return MOB_OK;

  if (const mob_status_t status = check_addresses(call, element, transfer.remote, transfer.local)) {
    return status;
  }
  shape->remote = static_cast<char*>(transfer.remote);
  shape->local = static_cast<char*>(transfer.local);
  uintptr_t low;
  uintptr_t high;
  if (!hull(shape->local, *shape, shape->local_strides, &low, &high) ||
      !hull(shape->remote, *shape, shape->remote_strides, &shape->lowest, &shape->highest)) {
    return size_error(call);
  }
  for (int d = 0; d < shape->dimensions; ++d) {
    if (!element.aligns(shape->remote_strides[d])) {
      return fail(MOB_ERR_ARGUMENT,
                  "%s: the remote stride %td is not a multiple of %zu, as the type's", call,
                  shape->remote_strides[d], element.alignment);
    }
  }
  merge_dimensions(shape);

  const bool writes_local = transfer.kind == MOB_GET;
  if (runs_overlap(shape->run_bytes, shape->dimensions, shape->counts,
                   writes_local ? shape->local_strides : shape->remote_strides)) {
    return fail(MOB_ERR_ARGUMENT,
                "%s: the %s strides overlap: two runs of %zu bytes would be written to the same "
                "place",
                call, writes_local ? "local" : "remote", shape->run_bytes);
  }
  return MOB_OK;
}

mob_status_t normalise_pieces(const char* call, const mob_transfer_t& transfer, Shape* shape) {
  const Element element(transfer);
  if (transfer.count > 0 && (transfer.remotes == nullptr || transfer.locals == nullptr)) {
    return fail(MOB_ERR_ARGUMENT, "%s: the list of %s addresses is null", call,
                transfer.remotes == nullptr ? "remote" : "local");
  }
  size_t total;
  if (__builtin_mul_overflow(transfer.bytes, transfer.count, &total) || total > kLongest) {
    return size_error(call);
  }
  if (!element.divides(transfer.bytes)) return part_error(call, element, transfer.bytes);
  if (total == 0) return MOB_OK;
  uintptr_t lowest = UINTPTR_MAX;
  uintptr_t last = 0;
  uintptr_t any = 0;
  bool is_missing = false;
  for (size_t i = 0; i < transfer.count; ++i) {
    const auto remote = reinterpret_cast<uintptr_t>(transfer.remotes[i]);
    lowest = std::min(lowest, remote);
    last = std::max(last, remote);
    any |= remote;
    is_missing |= transfer.locals[i] == nullptr;
  }
  if (is_missing || lowest == 0 || !element.aligns(static_cast<ptrdiff_t>(any))) [[unlikely]] {
    for (size_t i = 0; i < transfer.count; ++i) {
      if (const mob_status_t status =
              check_addresses(call, element, transfer.remotes[i], transfer.locals[i])) {
        return status;
      }
    }
  }
  if (uintptr_t end; !__builtin_add_overflow(last, transfer.bytes, &end)) {
    shape->lowest = lowest;
    shape->highest = end;
  }
  shape->total_bytes = total;
  shape->run_bytes = transfer.bytes;
  shape->piece_count = transfer.count;
  shape->remotes = transfer.remotes;
  shape->locals = transfer.locals;
  return MOB_OK;
}

// Summary of a list of spans. Unusable unless `is_plain`: then every span is valid, none is empty,
// and no sum overflowed.
struct Overview {
  size_t total = 0;
  uintptr_t lowest = 0;
  uintptr_t highest = 0;
  bool is_plain = false;
  bool is_even = false;    // all have the same size
  bool is_paired = false;  // each has the size of its partner in the other list, if there is one
};

Overview look_over(const mob_span_t* spans, size_t count, const Element& element, bool must_align,
                   const mob_span_t* fellows) {
  constexpr size_t kMost = size_t{1} << 20;
  constexpr size_t kLongestSpan = kLongest / kMost;
  constexpr uint64_t kHighest = uint64_t{1} << 63;
  if (count == 0 || count > kMost) return {};
  SpanSummary all;
  kernels().look_over(spans, count, fellows, &all);
  const bool is_plain = (all.missing & kHighest) == 0 && all.bytes < kLongestSpan &&
                        all.addresses < kHighest && element.divides(all.bytes) &&
                        (!must_align || element.aligns(static_cast<ptrdiff_t>(all.addresses)));
  return {.total = all.total,
          .lowest = all.lowest,
          .highest = all.highest,
          .is_plain = is_plain,
          .is_even = all.differ == 0,
          .is_paired = fellows != nullptr && all.unpaired == 0};
}

// Checks one list of spans, whatever its contents, and adds up its bytes.
mob_status_t check_spans(const char* call, const char* side, const Element& element,
                         bool must_align, const mob_span_t* spans, size_t count, size_t* total) {
  if (count > 0 && spans == nullptr) {
    return fail(MOB_ERR_ARGUMENT, "%s: the list of %s spans is null", call, side);
  }
  size_t sum = 0;
  for (size_t i = 0; i < count; ++i) {
    if (spans[i].bytes == 0) continue;
    if (spans[i].address == nullptr) {
      return fail(MOB_ERR_ARGUMENT, "%s: the address of %s span %zu is null", call, side, i);
    }
    if (!element.divides(spans[i].bytes)) return part_error(call, element, spans[i].bytes);
    if (must_align && !element.aligns(spans[i].address)) {
      return alignment_error(call, element, spans[i].address);
    }
    if (__builtin_add_overflow(sum, spans[i].bytes, &sum)) return size_error(call);
  }
  if (sum > kLongest) return size_error(call);
  *total = sum;
  return MOB_OK;
}

mob_status_t normalise_spans(const char* call, const mob_transfer_t& transfer, Shape* shape) {
  const Element element(transfer);
  const size_t remote_count = transfer.remote_spans == nullptr ? 0 : transfer.remote_span_count;
  const size_t local_count = transfer.local_spans == nullptr ? 0 : transfer.local_span_count;
  const Overview remote = look_over(transfer.remote_spans, remote_count, element, true, nullptr);
  const Overview local = look_over(transfer.local_spans, local_count, element, false,
                                   remote_count == local_count ? transfer.remote_spans : nullptr);
  size_t remote_bytes = remote.total;
  size_t local_bytes = local.total;
  if (remote.is_plain) {
    shape->lowest = remote.lowest;
    shape->highest = remote.highest;
  } else if (const mob_status_t status =
                 check_spans(call, "remote", element, true, transfer.remote_spans,
                             transfer.remote_span_count, &remote_bytes)) {
    return status;
  }
  if (!local.is_plain) {
    if (const mob_status_t status = check_spans(call, "local", element, false, transfer.local_spans,
                                                transfer.local_span_count, &local_bytes)) {
      return status;
    }
  }
  if (remote_bytes != local_bytes) {
    return fail(MOB_ERR_ARGUMENT, "%s: the remote spans have %zu bytes, the local spans %zu", call,
                remote_bytes, local_bytes);
  }
  if (remote.is_plain && local.is_plain) {
    shape->is_paired = local.is_paired;
    if (remote.is_even && (local.is_paired || local_count == 1)) {
      shape->run_bytes = transfer.remote_spans[0].bytes;
    } else if (local.is_even && remote_count == 1) {
      shape->run_bytes = transfer.local_spans[0].bytes;
    }
  }
  shape->total_bytes = remote_bytes;
  shape->remote_spans = transfer.remote_spans;
  shape->remote_span_count = transfer.remote_span_count;
  shape->local_spans = transfer.local_spans;
  shape->local_span_count = transfer.local_span_count;
  return MOB_OK;
}

// MOB_NO_OP needs no local buffer: members that describe one are ignored.
mob_transfer_t with_remote_for_local(const mob_transfer_t& transfer) {
  mob_transfer_t result = transfer;
  result.local = transfer.remote;
  result.local_strides = transfer.remote_strides;
  result.locals = transfer.remotes;
  result.local_spans = transfer.remote_spans;
  result.local_span_count = transfer.remote_span_count;
  return result;
}

mob_status_t normalise_any(const char* call, const mob_transfer_t& transfer, Shape* shape) {
  shape->kind = transfer.shape;
  switch (transfer.shape) {
    case MOB_CONTIGUOUS:
    case MOB_STRIDED:
      return normalise_box(call, transfer, shape);
    case MOB_PIECES:
      return normalise_pieces(call, transfer, shape);
    case MOB_SPANS:
      return normalise_spans(call, transfer, shape);
  }
  return fail(MOB_ERR_ARGUMENT, "%s: %d is not a shape (mob_shape_t)", call,
              static_cast<int>(transfer.shape));
}

}  // namespace

mob_status_t normalise(const char* call, const mob_transfer_t& transfer, Shape* shape) {
  if (const mob_status_t status = check_kind(call, transfer)) return status;
  new (shape) Shape;  // not Shape(), which would also clear the lists
  const bool reads_local = !is_accumulate(transfer) || transfer.op != MOB_NO_OP;
  if (const mob_status_t status =
          normalise_any(call, reads_local ? transfer : with_remote_for_local(transfer), shape)) {
    return status;
  }
  if (transfer.kind == MOB_FETCH_ACCUMULATE && shape->total_bytes != 0 &&
      transfer.fetched == nullptr) {
    return fail(MOB_ERR_ARGUMENT, "%s: the buffer for the fetched elements is null", call);
  }
  return MOB_OK;
}

Parts::Parts(const Shape& shape, size_t most_bytes)
    : shape_(shape),
      left_(shape.total_bytes),
      whole_bytes_(shape.run_bytes),
      most_of_run_(std::min(shape.run_bytes, most_bytes)) {
  while (whole_ < shape.dimensions && shape.counts[whole_] <= most_bytes / whole_bytes_) {
    whole_bytes_ *= shape.counts[whole_];
    ++whole_;
  }
  if (most_bytes > whole_bytes_) most_count_ = most_bytes / whole_bytes_;
}

Shape Parts::next() {
  Shape part;
  part.remote = shape_.remote + done_of_run_;
  part.local = shape_.local + done_of_run_;
  for (int i = whole_; i < shape_.dimensions; ++i) {
    const auto step = static_cast<ptrdiff_t>(index_[i]);
    part.remote += step * shape_.remote_strides[i];
    part.local += step * shape_.local_strides[i];
  }
  part.run_bytes = std::min(most_of_run_, shape_.run_bytes - done_of_run_);
  part.total_bytes = part.run_bytes;
  part.lowest = reinterpret_cast<uintptr_t>(part.remote);
  part.highest = part.lowest + part.run_bytes;
  const auto repeat = [&](int dimension, size_t count) {
    const ptrdiff_t stride = shape_.remote_strides[dimension];
    const ptrdiff_t reach = static_cast<ptrdiff_t>(count - 1) * stride;
    (reach < 0 ? part.lowest : part.highest) += static_cast<uintptr_t>(reach);
    part.kind = MOB_STRIDED;
    part.counts[part.dimensions] = count;
    part.remote_strides[part.dimensions] = stride;
    part.local_strides[part.dimensions] = shape_.local_strides[dimension];
    part.total_bytes *= count;
    ++part.dimensions;
  };
  for (int i = 0; i < whole_; ++i) repeat(i, shape_.counts[i]);
  size_t count = 1;
  if (whole_ < shape_.dimensions) {
    count = std::min(most_count_, shape_.counts[whole_] - index_[whole_]);
    if (count > 1) repeat(whole_, count);
  }
  left_ -= part.total_bytes;
  done_of_run_ += part.run_bytes;
  if (whole_ > 0 || done_of_run_ == shape_.run_bytes) {
    done_of_run_ = 0;
    advance(count);
  }
  return part;
}

void Parts::advance(size_t count) {
  for (int i = whole_; i < shape_.dimensions; ++i) {
    index_[i] += count;
    if (index_[i] < shape_.counts[i]) return;
    index_[i] = 0;
    count = 1;
  }
}

}  // namespace mobius::transport
