// SPDX-License-Identifier: BSD-3-Clause
#include "engine/common/registry.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace mobius::engine {
namespace {

using Numbers = Registry<int>;

TEST(Registry, HandlesAreNotUsedAgain) {
  Numbers numbers;
  std::set<uint64_t> seen;
  for (int i = 0; i < 5000; ++i) {
    const uint64_t handle = numbers.add(std::make_unique<int>(i));
    EXPECT_TRUE(seen.insert(handle).second);
    ASSERT_NE(numbers.find(handle), nullptr);
    EXPECT_EQ(*numbers.find(handle), i);
    if (i % 3 == 0) continue;
    EXPECT_EQ(*numbers.remove(handle), i);
    EXPECT_EQ(numbers.find(handle), nullptr);
    EXPECT_EQ(numbers.remove(handle), nullptr);
  }
  EXPECT_EQ(numbers.find(0), nullptr);
  EXPECT_EQ(numbers.find(UINT64_MAX), nullptr);
}

TEST(Registry, PlacesThatAreNotFilledAreGivenBack) {
  Numbers numbers;
  for (int i = 0; i < 3; ++i) {
    const Numbers::Place place(numbers);
    EXPECT_TRUE(place);
    EXPECT_EQ(place.check("some_call"), MOB_OK);
  }
  Numbers::Place place(numbers);
  const uint64_t other = numbers.add(std::make_unique<int>(1));
  const uint64_t handle = place.fill(std::make_unique<int>(2));
  EXPECT_EQ(*numbers.find(other), 1);
  EXPECT_EQ(*numbers.find(handle), 2);
  int sum = 0;
  numbers.for_each([&](int number) { sum += number; });
  EXPECT_EQ(sum, 3);
}

TEST(Registry, FullOnesHaveNoPlace) {
  Numbers numbers;
  std::vector<uint64_t> handles;
  while (const uint64_t handle = numbers.add(std::make_unique<int>(7))) handles.push_back(handle);
  {
    const Numbers::Place none(numbers);
    EXPECT_FALSE(none);
    EXPECT_EQ(none.check("some_call"), MOB_ERR_MEMORY);
    const std::string text = mob_last_error();
    EXPECT_EQ(text.rfind("some_call: no room", 0), 0u) << text;
    EXPECT_NE(text.find(std::to_string(handles.size())), std::string::npos) << text;
  }
  EXPECT_NE(numbers.remove(handles[1000]), nullptr);
  {
    const Numbers::Place last(numbers);
    EXPECT_TRUE(last);
    EXPECT_FALSE(Numbers::Place(numbers));
    EXPECT_EQ(numbers.add(std::make_unique<int>(8)), 0u);
  }
  const uint64_t handle = numbers.add(std::make_unique<int>(9));
  EXPECT_EQ(*numbers.find(handle), 9);
}

}  // namespace
}  // namespace mobius::engine
