// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/accumulate.h"

#include "transport/shm/element.h"

namespace mobius::transport {
namespace {

// The lock of one stripe at a time, kept from run to run while they stay in one block.
class HeldStripe {
 public:
  HeldStripe(const LockTable& locks, bool integers) : locks_(locks), integers_(integers) {}
  HeldStripe(const HeldStripe&) = delete;
  HeldStripe& operator=(const HeldStripe&) = delete;
  ~HeldStripe() { release(); }

  // Takes the lock for `bytes` of work, at most kLockBlockBytes, that begin in `block`. True if
  // that excludes all others; else they and the caller use atomic instructions.
  bool hold(uintptr_t block, size_t bytes) {
    if (block == block_ && bytes <= allowance_) [[likely]] {
      allowance_ -= bytes;
      return is_alone_;
    }
    // Also between two blocks of one stripe, and for more work than others should wait for.
    release();
    stripe_ = lock_stripe(block * kLockBlockBytes);
    block_ = block;
    allowance_ = 2 * kLockBlockBytes - bytes;
    is_alone_ = !integers_;
    if (integers_ && locks_.words(locks_.context, stripe_) == WordsIn::kAdmitted) return false;
    locks_.lock(locks_.context, stripe_);
    is_locked_ = true;
    if (integers_) is_alone_ = locks_.words(locks_.context, stripe_) == WordsIn::kNever;
    return is_alone_;
  }

 private:
  static constexpr uintptr_t kNone = UINTPTR_MAX;  // no address lies in that block

  void release() {
    if (is_locked_) locks_.unlock(locks_.context, stripe_);
    is_locked_ = false;
  }

  const LockTable& locks_;
  const bool integers_;
  bool is_locked_ = false;
  bool is_alone_ = false;
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

}  // namespace

void accumulate(const Shape& shape, ptrdiff_t remote_delta, const Combination& combination,
                const LockTable& locks) {
  if (combination.op == MOB_NO_OP && combination.fetched == nullptr) return;
  const Combine atomically = atomic_kernel(combination.op, combination.type);
  // A copy of bytes could tear an integer for who looks at it meanwhile.
  const bool copies = combination.op == MOB_REPLACE || combination.op == MOB_NO_OP;
  const Combine alone =
      atomically != nullptr && copies ? atomically : plain_kernel(combination.op, combination.type);
  const size_t element = element_bytes(combination.type);
  auto* fetched = static_cast<char*>(combination.fetched);
  HeldStripe stripe(locks, atomically != nullptr);
  for_each_run(shape, [&](char* remote, const char* local, size_t bytes) {
    while (bytes != 0) {
      const auto address = reinterpret_cast<uintptr_t>(remote);
      const size_t room = bytes_in_block(address, element);
      const size_t part = bytes < room ? bytes : room;
      const Combine combine = stripe.hold(address / kLockBlockBytes, part) ? alone : atomically;
      combine(remote + remote_delta, local, part / element, combination.scale, fetched);
      if (fetched != nullptr) fetched += part;
      remote += part;
      local += part;
      bytes -= part;
    }
    return MOB_OK;
  });
}

}  // namespace mobius::transport
