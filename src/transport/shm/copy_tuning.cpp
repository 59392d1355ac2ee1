// SPDX-License-Identifier: BSD-3-Clause
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <new>

#include "transport/shm/copy.h"

namespace mobius::transport {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kKiB = 1024;
constexpr size_t kSizes[] = {32 * kKiB,   64 * kKiB,   128 * kKiB,  256 * kKiB,  512 * kKiB,
                             768 * kKiB,  1024 * kKiB, 1280 * kKiB, 1536 * kKiB, 2048 * kKiB,
                             3072 * kKiB, 4096 * kKiB, 8192 * kKiB};
constexpr size_t kSizeCount = std::size(kSizes);
constexpr size_t kLargest = kSizes[kSizeCount - 1];
constexpr size_t kUnaligned = 24;  // the slower of two source offsets counts

// Smaller copies are likely to be read soon, from a cache.
constexpr size_t kStreamAtLeast = 256 * kKiB;

// Two blocks of shared memory, as the transfers in question have.
class Buffers {
 public:
  Buffers() {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory != MAP_FAILED) memory_ = static_cast<char*>(memory);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    if (memory_ != nullptr) munmap(memory_, kBytes);
  }
  bool exist() const { return memory_ != nullptr; }
  char* to() const { return memory_; }
  const char* from() const { return memory_ + kLargest; }

 private:
  static constexpr size_t kBytes = 2 * kLargest + 4096;
  char* memory_ = nullptr;
};

using CopyFunction = void (*)(void* to, const void* from, size_t bytes);

void plain(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }

double seconds(CopyFunction copy, char* to, const char* from, size_t bytes) {
  const size_t times = std::max<size_t>(1, 512 * kKiB / bytes);
  const Clock::time_point start = Clock::now();
  for (size_t i = 0; i < times; ++i) copy(to, from, bytes);
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(times);
}

enum Method { kMemcpy, kRepMovsb, kStream, kMethodCount };

// The best times of some rounds at one size. The methods alternate, so that disturbances hit all
// alike.
struct Times {
  double of[kMethodCount];

  Times(const Buffers& buffers, size_t bytes) {
    const CopyFunction functions[kMethodCount] = {&plain, &detail::rep_movsb, &detail::stream};
    std::fill(std::begin(of), std::end(of), 0.0);
    for (const size_t offset : {size_t{0}, kUnaligned}) {
      double best[kMethodCount] = {1e9, 1e9, 1e9};
      for (int round = 0; round < 3; ++round) {
        for (int method = 0; method < kMethodCount; ++method) {
          best[method] = std::min(best[method], seconds(functions[method], buffers.to(),
                                                        buffers.from() + offset, bytes));
        }
      }
      for (int method = 0; method < kMethodCount; ++method) of[method] += best[method];
    }
  }
};

}  // namespace

bool measure_near_in_page() {
#ifdef __x86_64__
  constexpr size_t kBytes = 9000;
  constexpr size_t kPage = 4096;
  constexpr double kSlow = 4;
  const std::unique_ptr<char[]> memory(new (std::nothrow) char[8 * kPage]());
  if (memory == nullptr) return false;
  char* from = memory.get() + (-reinterpret_cast<uintptr_t>(memory.get()) & (kPage - 1));
  const auto least_seconds = [from](size_t behind) {
    double least = 1e9;
    for (int i = 0; i < 3; ++i) {
      const Clock::time_point start = Clock::now();
      void* to = from + 3 * kPage + behind;
      const void* source = from;
      size_t bytes = kBytes;
      asm volatile("rep movsb" : "+D"(to), "+S"(source), "+c"(bytes) : : "memory");
      least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
    }
    return least;
  };
  return least_seconds(8) > kSlow * least_seconds(64);  // at 16 bytes, Zen 4 is only half as fast
#else
  return false;
#endif
}

CopyTuning measure_copy_tuning() {
  const Buffers buffers;
  if (!buffers.exist()) return copy_tuning();

  // From the largest size down, each method is used as long as it wins.
  constexpr double kWorthIt = 0.97;
  const Clock::time_point latest = Clock::now() + std::chrono::milliseconds(100);
  CopyTuning result = {.rep_movsb_from_bytes = SIZE_MAX, .stream_from_bytes = SIZE_MAX};
  bool streams = true;
  for (size_t i = kSizeCount; i-- > 0 && Clock::now() < latest;) {
    const size_t bytes = kSizes[i];
    const Times times(buffers, bytes);
    streams = streams && bytes >= kStreamAtLeast &&
              times.of[kStream] < kWorthIt * std::min(times.of[kMemcpy], times.of[kRepMovsb]);
    if (streams) {
      result.stream_from_bytes = bytes;
    } else if (times.of[kRepMovsb] < kWorthIt * times.of[kMemcpy]) {
      result.rep_movsb_from_bytes = bytes;
    } else {
      break;
    }
  }
  return result;
}

}  // namespace mobius::transport
