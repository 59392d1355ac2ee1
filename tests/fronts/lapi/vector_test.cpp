// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Putv and LAPI_Getv: the three kinds of vectors.

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "fixture.h"

namespace lapi_test {
namespace {

struct VectorTarget {
  lapi_cntr_t counter;
  std::array<int, 4096> data;
};
VectorTarget vectors_in_static_memory;

class Vectors : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    mine_ = GetParam() ? &vectors_in_static_memory : &own_;
    ok(LAPI_Setcntr(handle, &mine_->counter, 0));
    mine_->data.fill(-1);
    all_ = addresses_of(mine_);
    std::iota(source_.begin(), source_.end(), static_cast<int>(10'000 * me));
  }
  int* theirs(size_t at) { return all_[right()]->data.data() + at; }
  lapi_cntr_t* their_counter() { return &all_[right()]->counter; }

  void put(lapi_vec_t tgt, lapi_vec_t org) {
    Counter origin;
    Counter completion;
    ok(LAPI_Putv(handle, right(), &tgt, &org, their_counter(), origin.get(), completion.get()));
    origin.wait(1);
    completion.wait(1);
    ok(LAPI_Waitcntr(handle, &mine_->counter, 1, nullptr));
    gfence();
  }
  void get(lapi_vec_t tgt, lapi_vec_t org) {
    Counter origin;
    ok(LAPI_Getv(handle, right(), &tgt, &org, their_counter(), origin.get()));
    origin.wait(1);
    ok(LAPI_Waitcntr(handle, &mine_->counter, 1, nullptr));
    gfence();
  }
  static int from_left(size_t at) { return static_cast<int>(10'000 * left() + at); }

  VectorTarget own_;
  VectorTarget* mine_ = nullptr;
  std::vector<VectorTarget*> all_;
  std::array<int, 4096> source_;
};

INSTANTIATE_TEST_SUITE_P(Memory, Vectors, testing::Bool(),
                         [](const auto& value) { return value.param ? "Static" : "Heap"; });

TEST_P(Vectors, IoVectors) {
  void* org_info[] = {&source_[0], &source_[100], &source_[200]};
  void* tgt_info[] = {theirs(50), theirs(3000), theirs(1000)};
  unsigned long org_len[] = {40, 0, 400};
  unsigned long tgt_len[] = {44, 4, 400};
  put({LAPI_GEN_IOVECTOR, 3, tgt_info, tgt_len}, {LAPI_GEN_IOVECTOR, 3, org_info, org_len});
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(mine_->data[50 + i], from_left(i));
  EXPECT_EQ(mine_->data[60], -1);
  EXPECT_EQ(mine_->data[3000], -1);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(mine_->data[1000 + i], from_left(200 + i));
  EXPECT_EQ(std::count(mine_->data.begin(), mine_->data.end(), -1), 4096 - 110);
  gfence();
  std::array<int, 4096> back;
  back.fill(-2);
  void* back_info[] = {&back[0], &back[100], &back[200]};
  get({LAPI_GEN_IOVECTOR, 3, tgt_info, tgt_len}, {LAPI_GEN_IOVECTOR, 3, back_info, org_len});
  EXPECT_EQ(std::memcmp(back.data(), source_.data(), 40), 0);
  EXPECT_EQ(std::memcmp(&back[200], &source_[200], 400), 0);
  EXPECT_EQ(std::count(back.begin(), back.end(), -2), 4096 - 110);
}

TEST_P(Vectors, GenericVectors) {
  void* org_info[] = {&source_[0], &source_[10]};
  unsigned long org_len[] = {20, 60};
  void* tgt_info[] = {theirs(0), theirs(100), theirs(200)};
  unsigned long tgt_len[] = {40, 4, 400};
  put({LAPI_GEN_GENERIC, 3, tgt_info, tgt_len}, {LAPI_GEN_GENERIC, 2, org_info, org_len});
  std::vector<int> expected;
  for (size_t i = 0; i < 5; ++i) expected.push_back(from_left(i));
  for (size_t i = 10; i < 25; ++i) expected.push_back(from_left(i));
  EXPECT_TRUE(std::equal(expected.begin(), expected.begin() + 10, &mine_->data[0]));
  EXPECT_EQ(mine_->data[100], expected[10]);
  EXPECT_TRUE(std::equal(expected.begin() + 11, expected.end(), &mine_->data[200]));
  EXPECT_EQ(std::count(mine_->data.begin(), mine_->data.end(), -1), 4096 - 20);
  gfence();
  std::array<int, 20> back;
  void* back_info[] = {back.data()};
  unsigned long back_len[] = {80};
  get({LAPI_GEN_GENERIC, 3, tgt_info, tgt_len}, {LAPI_GEN_GENERIC, 1, back_info, back_len});
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(back[i], source_[i]);
  for (size_t i = 5; i < 20; ++i) EXPECT_EQ(back[i], source_[i + 5]);
}

TEST_P(Vectors, StridedVectors) {
  const auto number = [](unsigned long value) { return reinterpret_cast<void*>(value); };
  void* org_info[] = {&source_[0], number(12), number(40)};
  void* tgt_info[] = {theirs(7), number(12), number(16)};
  put({LAPI_GEN_STRIDED_XFER, 100, tgt_info, nullptr},
      {LAPI_GEN_STRIDED_XFER, 100, org_info, nullptr});
  for (size_t block = 0; block < 100; ++block) {
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(mine_->data[7 + 4 * block + i], from_left(10 * block + i));
    }
    EXPECT_EQ(mine_->data[7 + 4 * block + 3], -1);
  }
  gfence();
  std::array<int, 300> back;
  void* back_info[] = {back.data(), number(12), number(12)};
  get({LAPI_GEN_STRIDED_XFER, 100, tgt_info, nullptr},
      {LAPI_GEN_STRIDED_XFER, 100, back_info, nullptr});
  for (size_t i = 0; i < 300; ++i) EXPECT_EQ(back[i], source_[10 * (i / 3) + i % 3]);
}

TEST_P(Vectors, EmptyVectorsOnlyCount) {
  put({LAPI_GEN_IOVECTOR, 0, nullptr, nullptr}, {LAPI_GEN_IOVECTOR, 0, nullptr, nullptr});
  get({LAPI_GEN_GENERIC, 0, nullptr, nullptr}, {LAPI_GEN_GENERIC, 0, nullptr, nullptr});
  EXPECT_EQ(std::count(mine_->data.begin(), mine_->data.end(), -1), 4096);
}

}  // namespace
}  // namespace lapi_test
