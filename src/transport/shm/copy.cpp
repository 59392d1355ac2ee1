// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/copy.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <algorithm>

#include "transport/shm/kernels/kernels.h"

namespace mobius::transport {
namespace {

// Measured on Sapphire Rapids with 2 MiB of second-level cache. There memcpy drops to a third of
// its speed at 1.3 MiB; from there on streaming is 1.3 to 1.6 times as fast as memcpy. rep movsb is
// within 5 % of memcpy, which uses it itself where it is good.
constexpr CopyTuning kDefault = {.rep_movsb_from_bytes = SIZE_MAX, .stream_from_bytes = 3 << 19};

#ifdef __x86_64__
// Measured on an EPYC of Zen 5: the reader must fetch streamed data from memory. Without streaming,
// a ping-pong of puts takes 0.4 times as long at 4 MiB, 0.43 at 8 MiB and 0.8 at 32 MiB; puts one
// way take 0.75 to 1.05 times as long.
constexpr CopyTuning kOnAmd = {.rep_movsb_from_bytes = SIZE_MAX, .stream_from_bytes = SIZE_MAX};

// On Zen 5, memcpy of glibc 2.36 stops using the string instruction above 1 MiB, where that is
// still the fastest. With it, a ping-pong of puts takes 0.61 to 0.87 times as long at 1 to 16 MiB,
// puts one way 0.72 to 0.97, copies in one process 0.75 to 1.0. The offsets in their pages do not
// matter (on Zen 4 they do: is_near_in_page()).
constexpr CopyTuning kOnZen5 = {.rep_movsb_from_bytes = 512 << 10, .stream_from_bytes = SIZE_MAX};
constexpr unsigned kFamilyOfZen5 = 26;

bool is_zen5_or_later() {
  // CPUID leaf 1: an extended family is added to family 15. Leaf 7: whether rep movsb is fast.
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  const unsigned family = ((a >> 8) & 15) + ((a >> 20) & 255);
  constexpr unsigned kErms = 1u << 9;
  return family >= kFamilyOfZen5 && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (b & kErms) != 0;
}
#endif

constinit CopyTuning tuning = kDefault;

}  // namespace

CopyTuning default_copy_tuning() {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_is("amd")) return is_zen5_or_later() ? kOnZen5 : kOnAmd;
#endif
  return kDefault;
}

namespace detail {

constinit size_t memcpy_below_bytes = kDefault.stream_from_bytes;

void rep_movsb(void* to, const void* from, size_t bytes) {
#ifdef __x86_64__
  // Microcode copies whole lines only to the start of a line.
  const size_t head = -reinterpret_cast<uintptr_t>(to) & 63;
  if (bytes > head) {
    std::memcpy(to, from, head);
    to = static_cast<char*>(to) + head;
    from = static_cast<const char*>(from) + head;
    bytes -= head;
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return;
  }
#endif
  std::memcpy(to, from, bytes);
}

void stream(void* to, const void* from, size_t bytes) {
  kernels().stream({.to = static_cast<char*>(to),
                    .from = static_cast<const char*>(from),
                    .to_stride = 0,
                    .from_stride = 0,
                    .count = 1},
                   bytes);
}

namespace {

// Uses vector registers.
void copy_by_rows(void* to, const void* from, size_t bytes) {
  constexpr size_t kRow = kRowBytesMax;
  const size_t rows = bytes / kRow;
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  if (rows != 0) {
    kernels().move_rows(
        {.to = target, .from = source, .to_stride = kRow, .from_stride = kRow, .count = rows},
        kRow);
  }
  const size_t rest = bytes % kRow;
  if (rest == 0) return;
  kernels().move_rows({.to = target + rows * kRow,
                       .from = source + rows * kRow,
                       .to_stride = 0,
                       .from_stride = 0,
                       .count = 1},
                      rest);
}

}  // namespace

void copy_through_caches(void* to, const void* from, size_t bytes) {
  if (tuning.slow_near_in_page && is_near_in_page(to, from)) {
    copy_by_rows(to, from, bytes);
  } else if (bytes >= tuning.rep_movsb_from_bytes) {
    rep_movsb(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void copy_large(void* to, const void* from, size_t bytes) {
  if (bytes >= tuning.stream_from_bytes && bytes >= kStreamBytesMin) {
    stream(to, from, bytes);
  } else {
    copy_through_caches(to, from, bytes);
  }
}

}  // namespace detail

CopyTuning copy_tuning() { return tuning; }

void set_copy_tuning(const CopyTuning& wanted) {
  tuning = wanted;
  detail::memcpy_below_bytes = std::min({wanted.rep_movsb_from_bytes, wanted.stream_from_bytes,
                                         wanted.slow_near_in_page ? kNearBytes + 1 : SIZE_MAX});
}

}  // namespace mobius::transport
