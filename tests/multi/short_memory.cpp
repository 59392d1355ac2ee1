// SPDX-License-Identifier: BSD-3-Clause
#include "short_memory.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> refused = SIZE_MAX;

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Also used by the library, which takes the program's operator.
void* operator new(std::size_t bytes) {
  void* const memory = bytes < refused.load(std::memory_order_relaxed)
                           ? std::malloc(bytes != 0 ? bytes : 1)
                           : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace mobius_test {

ShortMemory::ShortMemory(std::size_t least_refused) { refused.store(least_refused); }
ShortMemory::~ShortMemory() { refused.store(SIZE_MAX); }

bool ShortMemory::is_possible() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

}  // namespace mobius_test
