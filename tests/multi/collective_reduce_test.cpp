// SPDX-License-Identifier: BSD-3-Clause

// Reductions and scans, compared with the same operations made in rank order by one process.

#include <algorithm>
#include <complex>
#include <utility>

#include "team_fixture.h"

using mobius_test::Teams;
using mobius_test::TestTeam;

namespace {

template <typename T>
struct IsComplex : std::false_type {};
template <typename T>
struct IsComplex<std::complex<T>> : std::true_type {};

// The operations of include/mobius/types.h, in the simplest form.
template <typename T>
T model(mob_op_t op, T a, T b) {
  if (op == MOB_REPLACE) return b;
  if (op == MOB_NO_OP) return a;
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a);
    const auto y = static_cast<uint64_t>(b);
    switch (op) {
      case MOB_SUM:
        return static_cast<T>(x + y);
      case MOB_PROD:
        return static_cast<T>(x * y);
      case MOB_LAND:
        return static_cast<T>(a != 0 && b != 0);
      case MOB_LOR:
        return static_cast<T>(a != 0 || b != 0);
      case MOB_LXOR:
        return static_cast<T>((a != 0) != (b != 0));
      case MOB_BAND:
        return static_cast<T>(x & y);
      case MOB_BOR:
        return static_cast<T>(x | y);
      case MOB_BXOR:
        return static_cast<T>(x ^ y);
      default:
        return op == MOB_MIN ? std::min(a, b) : std::max(a, b);
    }
  } else {
    if (op == MOB_SUM) return a + b;
    if (op == MOB_PROD) return a * b;
    if constexpr (!IsComplex<T>::value) return op == MOB_MIN ? std::min(a, b) : std::max(a, b);
  }
  return a;
}

// Small whole numbers, whose results are exact in every type.
template <typename T>
std::vector<T> values_of(mob_rank_t rank, size_t count, unsigned seed) {
  unsigned state = seed * 1000 + static_cast<unsigned>(rank);
  const auto random = [&state] { return (state = state * 1664525u + 1013904223u) >> 16; };
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (IsComplex<T>::value) {
      using Real = typename T::value_type;
      const auto real = static_cast<Real>(random() % 3);
      value = T(real, static_cast<Real>(random() % 2));
    } else {
      value = static_cast<T>(random() % 4);
    }
  }
  return values;
}

template <typename T>
std::vector<T> model_up_to(mob_op_t op, mob_rank_t last, size_t count, unsigned seed) {
  std::vector<T> result = values_of<T>(0, count, seed);
  for (mob_rank_t r = 1; r <= last; ++r) {
    const std::vector<T> next = values_of<T>(r, count, seed);
    for (size_t i = 0; i < count; ++i) result[i] = model(op, result[i], next[i]);
  }
  return result;
}

template <typename T>
void check_all_calls(const TestTeam& team, mob_op_t op, mob_type_t type, size_t count,
                     unsigned seed) {
  SCOPED_TRACE(team.name + ", operation " + std::to_string(op) + ", type " + std::to_string(type) +
               ", count " + std::to_string(count));
  const std::vector<T> in = values_of<T>(team.rank, count, seed);
  const std::vector<T> all = model_up_to<T>(op, team.size - 1, count, seed);
  const std::vector<T> untouched(count, T(77));
  std::vector<T> out(count);
  EXPECT_EQ(mob_allreduce(team.handle, op, type, in.data(), out.data(), count), MOB_OK)
      << mob_last_error();
  EXPECT_EQ(out, all) << "allreduce";
  out = in;
  EXPECT_EQ(mob_allreduce(team.handle, op, type, out.data(), out.data(), count), MOB_OK);
  EXPECT_EQ(out, all) << "allreduce in place";
  const auto root = static_cast<mob_rank_t>(seed) % team.size;
  out = untouched;
  EXPECT_EQ(mob_reduce(team.handle, root, op, type, in.data(), out.data(), count), MOB_OK);
  EXPECT_EQ(out, team.rank == root ? all : untouched) << "reduce";
  out = in;
  EXPECT_EQ(mob_reduce(team.handle, root, op, type, out.data(), out.data(), count), MOB_OK);
  EXPECT_EQ(out, team.rank == root ? all : in) << "reduce in place";
  out = in;
  EXPECT_EQ(mob_scan(team.handle, op, type, out.data(), out.data(), count), MOB_OK);
  EXPECT_EQ(out, model_up_to<T>(op, team.rank, count, seed)) << "scan in place";
  out = untouched;
  EXPECT_EQ(mob_exscan(team.handle, op, type, in.data(), out.data(), count), MOB_OK);
  EXPECT_EQ(out, team.rank == 0 ? untouched : model_up_to<T>(op, team.rank - 1, count, seed))
      << "exscan";
}

template <typename T>
void check_type(const Teams& teams, mob_type_t type) {
  for (int op = 0; op < MOB_OP_COUNT; ++op) {
    if (mob_op_is_defined(static_cast<mob_op_t>(op), type) == 0) continue;
    for (const TestTeam& team : teams) {
      unsigned seed = static_cast<unsigned>(team.kind * 100 + op);
      for (const size_t count : {0, 1, 7, 64, 700}) {
        // One count for each path.
        if (!mobius_test::takes_all() && count != 7 && count != 700) continue;
        check_all_calls<T>(team, static_cast<mob_op_t>(op), type, count, ++seed);
      }
    }
  }
}

// 2 × 2 matrices of numbers that wrap: associative, and the result depends on the order.
struct Matrix {
  uint32_t at[4];
  bool operator==(const Matrix&) const = default;
};

Matrix product(const Matrix& a, const Matrix& b) {
  return {{a.at[0] * b.at[0] + a.at[1] * b.at[2], a.at[0] * b.at[1] + a.at[1] * b.at[3],
           a.at[2] * b.at[0] + a.at[3] * b.at[2], a.at[2] * b.at[1] + a.at[3] * b.at[3]}};
}

void multiply(void* accumulated, const void* in, size_t count, void* calls) {
  auto* left = static_cast<Matrix*>(accumulated);
  const auto* right = static_cast<const Matrix*>(in);
  for (size_t i = 0; i < count; ++i) left[i] = product(left[i], right[i]);
  ++*static_cast<int*>(calls);
}

Matrix matrix_of(mob_rank_t rank, size_t i) {
  const auto r = static_cast<uint32_t>(rank);
  const auto k = static_cast<uint32_t>(i);
  return {{r + 1, k + 2, 3 * r + k, 5}};
}

std::vector<Matrix> matrices_up_to(mob_rank_t last, size_t count) {
  std::vector<Matrix> result(count);
  for (size_t i = 0; i < count; ++i) {
    result[i] = matrix_of(0, i);
    for (mob_rank_t r = 1; r <= last; ++r) result[i] = product(result[i], matrix_of(r, i));
  }
  return result;
}

// Pairs of numbers that are added, and the number of pairs that lacked the promised alignment.
struct Pair {
  uint64_t at[2];
  bool operator==(const Pair&) const = default;
};

void add_pairs(void* accumulated, const void* in, size_t count, void* misaligned) {
  for (const void* each : {const_cast<const void*>(accumulated), in}) {
    if (reinterpret_cast<uintptr_t>(each) % 16 != 0) ++*static_cast<int*>(misaligned);
  }
  auto* sum = static_cast<Pair*>(accumulated);
  const auto* next = static_cast<const Pair*>(in);
  for (size_t i = 0; i < count; ++i) {
    sum[i].at[0] += next[i].at[0];
    sum[i].at[1] += 3 * next[i].at[1];
  }
}

// Elements too large for any buffer: the last writer's mark and the sum of all.
constexpr size_t kLargeElement = 40'000;
void add_large(void* accumulated, const void* in, size_t count, void*) {
  auto* sum = static_cast<unsigned char*>(accumulated);
  const auto* next = static_cast<const unsigned char*>(in);
  for (size_t i = 0; i < count * kLargeElement; ++i) {
    sum[i] = static_cast<unsigned char>(sum[i] * 3 + next[i]);
  }
}

}  // namespace

TEST(Reduce, EveryOperationOnEveryType) {
  const Teams teams;
  check_type<int8_t>(teams, MOB_INT8);
  check_type<int16_t>(teams, MOB_INT16);
  check_type<int32_t>(teams, MOB_INT32);
  check_type<int64_t>(teams, MOB_INT64);
  check_type<uint8_t>(teams, MOB_UINT8);
  check_type<uint16_t>(teams, MOB_UINT16);
  check_type<uint32_t>(teams, MOB_UINT32);
  check_type<uint64_t>(teams, MOB_UINT64);
  check_type<float>(teams, MOB_FLOAT);
  check_type<double>(teams, MOB_DOUBLE);
  check_type<std::complex<float>>(teams, MOB_COMPLEX_FLOAT);
  check_type<std::complex<double>>(teams, MOB_COMPLEX_DOUBLE);
}

TEST(Reduce, EverySize) {
  const Teams teams;
  for (const TestTeam& team : teams) {
    auto seed = static_cast<unsigned>(team.kind);
    for (const size_t bytes :
         {1, 7, 56, 57, 64, 4096, 20'000, 30'720, 30'721, 100'000, (1 << 20) + 3}) {
      if (bytes > 100'000 && !mobius_test::takes_all()) continue;
      check_all_calls<uint8_t>(team, MOB_SUM, MOB_UINT8, bytes, ++seed);
      check_all_calls<double>(team, MOB_SUM, MOB_DOUBLE, bytes / sizeof(double), ++seed);
    }
  }
}

// Where the other members reach the buffers by pointers, results overwrite the values.
TEST(Reduce, InPlaceInSharedMemory) {
  constexpr size_t kCount = 50'000;
  const mobius_test::Shared memory(kCount * sizeof(uint32_t));
  const Teams teams;
  for (const TestTeam& team : teams) {
    SCOPED_TRACE(team.name);
    const auto seed = static_cast<unsigned>(team.kind);
    auto* values = reinterpret_cast<uint32_t*>(memory.local());
    const std::vector<uint32_t> own = values_of<uint32_t>(team.rank, kCount, seed);
    const auto expect = [&](const std::vector<uint32_t>& wanted, const char* call) {
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), values)) << call;
      std::copy(own.begin(), own.end(), values);
    };
    expect(std::vector<uint32_t>(values, values + kCount), "nothing yet");
    EXPECT_EQ(mob_allreduce(team.handle, MOB_SUM, MOB_UINT32, values, values, kCount), MOB_OK);
    expect(model_up_to<uint32_t>(MOB_SUM, team.size - 1, kCount, seed), "allreduce");
    EXPECT_EQ(mob_scan(team.handle, MOB_SUM, MOB_UINT32, values, values, kCount), MOB_OK);
    expect(model_up_to<uint32_t>(MOB_SUM, team.rank, kCount, seed), "scan");
    EXPECT_EQ(mob_exscan(team.handle, MOB_SUM, MOB_UINT32, values, values, kCount), MOB_OK);
    expect(team.rank == 0 ? own : model_up_to<uint32_t>(MOB_SUM, team.rank - 1, kCount, seed),
           "exscan");
    EXPECT_EQ(mob_reduce(team.handle, 0, MOB_SUM, MOB_UINT32, values, values, kCount), MOB_OK);
    expect(team.rank == 0 ? model_up_to<uint32_t>(MOB_SUM, team.size - 1, kCount, seed) : own,
           "reduce");
  }
  mobius_test::barrier();
}

// Floating-point sums depend on the order: it is the documented one at every size.
TEST(Reduce, SumsInRankOrderBitForBit) {
  const auto value = [](mob_rank_t rank, size_t i) {
    return static_cast<float>(i % 7 + 1) / static_cast<float>(3 + rank * 11);
  };
  for (const size_t count : {1, 100, 5000, 100'000}) {
    std::vector<float> in(count);
    std::vector<float> expected(count);
    for (size_t i = 0; i < count; ++i) {
      in[i] = value(mob_rank(), i);
      expected[i] = value(0, i);
      for (mob_rank_t r = 1; r < mob_size(); ++r) expected[i] += value(r, i);
    }
    std::vector<float> out(count);
    EXPECT_EQ(mob_allreduce(MOB_TEAM_WORLD, MOB_SUM, MOB_FLOAT, in.data(), out.data(), count),
              MOB_OK);
    EXPECT_EQ(std::memcmp(out.data(), expected.data(), count * sizeof(float)), 0) << count;
  }
}

TEST(Reduce, OperationsOfTheUserKeepTheOrder) {
  int calls = 0;
  const mob_user_op_t op = {&multiply, &calls, sizeof(Matrix), 0};
  const Teams teams;
  for (const TestTeam& team : teams) {
    for (const size_t count : {0, 1, 7, 8, 300, 2000, 10'000}) {
      SCOPED_TRACE(team.name + ", count " + std::to_string(count));
      std::vector<Matrix> in(count);
      for (size_t i = 0; i < count; ++i) in[i] = matrix_of(team.rank, i);
      const std::vector<Matrix> all = matrices_up_to(team.size - 1, count);
      const std::vector<Matrix> untouched(count, Matrix{{9, 9, 9, 9}});
      for (mob_rank_t root = 0; root < team.size; ++root) {
        std::vector<Matrix> out = untouched;
        EXPECT_EQ(mob_reduce_user(team.handle, root, &op, in.data(), out.data(), count), MOB_OK);
        EXPECT_EQ(out, team.rank == root ? all : untouched);
      }
      std::vector<Matrix> out = in;
      EXPECT_EQ(mob_allreduce_user(team.handle, &op, out.data(), out.data(), count), MOB_OK);
      EXPECT_EQ(out, all);
      EXPECT_EQ(mob_scan_user(team.handle, &op, in.data(), out.data(), count), MOB_OK);
      EXPECT_EQ(out, matrices_up_to(team.rank, count));
      out = untouched;
      EXPECT_EQ(mob_exscan_user(team.handle, &op, in.data(), out.data(), count), MOB_OK);
      EXPECT_EQ(out, team.rank == 0 ? untouched : matrices_up_to(team.rank - 1, count));
    }
  }
  EXPECT_TRUE(calls > 0 || mob_size() == 1);
}

// Even in memory of the caller that is not aligned.
TEST(Reduce, OperationsOfTheUserGetAlignedElements) {
  constexpr size_t kMost = 20'000;
  const mob_rank_t me = mob_rank();
  const mob_rank_t size = mob_size();
  const mobius_test::Shared memory(2 * kMost * sizeof(Pair) + 64);
  std::vector<unsigned char> own(2 * kMost * sizeof(Pair) + 64);
  const auto pair_of = [](mob_rank_t rank, size_t i) {
    return Pair{{i + static_cast<uint64_t>(rank), 7 * static_cast<uint64_t>(rank) + 1}};
  };
  const auto up_to = [&](mob_rank_t last, size_t i) {
    Pair sum = pair_of(0, i);
    for (mob_rank_t r = 1; r <= last; ++r) {
      sum.at[0] += pair_of(r, i).at[0];
      sum.at[1] += 3 * pair_of(r, i).at[1];
    }
    return sum;
  };
  int misaligned = 0;
  const mob_user_op_t op = {add_pairs, &misaligned, sizeof(Pair), 0};
  int wrong = 0;
  for (unsigned char* start : {memory.local() + 8, own.data() + 8, own.data()}) {
    auto* in = reinterpret_cast<Pair*>(start);
    Pair* out = in + kMost;
    for (const size_t count : {size_t{1}, size_t{3}, size_t{20}, size_t{400}, kMost}) {
      const auto fill = [&](Pair* to) {
        for (size_t i = 0; i < count; ++i) to[i] = pair_of(me, i);
      };
      const auto check = [&](mob_status_t status, const Pair* got, mob_rank_t last) {
        wrong += status != MOB_OK;
        for (size_t i = 0; last >= 0 && i < count; ++i) wrong += !(got[i] == up_to(last, i));
      };
      fill(in);
      check(mob_allreduce_user(MOB_TEAM_WORLD, &op, in, out, count), out, size - 1);
      check(mob_scan_user(MOB_TEAM_WORLD, &op, in, out, count), out, me);
      check(mob_allreduce_user(MOB_TEAM_WORLD, &op, in, in, count), in, size - 1);
      fill(in);
      check(mob_scan_user(MOB_TEAM_WORLD, &op, in, in, count), in, me);
      for (const mob_rank_t root : {0, size - 1}) {
        const mob_rank_t last = me == root ? size - 1 : -1;
        fill(in);
        check(mob_reduce_user(MOB_TEAM_WORLD, root, &op, in, out, count), out, last);
        check(mob_reduce_user(MOB_TEAM_WORLD, root, &op, in, in, count), in, last);
      }
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(misaligned, 0);
  mobius_test::barrier();
}

TEST(Reduce, ElementsLargerThanAnyBuffer) {
  const mob_user_op_t op = {&add_large, nullptr, kLargeElement, 0};
  constexpr size_t kCount = 3;
  const auto data = [](mob_rank_t rank) {
    return mobius_test::patterned(kCount * kLargeElement, rank, 5);
  };
  const auto model = [&](mob_rank_t last) {
    std::vector<unsigned char> result = data(0);
    for (mob_rank_t r = 1; r <= last; ++r)
      add_large(result.data(), data(r).data(), kCount, nullptr);
    return result;
  };
  const std::vector<unsigned char> in = data(mob_rank());
  std::vector<unsigned char> out = in;
  EXPECT_EQ(mob_allreduce_user(MOB_TEAM_WORLD, &op, out.data(), out.data(), kCount), MOB_OK);
  EXPECT_EQ(out, model(mob_size() - 1));
  EXPECT_EQ(mob_scan_user(MOB_TEAM_WORLD, &op, in.data(), out.data(), kCount), MOB_OK);
  EXPECT_EQ(out, model(mob_rank()));
}
