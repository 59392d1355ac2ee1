// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/element.h"

#include <mobius/types.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <type_traits>
#include <vector>

namespace mobius::transport {
namespace {

template <typename T>
constexpr bool kIsComplex = false;
template <typename T>
constexpr bool kIsComplex<std::complex<T>> = true;

// The documented result of the operation, for one pair.
template <typename T>
T model(mob_op_t op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Modulo 2^64, so that the truncated result is right for every narrower type.
    const auto wide_a = static_cast<uint64_t>(a);
    const auto wide_b = static_cast<uint64_t>(b);
    switch (op) {
      case MOB_SUM:
        return static_cast<T>(wide_a + wide_b);
      case MOB_PROD:
        return static_cast<T>(wide_a * wide_b);
      case MOB_LAND:
        return a != 0 && b != 0 ? 1 : 0;
      case MOB_LOR:
        return a != 0 || b != 0 ? 1 : 0;
      case MOB_LXOR:
        return (a != 0) != (b != 0) ? 1 : 0;
      case MOB_BAND:
        return static_cast<T>(wide_a & wide_b);
      case MOB_BOR:
        return static_cast<T>(wide_a | wide_b);
      case MOB_BXOR:
        return static_cast<T>(wide_a ^ wide_b);
      default:
        break;
    }
  }
  if constexpr (!kIsComplex<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      if (op == MOB_MIN) return std::fmin(a, b);
      if (op == MOB_MAX) return std::fmax(a, b);
    }
    if (op == MOB_MIN) return std::min(a, b);
    if (op == MOB_MAX) return std::max(a, b);
  }
  if constexpr (!std::is_integral_v<T>) {
    if (op == MOB_SUM) return a + b;
    if (op == MOB_PROD) return a * b;
  }
  return op == MOB_REPLACE ? b : a;
}

template <typename T>
T random_element(std::mt19937_64& random) {
  if constexpr (std::is_integral_v<T>) {
    // Small values are often equal or 0, where logical operations differ.
    const auto bits = static_cast<T>(random());
    return random() % 3 == 0 ? static_cast<T>(bits & 1) : bits;
  } else if constexpr (kIsComplex<T>) {
    using Part = typename T::value_type;
    // Small whole numbers, so that products are exact whatever the order of the additions.
    return {static_cast<Part>(random() % 200) - 100, static_cast<Part>(random() % 200) - 100};
  } else {
    return static_cast<T>(random() % 2000) / 8 - 100;
  }
}

// Elements between guards, at an offset in bytes from an aligned address.
template <typename T>
class Elements {
 public:
  Elements(size_t count, size_t offset) : offset_(64 + offset), bytes_(count * sizeof(T)) {
    storage_.assign(offset_ + bytes_ + 64, char{0x5A});
  }
  void* data() { return storage_.data() + offset_; }
  T get(size_t i) const {
    T value;
    std::memcpy(&value, storage_.data() + offset_ + i * sizeof(T), sizeof(T));
    return value;
  }
  void set(size_t i, T value) {
    std::memcpy(storage_.data() + offset_ + i * sizeof(T), &value, sizeof(T));
  }
  bool guards_are_whole() const {
    const auto whole = [](char c) { return c == 0x5A; };
    return std::all_of(storage_.begin(), storage_.begin() + static_cast<ptrdiff_t>(offset_),
                       whole) &&
           std::all_of(storage_.end() - 64, storage_.end(), whole);
  }

 private:
  size_t offset_;
  size_t bytes_;
  std::vector<char> storage_;
};

template <typename T>
void check_kernel(Combine kernel, mob_op_t op, size_t count, bool scales, bool fetches,
                  std::mt19937_64& random) {
  Elements<T> target(count, 0);
  Elements<T> origin(count, random() % 2);
  Elements<T> fetched(count, random() % 2 * 3);
  std::vector<T> before(count);
  const T scale = random_element<T>(random);
  for (size_t i = 0; i < count; ++i) {
    before[i] = random_element<T>(random);
    target.set(i, before[i]);
    origin.set(i, random_element<T>(random));
  }
  Elements<T> factor(1, 1);
  factor.set(0, scale);
  kernel(one_row(target.data(), op == MOB_NO_OP ? nullptr : origin.data()), count,
         scales ? factor.data() : nullptr, fetches ? fetched.data() : nullptr);
  for (size_t i = 0; i < count; ++i) {
    const T addend = scales ? model(MOB_PROD, scale, origin.get(i)) : origin.get(i);
    ASSERT_EQ(target.get(i), model(op, before[i], addend)) << "element " << i << " of " << count;
    if (fetches) {
      ASSERT_EQ(fetched.get(i), before[i]) << "fetched " << i << " of " << count;
    }
  }
  ASSERT_TRUE(target.guards_are_whole());
  ASSERT_TRUE(fetched.guards_are_whole());
}

// Rows at any distance, ascending and descending, give the same as contiguous ones.
template <typename T>
void check_rows(Combine kernel, mob_op_t op, bool fetches, std::mt19937_64& random) {
  constexpr size_t kRows = 5;
  constexpr size_t kCount = 19;
  constexpr size_t kApart = 24;
  for (const bool downwards : {false, true}) {
    Elements<T> target(kRows * kApart, 0);
    Elements<T> expected(kRows * kApart, 0);
    Elements<T> origin(kRows * kCount, 1);
    Elements<T> fetched(kRows * kCount, 0);
    Elements<T> old(kRows * kCount, 0);
    for (size_t i = 0; i < kRows * kApart; ++i) {
      target.set(i, random_element<T>(random));
      expected.set(i, target.get(i));
    }
    for (size_t i = 0; i < kRows * kCount; ++i) origin.set(i, random_element<T>(random));
    const auto place = [&](Elements<T>& elements, size_t row) {
      return static_cast<char*>(elements.data()) +
             (downwards ? kRows - 1 - row : row) * kApart * sizeof(T);
    };
    const auto packed = [&](Elements<T>& elements, size_t row) {
      return static_cast<char*>(elements.data()) + row * kCount * sizeof(T);
    };
    const auto apart = static_cast<ptrdiff_t>(kApart * sizeof(T));
    kernel({.to = place(target, 0),
            .from = op == MOB_NO_OP ? nullptr : packed(origin, 0),
            .to_stride = downwards ? -apart : apart,
            .from_stride = static_cast<ptrdiff_t>(kCount * sizeof(T)),
            .count = kRows},
           kCount, nullptr, fetches ? fetched.data() : nullptr);
    for (size_t row = 0; row < kRows; ++row) {
      kernel(one_row(place(expected, row), op == MOB_NO_OP ? nullptr : packed(origin, row)), kCount,
             nullptr, fetches ? packed(old, row) : nullptr);
    }
    for (size_t i = 0; i < kRows * kApart; ++i) ASSERT_EQ(target.get(i), expected.get(i)) << i;
    for (size_t i = 0; fetches && i < kRows * kCount; ++i) {
      ASSERT_EQ(fetched.get(i), old.get(i)) << "fetched " << i;
    }
    ASSERT_TRUE(target.guards_are_whole());
    ASSERT_TRUE(fetched.guards_are_whole());
  }
}

template <typename T>
void check_type(mob_type_t type) {
  std::mt19937_64 random(20240611);
  EXPECT_EQ(mob_type_bytes(type), sizeof(T));
  std::vector<const Kernels*> sets = {&kBaseKernels, &kernels()};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) sets.push_back(&kAvx2Kernels);
#endif
  for (int number = 0; number < MOB_OP_COUNT; ++number) {
    const auto op = static_cast<mob_op_t>(number);
    std::vector<Combine> kernels_of_op;
    for (const Kernels* set : sets) kernels_of_op.push_back(set->combine[op][type]);
    const bool defined = mob_op_is_defined(op, type) != 0;
    EXPECT_EQ(plain_kernel(op, type) != nullptr, defined);
    EXPECT_EQ(atomic_kernel(op, type) != nullptr, defined && std::is_integral_v<T>);
    ElementOp found{};
    EXPECT_EQ(find_element_op(op, type, &found), defined);
    if (defined) {
      EXPECT_EQ(found.plain, plain_kernel(op, type));
      EXPECT_EQ(found.atomic, atomic_kernel(op, type));
      EXPECT_EQ(found.bytes, element_bytes(type));
      EXPECT_EQ(found.alignment, element_alignment(type));
    }
    if (!defined) continue;
    if (std::is_integral_v<T>) kernels_of_op.push_back(atomic_kernel(op, type));
    for (const Combine kernel : kernels_of_op) {
      for (const bool fetches : {false, true}) {
        check_rows<T>(kernel, op, fetches, random);
        if (testing::Test::HasFatalFailure()) return;
      }
      for (const size_t count : {0, 1, 2, 3, 7, 16, 31, 64, 129, 2500}) {
        for (const bool fetches : {false, true}) {
          SCOPED_TRACE(testing::Message() << "type " << type << ", operation " << op);
          check_kernel<T>(kernel, op, count, false, fetches, random);
          if (op == MOB_SUM) check_kernel<T>(kernel, op, count, true, fetches, random);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Element, EveryOperationOnEveryTypeIsAsDocumented) {
  check_type<int8_t>(MOB_INT8);
  check_type<int16_t>(MOB_INT16);
  check_type<int32_t>(MOB_INT32);
  check_type<int64_t>(MOB_INT64);
  check_type<uint8_t>(MOB_UINT8);
  check_type<uint16_t>(MOB_UINT16);
  check_type<uint32_t>(MOB_UINT32);
  check_type<uint64_t>(MOB_UINT64);
  check_type<float>(MOB_FLOAT);
  check_type<double>(MOB_DOUBLE);
  check_type<std::complex<float>>(MOB_COMPLEX_FLOAT);
  check_type<std::complex<double>>(MOB_COMPLEX_DOUBLE);
}

TEST(Element, WhichOperationsATypeHas) {
  for (int op = 0; op < MOB_OP_COUNT; ++op) {
    const bool any = op == MOB_SUM || op == MOB_PROD || op == MOB_REPLACE || op == MOB_NO_OP;
    const bool ordered = any || op == MOB_MIN || op == MOB_MAX;
    const auto operation = static_cast<mob_op_t>(op);
    EXPECT_EQ(mob_op_is_defined(operation, MOB_UINT16), 1);
    EXPECT_EQ(mob_op_is_defined(operation, MOB_DOUBLE), ordered ? 1 : 0);
    EXPECT_EQ(mob_op_is_defined(operation, MOB_COMPLEX_FLOAT), any ? 1 : 0);
  }
  EXPECT_EQ(mob_op_is_defined(static_cast<mob_op_t>(MOB_OP_COUNT), MOB_INT8), 0);
  EXPECT_EQ(mob_op_is_defined(static_cast<mob_op_t>(-1), MOB_INT8), 0);
  EXPECT_EQ(mob_op_is_defined(MOB_SUM, static_cast<mob_type_t>(MOB_TYPE_COUNT)), 0);
  EXPECT_EQ(mob_type_bytes(static_cast<mob_type_t>(MOB_TYPE_COUNT)), 0u);
  EXPECT_EQ(mob_type_bytes(static_cast<mob_type_t>(-1)), 0u);
}

TEST(Element, MinimumAndMaximumPreferNumbersToNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const mob_op_t op : {MOB_MIN, MOB_MAX}) {
    std::vector<double> target(20, nan);
    std::vector<double> origin(20, 3.0);
    plain_kernel(op, MOB_DOUBLE)(one_row(target.data(), origin.data()), 20, nullptr, nullptr);
    EXPECT_EQ(target, origin);
    std::vector<double> nans(20, nan);
    plain_kernel(op, MOB_DOUBLE)(one_row(target.data(), nans.data()), 20, nullptr, nullptr);
    EXPECT_EQ(target, origin);
    plain_kernel(op, MOB_DOUBLE)(one_row(nans.data(), nans.data()), 20, nullptr, nullptr);
    EXPECT_TRUE(std::isnan(nans[7]));
  }
}

TEST(Element, OriginMayBeTheTarget) {
  std::vector<double> values(1000, 1.5);
  plain_kernel(MOB_SUM, MOB_DOUBLE)(one_row(values.data(), values.data()), 1000, nullptr, nullptr);
  EXPECT_EQ(values, std::vector<double>(1000, 3.0));
}

template <typename T>
void check_concurrent_sums(mob_type_t type) {
  constexpr size_t kElements = 40;
  constexpr int kRounds = 3000;
  constexpr int kThreads = 4;
  std::vector<T> target(kElements, 0);
  std::vector<T> ones(kElements, 1);
  // PROD by 1 is a compare-and-swap loop, which must not lose the other threads' sums.
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      const Combine sum = atomic_kernel(MOB_SUM, type);
      const Combine product = atomic_kernel(MOB_PROD, type);
      for (int round = 0; round < kRounds; ++round) {
        sum(one_row(target.data(), ones.data()), kElements, nullptr, nullptr);
        if (thread % 2 == 0)
          product(one_row(target.data(), ones.data()), kElements, nullptr, nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(target, std::vector<T>(kElements, static_cast<T>(kRounds * kThreads)));
}

TEST(Element, ConcurrentIntegerSumsLoseNothing) {
  check_concurrent_sums<int8_t>(MOB_INT8);
  check_concurrent_sums<int16_t>(MOB_INT16);
  check_concurrent_sums<int32_t>(MOB_INT32);
  check_concurrent_sums<int64_t>(MOB_INT64);
  check_concurrent_sums<uint8_t>(MOB_UINT8);
  check_concurrent_sums<uint16_t>(MOB_UINT16);
  check_concurrent_sums<uint32_t>(MOB_UINT32);
  check_concurrent_sums<uint64_t>(MOB_UINT64);
}

TEST(Element, ConcurrentFetchesSeeEveryValueOnce) {
  constexpr int kRounds = 5000;
  uint64_t counter = 0;
  std::vector<uint64_t> seen[2];
  std::vector<std::thread> threads;
  for (std::vector<uint64_t>& mine : seen) {
    threads.emplace_back([&counter, &mine] {
      const Combine sum = atomic_kernel(MOB_SUM, MOB_UINT64);
      const uint64_t one = 1;
      for (int round = 0; round < kRounds; ++round) {
        uint64_t old;
        sum(one_row(&counter, &one), 1, nullptr, &old);
        mine.push_back(old);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> all = seen[0];
  all.insert(all.end(), seen[1].begin(), seen[1].end());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
}

}  // namespace
}  // namespace mobius::transport
