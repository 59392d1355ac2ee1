// SPDX-License-Identifier: BSD-3-Clause
#include "engine/stripes.h"

#include <bit>

#include "engine/engine.h"
#include "engine/locks.h"
#include "transport/shm/element.h"

namespace mobius::engine {
namespace {

using transport::WordsIn;

// What the calls from the transport are about.
struct Held {
  Engine& engine;
  ProcessBlock& process;
  uint32_t id;

  static ProcessBlock::Stripe& stripe(void* context, unsigned index) {
    return static_cast<Held*>(context)->process.stripes[index];
  }
};

void lock(void* context, unsigned stripe) {
  const auto& held = *static_cast<Held*>(context);
  LivenessProbe probe(held.engine);
  os::lock(Held::stripe(context, stripe).lock, held.id, held.engine.host().policy(), &probe);
}

void unlock(void* context, unsigned stripe) {
  os::unlock(Held::stripe(context, stripe).lock, static_cast<Held*>(context)->id);
}

WordsIn words_in(void* context, unsigned stripe) {
  // Acquire pairs with the release in Stripes::admit(): nobody is left under the lock.
  return Held::stripe(context, stripe).words.load(std::memory_order_acquire);
}

}  // namespace

void Stripes::open() {
  admitted_ = std::make_unique<std::atomic<uint64_t>[]>(static_cast<size_t>(engine_.host().size()));
}

uint64_t Stripes::stripes_of(uintptr_t address, uint64_t bytes) {
  using transport::kLockBlockBytes;
  if (bytes >= transport::kLockStripes * kLockBlockBytes) return kAll;
  const uintptr_t first = address / kLockBlockBytes;
  const uintptr_t last = (address + (bytes == 0 ? 0 : bytes - 1)) / kLockBlockBytes;
  uint64_t stripes = 0;
  for (uintptr_t block = first; block <= last; ++block) {
    stripes |= uint64_t{1} << transport::lock_stripe(block * kLockBlockBytes);
  }
  return stripes;
}

// Several processes may do it at once, and one may die at it: each that needs it sees it through.
void Stripes::admit(mob_rank_t host_index, uint64_t stripes) {
  ProcessBlock& process = engine_.process(host_index);
  for (uint64_t left = stripes; left != 0; left &= left - 1) {
    ProcessBlock::Stripe& stripe = process.stripes[std::countr_zero(left)];
    // Acquire pairs with the release below.
    if (stripe.words.load(std::memory_order_acquire) == WordsIn::kAdmitted) continue;
    stripe.words.store(WordsIn::kArriving, std::memory_order_relaxed);
    {
      const LockGuard after_the_last_without(engine_, stripe.lock);
    }
    // Release pairs with words_in(): who sees it need not take the lock.
    stripe.words.store(WordsIn::kAdmitted, std::memory_order_release);
  }
  admitted_[host_index].fetch_or(stripes, std::memory_order_release);
}

bool Stripes::accumulate_few(mob_rank_t host_index, uintptr_t address, void* here,
                             const void* local, size_t count, const transport::Combination& what) {
  constexpr size_t kFew = 512;
  const auto [type, op, scale, fetched] = what;
  if (count - 1 >= kFew || op == MOB_NO_OP || !transport::op_is_defined(op, type) ||
      address % transport::element_alignment(type) != 0) {
    return false;
  }
  const uintptr_t last = address + (count - 1) * transport::element_bytes(type);
  if (address / transport::kLockBlockBytes != last / transport::kLockBlockBytes) return false;
  ProcessBlock::Stripe& stripe =
      engine_.process(host_index).stripes[transport::lock_stripe(address)];
  const transport::Combine atomically =
      transport::is_integer(type) ? transport::atomic_kernel(op, type) : nullptr;
  if (atomically != nullptr) {
    // Acquire as in words_in().
    if (stripe.words.load(std::memory_order_acquire) == WordsIn::kAdmitted) {
      atomically(transport::one_row(here, local), count, scale, fetched);
      return true;
    }
    if (fetched != nullptr && count == 1) return false;  // an update of a word is to be admitted
  }
  const LockGuard lock(engine_, stripe.lock);
  // As transport::accumulate() has it.
  const bool is_alone =
      atomically == nullptr ||
      (stripe.words.load(std::memory_order_acquire) == WordsIn::kNever && op != MOB_REPLACE);
  const transport::Combine combine = is_alone ? transport::plain_kernel(op, type) : atomically;
  combine(transport::one_row(here, local), count, scale, fetched);
  return true;
}

void Stripes::accumulate(mob_rank_t host_index, const transport::Shape& shape,
                         ptrdiff_t remote_delta, const transport::Combination& combination) {
  Held held{engine_, engine_.process(host_index), engine_.lock_id()};
  const transport::LockTable table{&held, &lock, &unlock, &words_in};
  transport::accumulate(shape, remote_delta, combination, table);
}

}  // namespace mobius::engine
