// SPDX-License-Identifier: BSD-3-Clause
#include <complex>
#include <cstring>
#include <numeric>

#include "fixture.h"

namespace {

using namespace armci_test;  // NOLINT(google-build-using-namespace)

class Sizes : public testing::TestWithParam<int> {};

TEST_P(Sizes, PutAndGet) {
  const int bytes = GetParam();
  const auto size = static_cast<size_t>(bytes);
  Shared<char> memory(size + 1);
  std::vector<char> out(size + 1);
  std::vector<char> in(size + 1, 'x');
  for (size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i * 7 + static_cast<size_t>(me()));
  EXPECT_EQ(ARMCI_Put(out.data(), memory.at(right()), bytes, right()), 0);
  // The caller's own put is visible.
  EXPECT_EQ(ARMCI_Get(memory.at(right()), in.data(), bytes, right()), 0);
  EXPECT_EQ(std::memcmp(in.data(), out.data(), size), 0);
  EXPECT_EQ(in[size], 'x');
  ARMCI_Fence(right());
  ARMCI_Barrier();
  for (size_t i = 0; i < size; ++i) {
    ASSERT_EQ(memory.mine()[i], static_cast<char>(i * 7 + static_cast<size_t>(left())));
  }
  EXPECT_EQ(memory.mine()[size], 0);
}

TEST_P(Sizes, HandlesAndNone) {
  const int bytes = GetParam();
  const auto size = static_cast<size_t>(bytes);
  Shared<char> memory(3 * size + 1);
  std::vector<char> out(3 * size, static_cast<char>('a' + me()));
  std::vector<char> in(3 * size);
  armci_hdl_t handle;
  ARMCI_INIT_HANDLE(&handle);
  EXPECT_EQ(ARMCI_NbPut(out.data(), memory.at(right()), bytes, right(), &handle), 0);
  EXPECT_EQ(ARMCI_Wait(&handle), 0);
  EXPECT_EQ(ARMCI_Wait(&handle), 0);  // no operation is left to wait for
  ARMCI_SET_AGGREGATE_HANDLE(&handle);
  EXPECT_EQ(ARMCI_NbPut(out.data(), memory.at(right()) + size, bytes, right(), &handle), 0);
  EXPECT_EQ(ARMCI_NbGet(memory.at(right()), in.data(), bytes, right(), &handle), 0);
  EXPECT_EQ(ARMCI_Wait(&handle), 0);
  ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
  EXPECT_EQ(ARMCI_NbPut(out.data(), memory.at(right()) + 2 * size, bytes, right(), nullptr), 0);
  EXPECT_EQ(ARMCI_WaitProc(right()), 0);
  EXPECT_EQ(ARMCI_WaitAll(), 0);
  ARMCI_AllFence();
  EXPECT_EQ(ARMCI_NbGet(memory.at(right()), in.data(), 3 * bytes, right(), &handle), 0);
  while (ARMCI_Test(&handle) != 0) {
  }
  EXPECT_EQ(in, out);
  ARMCI_Barrier();
  for (size_t i = 0; i < 3 * size; ++i) {
    ASSERT_EQ(memory.mine()[i], static_cast<char>('a' + left()));
  }
}

TEST(Transfer, AHandleThatCollectsManyFromAll) {
  constexpr int kEach = 700;
  Shared<long> memory(kEach + 1);
  for (int i = 0; i < kEach; ++i) memory.mine()[i] = 1000L * me() + i;
  memory.mine()[kEach] = 0;
  ARMCI_Barrier();
  std::vector<long> in(static_cast<size_t>(kEach * procs()), -1);
  long one = 1;
  armci_hdl_t handle;
  ARMCI_INIT_HANDLE(&handle);
  ARMCI_SET_AGGREGATE_HANDLE(&handle);
  for (int i = 0; i < kEach; ++i) {
    for (int proc = 0; proc < procs(); ++proc) {
      ARMCI_NbGet(memory.at(proc) + i, &in[static_cast<size_t>(proc * kEach + i)], sizeof(long),
                  proc, &handle);
    }
  }
  for (int proc = 0; proc < procs(); ++proc) {
    ARMCI_NbAcc(ARMCI_ACC_LNG, &one, &one, memory.at(proc) + kEach, sizeof one, proc, &handle);
  }
  while (ARMCI_Test(&handle) != 0) {
  }
  EXPECT_EQ(ARMCI_Wait(&handle), 0);
  for (int proc = 0; proc < procs(); ++proc) {
    for (int i = 0; i < kEach; ++i) {
      ASSERT_EQ(in[static_cast<size_t>(proc * kEach + i)], 1000L * proc + i);
    }
  }
  ARMCI_NbGet(memory.at(right()), in.data(), sizeof(long), right(), &handle);
  EXPECT_EQ(ARMCI_WaitProc(right()), 0);
  EXPECT_EQ(in[0], 1000L * right());
  ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
  ARMCI_Barrier();
  EXPECT_EQ(memory.mine()[kEach], procs());
}

INSTANTIATE_TEST_SUITE_P(Transfer, Sizes, testing::Values(0, 1, 2, 4, 8, 13, 4096, 300001));

TEST(Transfer, Values) {
  struct Values {
    int i;
    long l;
    float f;
    double d;
  };
  Shared<Values> memory(2);
  Values* there = memory.at(right());
  armci_hdl_t handle;
  ARMCI_INIT_HANDLE(&handle);
  ARMCI_PutValueInt(-5, &there[0].i, right());
  ARMCI_PutValueLong(-6L << 40, &there[0].l, right());
  ARMCI_PutValueFloat(1.5F, &there[0].f, right());
  ARMCI_PutValueDouble(0.1, &there[0].d, right());
  ARMCI_NbPutValueInt(5, &there[1].i, right(), &handle);
  ARMCI_Wait(&handle);
  ARMCI_NbPutValueLong(6, &there[1].l, right(), &handle);
  ARMCI_NbPutValueFloat(-1.5F, &there[1].f, right(), nullptr);
  ARMCI_NbPutValueDouble(-0.1, &there[1].d, right(), nullptr);
  ARMCI_Barrier();
  EXPECT_EQ(memory.mine()[0].i, -5);
  EXPECT_EQ(memory.mine()[0].l, -6L << 40);
  EXPECT_EQ(ARMCI_GetValueFloat(&there[0].f, right()), 1.5F);
  EXPECT_EQ(ARMCI_GetValueDouble(&there[0].d, right()), 0.1);
  EXPECT_EQ(ARMCI_GetValueInt(&there[1].i, right()), 5);
  EXPECT_EQ(ARMCI_GetValueLong(&there[1].l, right()), 6);
  EXPECT_EQ(memory.mine()[1].f, -1.5F);
  EXPECT_EQ(memory.mine()[1].d, -0.1);
}

// Every process adds scale times (1 … n) to process 0, blocking, as one strided box, and by
// segments.
template <typename T>
void expect_sums(int type, T scale) {
  constexpr int kCount = 100;
  Shared<T> memory(5 * kCount);
  std::vector<T> values(kCount);
  for (int i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = T(i + 1);
  const int bytes = kCount * static_cast<int>(sizeof(T));
  T* there = memory.at(0);
  EXPECT_EQ(ARMCI_Acc(type, &scale, values.data(), there, bytes, 0), 0);
  armci_hdl_t handle;
  ARMCI_INIT_HANDLE(&handle);
  EXPECT_EQ(ARMCI_NbAcc(type, &scale, values.data(), there + kCount, bytes, 0, &handle), 0);
  EXPECT_EQ(ARMCI_Wait(&handle), 0);
  int stride = bytes / 10;
  int count[] = {bytes / 10, 10};
  EXPECT_EQ(
      ARMCI_AccS(type, &scale, values.data(), &stride, there + 2 * kCount, &stride, count, 1, 0),
      0);
  EXPECT_EQ(ARMCI_NbAccS(type, &scale, values.data(), &stride, there + 3 * kCount, &stride, count,
                         1, 0, &handle),
            0);
  void* from[] = {values.data(), values.data() + kCount / 2};
  void* to[] = {there + 4 * kCount, there + 4 * kCount + kCount / 2};
  armci_giov_t segments{from, to, bytes / 2, 2};
  EXPECT_EQ(ARMCI_AccV(type, &scale, &segments, 1, 0), 0);
  EXPECT_EQ(ARMCI_NbAccV(type, &scale, &segments, 1, 0, nullptr), 0);
  ARMCI_WaitAll();
  ARMCI_Barrier();
  if (me() != 0) return;
  for (int i = 0; i < 5 * kCount; ++i) {
    const int times = i < 4 * kCount ? procs() : 2 * procs();
    ASSERT_EQ(memory.mine()[i], T(times) * scale * T(i % kCount + 1)) << "at " << i;
  }
}

TEST(Accumulate, AllTypes) {
  expect_sums<int>(ARMCI_ACC_INT, 3);
  expect_sums<long>(ARMCI_ACC_LNG, -3);
  expect_sums<float>(ARMCI_ACC_FLT, 0.5F);
  expect_sums<double>(ARMCI_ACC_DBL, 1.0);
  expect_sums<std::complex<float>>(ARMCI_ACC_CPL, {0, 2});
  expect_sums<std::complex<double>>(ARMCI_ACC_DCP, {1, -1});
}

TEST(Accumulate, ASegmentMayComeTwice) {
  Shared<double> memory(1);
  double values[] = {1, 10};
  double scale = 2;
  void* from[] = {&values[0], &values[1]};
  void* to[] = {memory.at(right()), memory.at(right())};
  armci_giov_t segments{from, to, sizeof(double), 2};
  EXPECT_EQ(ARMCI_AccV(ARMCI_ACC_DBL, &scale, &segments, 1, right()), 0);
  ARMCI_Barrier();
  EXPECT_EQ(memory.mine()[0], 22);
}

// A box with the largest number of levels, each with two repetitions, in memory where every second
// place is unused.
class Levels : public testing::TestWithParam<int> {};

TEST_P(Levels, PutAndGet) {
  const int levels = GetParam();
  const size_t runs = size_t{1} << levels;
  Shared<int> memory(2 * runs);
  std::vector<int> values(runs);
  std::iota(values.begin(), values.end(), 1000 * me() + 1);
  std::vector<int> dense;
  std::vector<int> sparse;
  std::vector<int> count{sizeof(int)};
  for (int level = 0; level < levels; ++level) {
    dense.push_back(static_cast<int>(sizeof(int)) << level);
    sparse.push_back(static_cast<int>(2 * sizeof(int)) << level);
    count.push_back(2);
  }
  std::vector<int> back(runs);
  armci_hdl_t handle;
  ARMCI_INIT_HANDLE(&handle);
  EXPECT_EQ(ARMCI_PutS(values.data(), dense.data(), memory.at(right()), sparse.data(), count.data(),
                       levels, right()),
            0);
  EXPECT_EQ(ARMCI_GetS(memory.at(right()), sparse.data(), back.data(), dense.data(), count.data(),
                       levels, right()),
            0);
  EXPECT_EQ(back, values);
  back.assign(runs, 0);
  EXPECT_EQ(ARMCI_NbPutS(values.data(), dense.data(), memory.at(right()), sparse.data(),
                         count.data(), levels, right(), &handle),
            0);
  EXPECT_EQ(ARMCI_Wait(&handle), 0);
  EXPECT_EQ(ARMCI_NbGetS(memory.at(right()), sparse.data(), back.data(), dense.data(), count.data(),
                         levels, right(), &handle),
            0);
  EXPECT_EQ(ARMCI_Wait(&handle), 0);
  EXPECT_EQ(back, values);
  ARMCI_Barrier();
  for (size_t i = 0; i < runs; ++i) {
    ASSERT_EQ(memory.mine()[2 * i], 1000 * left() + 1 + static_cast<int>(i));
    ASSERT_EQ(memory.mine()[2 * i + 1], 0);
  }
  std::vector<char> packed(runs * sizeof(int));
  armci_write_strided(memory.mine(), levels, sparse.data(), count.data(), packed.data());
  std::vector<int> unpacked(2 * runs);
  armci_read_strided(unpacked.data(), levels, sparse.data(), count.data(), packed.data());
  EXPECT_EQ(std::memcmp(unpacked.data(), memory.mine(), 2 * runs * sizeof(int)), 0);
}

INSTANTIATE_TEST_SUITE_P(Strided, Levels, testing::Range(0, ARMCI_MAX_STRIDE_LEVEL + 1));

TEST(Strided, LevelsThatDoNotRepeatAndNothingAtAll) {
  Shared<char> memory(64);
  char value[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  int stride[] = {0, -5, 7};
  int once[] = {8, 1, 1, 1};
  EXPECT_EQ(ARMCI_PutS(value, stride, memory.at(right()), stride, once, 3, right()), 0);
  int nothing[] = {8, 3, 0, 1};
  EXPECT_EQ(ARMCI_PutS(value, stride, memory.at(right()) + 8, stride, nothing, 3, right()), 0);
  ARMCI_Barrier();
  EXPECT_EQ(std::memcmp(memory.mine(), value, 8), 0);
  EXPECT_EQ(memory.mine()[8], 0);
}

TEST(Vectors, PutAndGet) {
  Shared<int> memory(8);
  int values[4] = {me(), me() + 1, me() + 2, me() + 3};
  int back[4] = {};
  int* there = memory.at(right());
  void* here[] = {&values[0], &values[1], &values[2], &values[3]};
  void* remote[] = {&there[6], &there[4], &there[2], &there[0]};
  void* returned[] = {&back[0], &back[1], &back[2], &back[3]};
  armci_giov_t put[] = {{here, remote, sizeof(int), 2}, {here + 2, remote + 2, sizeof(int), 2}};
  armci_giov_t get[] = {{remote, returned, sizeof(int), 3}, {remote + 3, returned + 3, 4, 1}};
  armci_hdl_t handle;
  ARMCI_INIT_HANDLE(&handle);
  EXPECT_EQ(ARMCI_PutV(put, 2, right()), 0);
  EXPECT_EQ(ARMCI_GetV(get, 2, right()), 0);
  EXPECT_EQ(std::memcmp(back, values, sizeof values), 0);
  std::memset(back, 0, sizeof back);
  EXPECT_EQ(ARMCI_NbPutV(put, 2, right(), &handle), 0);
  EXPECT_EQ(ARMCI_Wait(&handle), 0);
  EXPECT_EQ(ARMCI_NbGetV(get, 2, right(), &handle), 0);
  EXPECT_EQ(ARMCI_Wait(&handle), 0);
  EXPECT_EQ(std::memcmp(back, values, sizeof values), 0);
  ARMCI_Barrier();
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(memory.mine()[2 * i], left() + 3 - i);
    EXPECT_EQ(memory.mine()[2 * i + 1], 0);
  }
}

TEST(Flags, DataIsThereBeforeTheFlag) {
  constexpr int kCount = 1000;
  Shared<int> memory(kCount + 3);
  std::vector<int> values(kCount);
  int stride = kCount / 10 * static_cast<int>(sizeof(int));
  int count[] = {stride, 10};
  for (int round = 1; round <= 3; ++round) {
    values.assign(kCount, 10 * me() + round);
    int* there = memory.at(right());
    int* flag = there + kCount + round - 1;
    if (round == 1) {
      ARMCI_Put_flag(values.data(), there, kCount * static_cast<int>(sizeof(int)), flag, 7,
                     right());
    } else if (round == 2) {
      ARMCI_PutS_flag(values.data(), &stride, there, &stride, count, 1, flag, 7, right());
    } else {
      ARMCI_PutS_flag_dir(values.data(), &stride, there, &stride, count, 1, flag, 7, right());
    }
    while (ARMCI_GetValueInt(memory.mine() + kCount + round - 1, me()) != 7) {
    }
    for (int i = 0; i < kCount; ++i) ASSERT_EQ(memory.mine()[i], 10 * left() + round);
    ARMCI_Barrier();
  }
}

TEST(Rmw, CountsAndSwaps) {
  struct Words {
    int i;
    long l;
  };
  Shared<Words> memory(1);
  Words* there = memory.at(0);
  constexpr int kTimes = 1000;
  long sum = 0;
  for (int i = 0; i < kTimes; ++i) {
    int old = -1;
    long old_long = -1;
    EXPECT_EQ(ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &old, &there->i, 2, 0), 0);
    EXPECT_EQ(ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old_long, &there->l, -3, 0), 0);
    EXPECT_EQ(old % 2, 0);
    sum += old / 2;
  }
  ARMCI_Barrier();
  const long all = long{kTimes} * procs();
  EXPECT_EQ(ARMCI_GetValueInt(&there->i, 0), 2 * all);
  EXPECT_EQ(ARMCI_GetValueLong(&there->l, 0), -3 * all);
  armci_msg_lgop(&sum, 1, const_cast<char*>("+"));
  EXPECT_EQ(sum, all * (all - 1) / 2);  // each number was handed out once
  ARMCI_Barrier();
  // The values that processes swap in come out again, except one.
  int token = me() + 100;
  long long_token = me() + 100;
  ARMCI_Rmw(ARMCI_SWAP, &token, &there->i, 0, 0);
  ARMCI_Rmw(ARMCI_SWAP_LONG, &long_token, &there->l, 0, 0);
  long sums[] = {token, long_token};
  armci_msg_lgop(sums, 2, const_cast<char*>("+"));
  ARMCI_Barrier();
  const long swapped = 100L * procs() + long{procs()} * (procs() - 1) / 2;
  EXPECT_EQ(sums[0] + ARMCI_GetValueInt(&there->i, 0), 2 * all + swapped);
  EXPECT_EQ(sums[1] + ARMCI_GetValueLong(&there->l, 0), -3 * all + swapped);
}

TEST(Copy, MayOverlap) {
  char text[] = "abcdef";
  ARMCI_Copy(text, text + 1, 5);
  EXPECT_STREQ(text, "aabcde");
}

}  // namespace
