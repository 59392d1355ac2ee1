// SPDX-License-Identifier: BSD-3-Clause
#include "engine/common/thread_id.h"

#include <mutex>
#include <vector>

namespace mobius::engine {
namespace {

class ThreadNumber {
 public:
  ThreadNumber() {
    const std::lock_guard lock(mutex());
    if (free_numbers().empty()) {
      value_ = next()++;
    } else {
      value_ = free_numbers().back();
      free_numbers().pop_back();
    }
  }
  ~ThreadNumber() {
    const std::lock_guard lock(mutex());
    free_numbers().push_back(value_);
  }
  ThreadNumber(const ThreadNumber&) = delete;
  ThreadNumber& operator=(const ThreadNumber&) = delete;

  uint32_t value() const { return value_; }

 private:
  // Never destroyed: threads may end after the process' static objects.
  static std::mutex& mutex() {
    static auto* const instance = new std::mutex;
    return *instance;
  }
  static std::vector<uint32_t>& free_numbers() {
    static auto* const instance = new std::vector<uint32_t>;
    return *instance;
  }
  static uint32_t& next() {
    static uint32_t instance = 0;
    return instance;
  }

  uint32_t value_;
};

}  // namespace

constinit thread_local uint32_t thread_number = 0;

uint32_t number_thread() {
  thread_local const ThreadNumber number;  // until the thread ends
  return thread_number = number.value() + 1;
}

}  // namespace mobius::engine
