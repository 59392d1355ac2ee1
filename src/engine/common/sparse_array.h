// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace mobius::engine {

// An array of elements that are valid as zeros, with room for many more than are used: the memory
// of a page exists from its first use. For tables by rank, as processes may be spawned.
template <typename T>
class SparseArray {
 public:
  static_assert(std::is_trivially_destructible_v<T>);

  SparseArray() = default;
  explicit SparseArray(size_t count) : count_(count) {
    void* memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    elements_ = static_cast<T*>(memory);
  }
  SparseArray(SparseArray&& other) noexcept
      : elements_(std::exchange(other.elements_, nullptr)), count_(other.count_) {}
  SparseArray& operator=(SparseArray&& other) noexcept {
    std::swap(elements_, other.elements_);
    std::swap(count_, other.count_);
    return *this;
  }
  SparseArray(const SparseArray&) = delete;
  SparseArray& operator=(const SparseArray&) = delete;
  ~SparseArray() {
    if (elements_ != nullptr) munmap(elements_, count_ * sizeof(T));
  }

  bool empty() const { return elements_ == nullptr; }
  T& operator[](size_t index) const { return elements_[index]; }

 private:
  T* elements_ = nullptr;
  size_t count_ = 0;
};

}  // namespace mobius::engine
