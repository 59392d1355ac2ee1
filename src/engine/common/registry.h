// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Objects that callers name by handles. A handle is looked up, never followed as a pointer, so a
// handle that was freed, or never was one, is recognised.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/status.h"

namespace mobius::engine {

// The high bits of the handles of registries that are made while it is set: they tell to which
// engine of this process an object belongs (engine/guests.h). 0: the process' own.
inline constexpr unsigned kRegistryTagShift = 56;
inline constinit thread_local uint64_t registry_tag = 0;
constexpr unsigned tag_of_handle(uint64_t handle) {
  return static_cast<unsigned>(handle >> kRegistryTagShift);
}

// Adding and removing take a lock, finding does not. An object lives from add() to remove(); a
// find() at the same time as the remove() of its handle is an error of the caller.
template <typename T>
class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  ~Registry() {
    for (auto& block : blocks_) delete block.load(std::memory_order_relaxed);
  }

  // Room that is reserved for an object still to be made; adding that object cannot fail then.
  class Place {
   public:
    explicit Place(Registry& registry) : registry_(registry), index_(registry.reserve()) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
      if (index_ != kNone) registry_.cancel(index_);
    }

    // Whether there is room.
    explicit operator bool() const { return index_ != kNone; }
    // MOB_OK if so, else the error of `call`, a public function.
    mob_status_t check(const char* call) const {
      if (index_ != kNone) return MOB_OK;
      return base::fail(MOB_ERR_MEMORY,
                        "%s: no room for one more object of its kind in this process, which can "
                        "have %u, or no memory for it",
                        call, kMost);
    }
    // The handle of the object, never 0. Once, where there is room.
    uint64_t fill(std::unique_ptr<T> object) {
      return registry_.put(std::exchange(index_, kNone), std::move(object));
    }

   private:
    Registry& registry_;
    uint32_t index_;
  };

  // The handle of the object, never 0; 0 if there are too many, and the object is gone then.
  uint64_t add(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    const uint32_t index = take();
    return index == kNone ? 0 : put_locked(index, std::move(object));
  }

  // The object, or null if the handle is not live. Any thread.
  T* find(uint64_t handle) const {
    Slot* slot = slot_of(handle);
    if (slot == nullptr || slot->handle.load(std::memory_order_acquire) != handle) return nullptr;
    return slot->object.get();
  }

  // Takes the object out; null if the handle is not live.
  std::unique_ptr<T> remove(uint64_t handle) {
    const std::lock_guard lock(mutex_);
    Slot* slot = slot_of(handle);
    if (slot == nullptr || slot->handle.load(std::memory_order_relaxed) != handle) return nullptr;
    slot->handle.store(0, std::memory_order_relaxed);
    free_.push_back(static_cast<uint32_t>(handle & kIndexMask) - 1);
    return std::move(slot->object);
  }

  // Calls visit(object) for each; nobody may add or remove meanwhile.
  template <typename Visit>
  void for_each(Visit visit) {
    for (uint32_t index = 0; index < used_; ++index) {
      Slot& slot = (*blocks_[index / kBlockSlots].load())[index % kBlockSlots];
      if (slot.object) visit(*slot.object);
    }
  }

 private:
  static constexpr unsigned kIndexBits = 20;
  static constexpr uint64_t kIndexMask = (uint64_t{1} << kIndexBits) - 1;
  static constexpr uint32_t kBlockSlots = 1024;
  static constexpr uint32_t kBlocks = 512;
  static constexpr uint32_t kMost = kBlockSlots * kBlocks;
  static constexpr uint32_t kNone = UINT32_MAX;
  static_assert(kMost <= kIndexMask);

  struct Slot {
    std::atomic<uint64_t> handle = 0;  // 0: not in use
    uint64_t generation = 0;
    std::unique_ptr<T> object;
  };
  using Block = std::array<Slot, kBlockSlots>;

  Slot* slot_of(uint64_t handle) const {
    const uint64_t index = (handle & kIndexMask) - 1;  // wraps for 0, which is out of bounds
    if (index >= kMost) return nullptr;
    Block* block = blocks_[index / kBlockSlots].load(std::memory_order_acquire);
    return block == nullptr ? nullptr : &(*block)[index % kBlockSlots];
  }

  // The index of a slot that was nobody's, kNone if there is none; with the lock held.
  uint32_t take() {
    if (!free_.empty()) {
      const uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
    if (used_ == kMost) return kNone;
    auto& block = blocks_[used_ / kBlockSlots];
    if (block.load(std::memory_order_relaxed) == nullptr) {
      free_.reserve(used_ + kBlockSlots);  // giving slots back cannot fail
      // Release pairs with the acquire in slot_of().
      block.store(new Block, std::memory_order_release);
    }
    return used_++;
  }

  uint64_t put_locked(uint32_t index, std::unique_ptr<T> object) {
    Slot& slot =
        (*blocks_[index / kBlockSlots].load(std::memory_order_relaxed))[index % kBlockSlots];
    const uint64_t handle = tag_ | (++slot.generation << kIndexBits) | (index + 1);
    slot.object = std::move(object);
    // Release pairs with the acquire in find().
    slot.handle.store(handle, std::memory_order_release);
    return handle;
  }

  // kNone also for lack of memory.
  uint32_t reserve() {
    const std::lock_guard lock(mutex_);
    try {
      return take();
    } catch (const std::bad_alloc&) {
      return kNone;
    }
  }
  uint64_t put(uint32_t index, std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    return put_locked(index, std::move(object));
  }
  void cancel(uint32_t index) {
    const std::lock_guard lock(mutex_);
    free_.push_back(index);
  }

  const uint64_t tag_ = registry_tag << kRegistryTagShift;
  std::mutex mutex_;  // guards what follows but the atomics
  std::array<std::atomic<Block*>, kBlocks> blocks_{};
  std::vector<uint32_t> free_;
  uint32_t used_ = 0;
};

}  // namespace mobius::engine
