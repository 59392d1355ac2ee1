// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/accumulate.h"

#include "transport/shm/element.h"

namespace mobius::transport {
namespace {

// The lock of one stripe at a time, kept from run to run while they stay in one block.
class HeldStripe {
 public:
  explicit HeldStripe(const LockTable& locks) : locks_(locks) {}
  HeldStripe(const HeldStripe&) = delete;
  HeldStripe& operator=(const HeldStripe&) = delete;
  ~HeldStripe() { release(); }

  // Takes the lock for `bytes` of work, at most kLockBlockBytes, that begin in `block`.
  void hold(uintptr_t block, size_t bytes) {
    if (block == block_ && bytes <= allowance_) [[likely]] {
      allowance_ -= bytes;
      return;
    }
    // Also between two blocks of one stripe, and for more work than others should wait for.
    release();
    stripe_ = lock_stripe(block * kLockBlockBytes);
    locks_.lock(locks_.context, stripe_);
    block_ = block;
    allowance_ = 2 * kLockBlockBytes - bytes;
  }

 private:
  static constexpr uintptr_t kNone = UINTPTR_MAX;  // no address lies in that block

  void release() {
    if (block_ != kNone) locks_.unlock(locks_.context, stripe_);
    block_ = kNone;
  }

  const LockTable& locks_;
  uintptr_t block_ = kNone;
  size_t allowance_ = 0;
  unsigned stripe_ = 0;
};

// Bytes of the elements that begin in the block of `remote`: an element that reaches into the next
// block is guarded by the lock of its first byte, for everybody.
size_t bytes_in_block(uintptr_t remote, size_t element) {
  const size_t left = kLockBlockBytes - remote % kLockBlockBytes;
  return (left + element - 1) & ~(element - 1);
}

void accumulate_locked(const Shape& shape, ptrdiff_t remote_delta, const Combination& combination,
                       const LockTable& locks) {
  const Combine combine = plain_kernel(combination.op, combination.type);
  const size_t element = element_bytes(combination.type);
  auto* fetched = static_cast<char*>(combination.fetched);
  HeldStripe stripe(locks);
  for_each_run(shape, [&](char* remote, const char* local, size_t bytes) {
    while (bytes != 0) {
      const auto address = reinterpret_cast<uintptr_t>(remote);
      const size_t room = bytes_in_block(address, element);
      const size_t part = bytes < room ? bytes : room;
      stripe.hold(address / kLockBlockBytes, part);
      combine(remote + remote_delta, local, part / element, combination.scale, fetched);
      if (fetched != nullptr) fetched += part;
      remote += part;
      local += part;
      bytes -= part;
    }
    return MOB_OK;
  });
}

}  // namespace

void accumulate(const Shape& shape, ptrdiff_t remote_delta, const Combination& combination,
                const LockTable& locks) {
  if (combination.op == MOB_NO_OP && combination.fetched == nullptr) return;
  const Combine combine = atomic_kernel(combination.op, combination.type);
  if (combine == nullptr) {
    accumulate_locked(shape, remote_delta, combination, locks);
    return;
  }
  const size_t element = element_bytes(combination.type);
  auto* fetched = static_cast<char*>(combination.fetched);
  for_each_run(shape, [&](char* remote, const char* local, size_t bytes) {
    combine(remote + remote_delta, local, bytes / element, combination.scale, fetched);
    if (fetched != nullptr) fetched += bytes;
    return MOB_OK;
  });
}

}  // namespace mobius::transport
