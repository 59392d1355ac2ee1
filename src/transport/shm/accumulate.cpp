// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/accumulate.h"

#include <algorithm>
#include <bit>

#include "transport/shm/element.h"
#include "transport/shm/kernels/kernels.h"

namespace mobius::transport {
namespace {

// The lock of one stripe at a time, kept from run to run while the runs stay in one block.
class HeldStripe {
 public:
  HeldStripe(const LockTable& locks, bool integers) : locks_(locks), integers_(integers) {}
  HeldStripe(const HeldStripe&) = delete;
  HeldStripe& operator=(const HeldStripe&) = delete;
  ~HeldStripe() { release(); }

  // Takes the lock for `bytes` of work, at most kLockBlockBytes, that begin in `block` and touch
  // `zones` of it. Returns the zones in which the lock does not exclude every other origin: there,
  // those and the caller use atomic instructions.
  uint64_t hold(uintptr_t block, size_t bytes, uint64_t zones) {
    // Releases also between two blocks of one stripe, and after as much work as others should have
    // to wait for.
    if (block != block_ || bytes > allowance_) [[unlikely]] {
      release();
      stripe_ = lock_stripe(block * kLockBlockBytes);
      block_ = block;
      allowance_ = 2 * kLockBlockBytes;
      words_ = words();
    }
    allowance_ -= bytes;
    if (!is_locked_ && (zones & ~words_.admitted) != 0) {
      locks_.lock(locks_.context, stripe_);
      is_locked_ = true;
      words_ = words();
    }
    return zones & words_.arriving;
  }

 private:
  static constexpr uintptr_t kNone = UINTPTR_MAX;  // no address lies in this block

  WordsIn words() const {
    return integers_ ? locks_.words(locks_.context, block_ * kLockBlockBytes) : WordsIn{};
  }

  void release() {
    if (is_locked_) locks_.unlock(locks_.context, stripe_);
    is_locked_ = false;
  }

  const LockTable& locks_;
  const bool integers_;
  bool is_locked_ = false;
  WordsIn words_;  // of block_
  uintptr_t block_ = kNone;
  size_t allowance_ = 0;
  unsigned stripe_ = 0;
};

// Bytes of the elements that begin in the block of `remote`. The lock of its first byte guards an
// element that reaches into the next block, for every origin.
size_t bytes_in_block(uintptr_t remote, size_t element) {
  const size_t left = kLockBlockBytes - remote % kLockBlockBytes;
  return (left + element - 1) & ~(element - 1);
}

// The number of rows, of at most `most` from the first on, that begin and end in the first row's
// block; 0 if the first row does not end in it.
size_t rows_in_block(uintptr_t remote, ptrdiff_t stride, size_t bytes, size_t most) {
  const uintptr_t before = remote % kLockBlockBytes;
  const size_t behind = kLockBlockBytes - before;
  if (bytes > behind) return 0;
  if (most == 1 || stride == 0) return 1;
  const size_t steps = stride > 0 ? (behind - bytes) / static_cast<size_t>(stride)
                                  : before / (size_t{0} - static_cast<size_t>(stride));
  return std::min(steps + 1, most);
}

class Accumulation {
 public:
  Accumulation(const Combination& combination, ptrdiff_t remote_delta, const LockTable& locks)
      : atomically_(atomic_kernel(combination.op, combination.type)),
        // A byte-wise copy could tear an integer that another process reads meanwhile.
        alone_(atomically_ != nullptr &&
                       (combination.op == MOB_REPLACE || combination.op == MOB_NO_OP)
                   ? atomically_
                   : plain_kernel(combination.op, combination.type)),
        element_(element_bytes(combination.type)),
        scale_(combination.scale),
        fetched_(static_cast<char*>(combination.fetched)),
        delta_(remote_delta),
        stripe_(locks, atomically_ != nullptr) {}

  void run(char* remote, const char* local, size_t bytes) {
    while (bytes != 0) {
      const size_t part =
          std::min(bytes, bytes_in_block(reinterpret_cast<uintptr_t>(remote), element_));
      combine({remote, local, 0, 0, 1}, part);
      remote += part;
      local += part;
      bytes -= part;
    }
  }

  // Rows of `bytes` bytes.
  void box(Rows rows, size_t bytes) {
    for (size_t left = rows.count; left != 0; left -= rows.count) {
      rows.count = rows_in_block(reinterpret_cast<uintptr_t>(rows.to), rows.to_stride, bytes, left);
      if (rows.count != 0) {
        combine(rows, bytes);
      } else {
        rows.count = 1;
        run(rows.to, rows.from, bytes);
      }
      rows.to += static_cast<ptrdiff_t>(rows.count) * rows.to_stride;
      rows.from += static_cast<ptrdiff_t>(rows.count) * rows.from_stride;
    }
  }

 private:
  // Rows of one block.
  void combine(const Rows& rows, size_t bytes) {
    const auto to = reinterpret_cast<uintptr_t>(rows.to);
    const ptrdiff_t reach = static_cast<ptrdiff_t>(rows.count - 1) * rows.to_stride;
    const uintptr_t lowest = reach < 0 ? to + static_cast<uintptr_t>(reach) : to;
    const uint64_t zones =
        word_zones(lowest, bytes + static_cast<size_t>(reach < 0 ? -reach : reach));
    const uint64_t shared = stripe_.hold(to / kLockBlockBytes, rows.count * bytes, zones);
    if (shared == 0 || shared == zones) [[likely]] {
      apply(shared == 0 ? alone_ : atomically_, rows, bytes);
    } else {
      combine_by_zones(rows, bytes, shared);
    }
  }

  // Splits each row into parts whose zones are all shared or all not shared.
  void combine_by_zones(const Rows& rows, size_t bytes, uint64_t shared) {
    Rows part{rows.to, rows.from, 0, 0, 1};
    for (size_t row = 0; row < rows.count; ++row) {
      part.to = rows.to + static_cast<ptrdiff_t>(row) * rows.to_stride;
      part.from = rows.from + static_cast<ptrdiff_t>(row) * rows.from_stride;
      for (size_t left = bytes; left != 0;) {
        const size_t at = reinterpret_cast<uintptr_t>(part.to) % kLockBlockBytes;
        const size_t zone = at / kWordZoneBytes;
        const bool is_shared = (shared >> zone & 1) != 0;
        const uint64_t same = (is_shared ? shared : ~shared) >> zone;
        const size_t end = (zone + static_cast<size_t>(std::countr_one(same))) * kWordZoneBytes;
        const size_t now = std::min(left, end - at);
        apply(is_shared ? atomically_ : alone_, part, now);
        part.to += now;
        part.from += now;
        left -= now;
      }
    }
  }

  void apply(Combine kernel, Rows rows, size_t bytes) {
    rows.to += delta_;
    kernel(rows, bytes / element_, scale_, fetched_);
    if (fetched_ != nullptr) fetched_ += rows.count * bytes;
  }

  const Combine atomically_;
  const Combine alone_;
  const size_t element_;
  const void* const scale_;
  char* fetched_;
  const ptrdiff_t delta_;
  HeldStripe stripe_;
};

}  // namespace

void accumulate(const Shape& shape, ptrdiff_t remote_delta, const Combination& combination,
                const LockTable& locks) {
  if (combination.op == MOB_NO_OP && combination.fetched == nullptr) return;
  Accumulation accumulation(combination, remote_delta, locks);
  if (shape.kind == MOB_STRIDED && shape.total_bytes != 0) {
    static_cast<void>(for_each_row(shape, [&](char* remote, const char* local) {
      accumulation.box({.to = remote,
                        .from = local,
                        .to_stride = shape.remote_strides[0],
                        .from_stride = shape.local_strides[0],
                        .count = shape.counts[0]},
                       shape.run_bytes);
      return MOB_OK;
    }));
    return;
  }
  static_cast<void>(for_each_run(shape, [&](char* remote, const char* local, size_t bytes) {
    accumulation.run(remote, local, bytes);
    return MOB_OK;
  }));
}

}  // namespace mobius::transport
