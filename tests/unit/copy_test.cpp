// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "transport/shm/copy_peer.h"
#include "transport/shm/kernels/kernels.h"

namespace mobius::transport {
namespace {

constexpr unsigned char kGuard = 0xEE;
constexpr size_t kGuardBytes = 128;

unsigned char pattern(size_t i) { return static_cast<unsigned char>(i * 167 + (i >> 8) * 13 + 1); }

// Copies with one size and pair of alignments, and checks every byte of the target and around it.
class Field {
 public:
  explicit Field(size_t most) : source_(most + 2 * kGuardBytes), target_(most + 2 * kGuardBytes) {
    for (size_t i = 0; i < source_.size(); ++i) source_[i] = pattern(i);
  }

  template <typename Copy>
  bool copies(Copy call, size_t bytes, size_t to, size_t from) {
    unsigned char* target = align(target_.data()) + to;
    const unsigned char* source = align(source_.data()) + from;
    std::memset(target_.data(), kGuard, target_.size());
    call(target, source, bytes);
    if (std::memcmp(target, source, bytes) != 0) return false;
    for (const unsigned char* p = target_.data(); p < target; ++p) {
      if (*p != kGuard) return false;
    }
    const unsigned char* end = target_.data() + target_.size();
    for (const unsigned char* p = target + bytes; p < end; ++p) {
      if (*p != kGuard) return false;
    }
    return true;
  }

 private:
  static unsigned char* align(unsigned char* p) {
    return p + (-reinterpret_cast<uintptr_t>(p) & 63);
  }

  std::vector<unsigned char> source_;
  std::vector<unsigned char> target_;
};

class Tuning : public testing::Test {
 protected:
  ~Tuning() override { set_copy_tuning(before_); }
  const CopyTuning before_ = copy_tuning();
};

using Copy = Tuning;

// copy() itself is always inlined and has no address.
constexpr auto kCopy = [](void* to, const void* from, size_t bytes) { copy(to, from, bytes); };

TEST_F(Copy, EverySmallSizeAtEveryAlignment) {
  Field field(1024);
  for (size_t bytes = 0; bytes <= 1024; ++bytes) {
    for (size_t offset = 0; offset < 64; ++offset) {
      const size_t other = (offset * 7 + bytes) % 64;
      ASSERT_TRUE(field.copies(kCopy, bytes, offset, other))
          << bytes << " bytes to " << offset << " from " << other;
    }
  }
}

TEST_F(Copy, AroundTheThresholds) {
  set_copy_tuning({.rep_movsb_from_bytes = 20000, .stream_from_bytes = 70000});
  Field field(80000);
  for (const size_t bytes : {size_t{19999}, size_t{20000}, size_t{20001}, size_t{69999},
                             size_t{70000}, size_t{70001}, size_t{80000}}) {
    for (size_t offset = 0; offset < 64; offset += 3) {
      const size_t other = (offset * 5 + 11) % 64;
      ASSERT_TRUE(field.copies(kCopy, bytes, offset, other))
          << bytes << " bytes to " << offset << " from " << other;
    }
  }
}

// With either way in use.
TEST_F(Copy, ToAPeerEitherWay) {
  constexpr size_t kTried = detail::kLeastTriedBytes;
  constexpr size_t kTriedPart = detail::kLeastTriedPart;
  constexpr auto kToPeer = [](void* to, const void* from, size_t n) { copy_to_peer(to, from, n); };
  constexpr auto kPart = [](void* to, const void* from, size_t n) {
    copy_part_to_peer(to, from, n);
  };
  Field field(40000);
  for (const bool tried : {false, true}) {
    set_copy_tuning({.rep_movsb_from_bytes = SIZE_MAX,
                     .stream_from_bytes = tried ? SIZE_MAX : kTriedPart,
                     .try_from_bytes = tried ? kTriedPart : SIZE_MAX});
    for (size_t i = 0; i < 200; ++i) {
      for (const size_t bytes : {kTriedPart - 1, kTriedPart, kTried - 1, kTried, size_t{40000}}) {
        ASSERT_TRUE(field.copies(kToPeer, bytes, i % 64, i * 7 % 64)) << bytes << " bytes";
        ASSERT_TRUE(field.copies(kPart, bytes, i % 64, i * 7 % 64)) << bytes << " bytes";
      }
    }
  }
}

// Also where bypassing the caches is the default, and gets.
TEST_F(Copy, LongOnesWithAPeerEitherWay) {
  constexpr size_t kTried = detail::kLeastTriedGet;
  constexpr auto kToPeer = [](void* to, const void* from, size_t n) { copy_to_peer(to, from, n); };
  constexpr auto kFromPeer = [](void* to, const void* from, size_t n) {
    copy_from_peer(to, from, n);
  };
  Field field(kTried + 64);
  for (const bool tried : {false, true}) {
    set_copy_tuning({.rep_movsb_from_bytes = SIZE_MAX,
                     .stream_from_bytes = kTried - 1,
                     .try_from_bytes = tried ? kTried : SIZE_MAX});
    for (size_t i = 0; i < 60; ++i) {
      for (const size_t bytes : {kTried - 1, kTried, kTried + 64}) {
        ASSERT_TRUE(field.copies(kToPeer, bytes, i % 64, i * 7 % 64)) << bytes << " bytes";
        ASSERT_TRUE(field.copies(kFromPeer, bytes, i % 64, i * 7 % 64)) << bytes << " bytes";
      }
    }
  }
}

TEST(IsNearInPage, OneTo31BytesBehindWholePagesAside) {
  const auto* page = reinterpret_cast<const char*>(uintptr_t{1} << 20);
  for (const ptrdiff_t pages : {-3, 0, 5}) {
    for (ptrdiff_t behind = -64; behind <= 64; ++behind) {
      for (const ptrdiff_t place : {0, 40, 4095}) {
        const char* from = page + place;
        EXPECT_EQ(is_near_in_page(from + pages * 4096 + behind, from), behind >= 1 && behind <= 31)
            << behind << " bytes behind " << place;
      }
    }
  }
}

TEST_F(Copy, NearInThePageByAnotherWay) {
  set_copy_tuning(
      {.rep_movsb_from_bytes = 20000, .stream_from_bytes = SIZE_MAX, .slow_near_in_page = true});
  constexpr size_t kPage = 4096;
  constexpr size_t kMost = 5 * kPage + 100;
  std::vector<unsigned char> memory(16 * kPage);
  unsigned char* from =
      memory.data() + (-reinterpret_cast<uintptr_t>(memory.data()) & (kPage - 1)) + 7;
  for (size_t i = 0; i < kMost; ++i) from[i] = pattern(i);
  for (const size_t bytes : {size_t{2047}, size_t{2048}, size_t{2049}, kPage, kPage + 1, 2 * kPage,
                             size_t{9000}, size_t{19999}, size_t{20000}, kMost}) {
    for (size_t behind = 0; behind <= 64; ++behind) {
      unsigned char* to = from + 7 * kPage + behind;
      std::memset(to - 1, kGuard, bytes + 2);
      copy(to, from, bytes);
      ASSERT_EQ(std::memcmp(to, from, bytes), 0) << bytes << " bytes, " << behind << " behind";
      ASSERT_EQ(to[-1], kGuard);
      ASSERT_EQ(to[bytes], kGuard);
    }
  }
}

// Every set of kernels that this processor can run, not only the chosen one.
std::vector<const Kernels*> all_kernels() {
  std::vector<const Kernels*> sets = {&kBaseKernels};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) sets.push_back(&kAvx2Kernels);
  if (&kernels() == &kAvx512Kernels) sets.push_back(&kAvx512Kernels);
#endif
  return sets;
}

TEST(Stream, EverySizeAroundItsBlocks) {
  Field field(70000);
  for (const Kernels* set : all_kernels()) {
    for (const size_t bytes : {size_t{64}, size_t{65}, size_t{127}, size_t{128}, size_t{16383},
                               size_t{16384}, size_t{16385}, size_t{16447}, size_t{16448},
                               size_t{32768}, size_t{65536 + 64}, size_t{69999}}) {
      for (size_t offset = 0; offset < 64; ++offset) {
        const auto stream = [set](void* to, const void* from, size_t n) {
          set->stream({.to = static_cast<char*>(to),
                       .from = static_cast<const char*>(from),
                       .to_stride = 0,
                       .from_stride = 0,
                       .count = 1},
                      n);
        };
        ASSERT_TRUE(field.copies(stream, bytes, offset, (offset * 9 + 5) % 64))
            << set->name << ": " << bytes << " bytes to " << offset;
      }
    }
  }
}

TEST(MoveRows, EveryRunLengthAndGap) {
  std::vector<unsigned char> source(1 << 16);
  for (size_t i = 0; i < source.size(); ++i) source[i] = pattern(i);
  for (const Kernels* set : all_kernels()) {
    for (size_t bytes = 1; bytes <= 700; ++bytes) {
      const size_t gap = bytes % 5 == 0 ? (2048 - bytes % 2048) : bytes % 67;
      const size_t stride = bytes + gap;
      const size_t from_stride = bytes % 3 == 0 ? bytes : bytes + 13;
      const size_t start = 1 + bytes % 64;
      constexpr size_t kRows = 5;
      std::vector<unsigned char> target(start + kRows * stride + 1, kGuard);
      std::vector<unsigned char> expected = target;
      for (size_t row = 0; row < kRows; ++row) {
        std::memcpy(expected.data() + start + row * stride, source.data() + 3 + row * from_stride,
                    bytes);
      }
      set->move_rows({.to = reinterpret_cast<char*>(target.data() + start),
                      .from = reinterpret_cast<const char*>(source.data() + 3),
                      .to_stride = static_cast<ptrdiff_t>(stride),
                      .from_stride = static_cast<ptrdiff_t>(from_stride),
                      .count = kRows},
                     bytes);
      ASSERT_EQ(target, expected) << set->name << ": rows of " << bytes;
    }
  }
}

TEST(LookOver, EverySetFindsTheSame) {
  std::mt19937_64 random(9);
  for (const Kernels* set : all_kernels()) {
    for (int round = 0; round < 4000; ++round) {
      std::vector<mob_span_t> spans(1 + random() % 13);
      std::vector<mob_span_t> fellows(spans.size());
      const bool even = round % 3 == 0;
      SpanSummary expected = {};
      expected.lowest = UINTPTR_MAX;
      for (size_t i = 0; i < spans.size(); ++i) {
        const uintptr_t address = random() % 50 == 0 ? 0 : random() >> (2 + random() % 40);
        const size_t bytes = random() % 50 == 0 ? 0 : even ? 24 : random() >> (6 + random() % 50);
        spans[i] = {reinterpret_cast<void*>(address), bytes};
        fellows[i] = {nullptr, random() % 20 == 0 ? bytes + 4 : bytes};
        expected.total += bytes;
        expected.lowest = std::min(expected.lowest, address);
        expected.highest = std::max(expected.highest, address + bytes);
        expected.addresses |= address;
        expected.bytes |= bytes;
        expected.differ |= bytes ^ spans[0].bytes;
        expected.unpaired |= bytes ^ fellows[i].bytes;
        if (address == 0 || bytes == 0) expected.missing = 1;
      }
      for (const bool paired : {false, true}) {
        SpanSummary found;
        set->look_over(spans.data(), spans.size(), paired ? fellows.data() : nullptr, &found);
        ASSERT_EQ(found.total, expected.total) << set->name;
        ASSERT_EQ(found.lowest, expected.lowest) << set->name;
        ASSERT_EQ(found.highest, expected.highest) << set->name;
        ASSERT_EQ(found.addresses, expected.addresses) << set->name;
        ASSERT_EQ(found.bytes, expected.bytes) << set->name;
        ASSERT_EQ(found.differ != 0, expected.differ != 0) << set->name;
        ASSERT_EQ(found.missing >> 63, expected.missing) << set->name;
        if (paired) {
          ASSERT_EQ(found.unpaired, expected.unpaired) << set->name;
        }
      }
    }
  }
}

TEST_F(Tuning, MeasuredThresholdsAreUsable) {
  const CopyTuning measured = measure_copy_tuning();
  EXPECT_GE(measured.stream_from_bytes, size_t{256} << 10);
  set_copy_tuning(measured);
  EXPECT_EQ(copy_tuning().stream_from_bytes, measured.stream_from_bytes);
  EXPECT_EQ(copy_tuning().rep_movsb_from_bytes, measured.rep_movsb_from_bytes);
}

}  // namespace
}  // namespace mobius::transport
