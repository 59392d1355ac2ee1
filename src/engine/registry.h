// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Objects that callers name by handles. A handle is looked up, never followed: one that was freed,
// or never was one, is told apart from a live one.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace mobius::engine {

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

  // The handle of the object, never 0; 0 if there are too many, and the object is gone then.
  uint64_t add(std::unique_ptr<T> object) {
    const std::lock_guard lock(mutex_);
    uint32_t index = used_;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else if (used_ == kBlocks * kBlockSlots) {
      return 0;
    } else {
      ++used_;
    }
    auto& block = blocks_[index / kBlockSlots];
    // Release pairs with the acquire in find().
    if (block.load(std::memory_order_relaxed) == nullptr) {
      block.store(new Block, std::memory_order_release);
    }
    Slot& slot = (*block.load(std::memory_order_relaxed))[index % kBlockSlots];
    const uint64_t handle = (++slot.generation << kIndexBits) | (index + 1);
    slot.object = std::move(object);
    slot.handle.store(handle, std::memory_order_release);
    return handle;
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
  static_assert(uint64_t{kBlockSlots} * kBlocks <= kIndexMask);

  struct Slot {
    std::atomic<uint64_t> handle = 0;  // 0: not in use
    uint64_t generation = 0;
    std::unique_ptr<T> object;
  };
  using Block = std::array<Slot, kBlockSlots>;

  Slot* slot_of(uint64_t handle) const {
    const uint64_t index = (handle & kIndexMask) - 1;  // wraps for 0, which is out of bounds
    if (index >= uint64_t{kBlockSlots} * kBlocks) return nullptr;
    Block* block = blocks_[index / kBlockSlots].load(std::memory_order_acquire);
    return block == nullptr ? nullptr : &(*block)[index % kBlockSlots];
  }

  std::mutex mutex_;  // guards what follows but the atomics
  std::array<std::atomic<Block*>, kBlocks> blocks_{};
  std::vector<uint32_t> free_;
  uint32_t used_ = 0;
};

}  // namespace mobius::engine
