// SPDX-License-Identifier: BSD-3-Clause

// LAPI_Rmw and LAPI_Rmw64: each operation, and their atomicity.

#include "fixture.h"

namespace lapi_test {
namespace {

template <typename T>
struct Rmw;
template <>
struct Rmw<int> {
  static constexpr auto call = LAPI_Rmw;
};
template <>
struct Rmw<long long> {
  static constexpr auto call = LAPI_Rmw64;
};

template <typename T>
void every_operation(T* mine) {
  *mine = 10;
  const auto all = addresses_of(mine);
  Counter origin;
  const unsigned target = right();
  T in[2] = {5, 0};
  T previous = -1;
  const auto run = [&](RMW_ops_t op) {
    previous = -1;
    ok(Rmw<T>::call(handle, op, target, all[target], in, &previous, origin.get()));
    EXPECT_EQ(origin.wait(1), 0);
  };
  run(FETCH_AND_ADD);
  EXPECT_EQ(previous, 10);
  in[0] = 48;
  run(FETCH_AND_OR);
  EXPECT_EQ(previous, 15);
  in[0] = -7;
  run(SWAP);
  EXPECT_EQ(previous, 63);
  in[0] = 0;
  in[1] = 1;
  run(COMPARE_AND_SWAP);
  EXPECT_EQ(previous, 0);  // the word holds -7
  in[0] = -7;
  in[1] = 99;
  run(COMPARE_AND_SWAP);
  EXPECT_EQ(previous, 1);
  in[0] = 1;
  ok(Rmw<T>::call(handle, FETCH_AND_ADD, target, all[target], in, nullptr, nullptr));
  gfence();
  EXPECT_EQ(*mine, 100);
  gfence();
}

TEST(Rmw, EveryOperationOn32Bits) {
  static int word;
  every_operation(&word);
  int on_stack = 0;
  every_operation(&on_stack);
}

TEST(Rmw, EveryOperationOn64Bits) {
  static long long word;
  every_operation(&word);
  long long on_stack = 0;
  every_operation(&on_stack);
}

TEST(Rmw, TasksExcludeEachOther) {
  static int ticket;
  ticket = 0;
  static int tickets[4 * 200];
  std::fill(std::begin(tickets), std::end(tickets), 0);
  const auto all = addresses_of(&ticket);
  const auto places = addresses_of(tickets);
  int one = 1;
  for (int i = 0; i < 200; ++i) {
    int mine = -1;
    Counter origin;
    ok(LAPI_Rmw(handle, FETCH_AND_ADD, 0, all[0], &one, &mine, origin.get()));
    origin.wait(1);
    ok(LAPI_Rmw(handle, FETCH_AND_ADD, 0, places[0] + mine, &one, nullptr, nullptr));
  }
  gfence();
  if (me == 0) {
    EXPECT_EQ(ticket, static_cast<int>(200 * tasks));
    for (unsigned i = 0; i < 200 * tasks; ++i) EXPECT_EQ(tickets[i], 1) << i;
  }
  gfence();
}

}  // namespace
}  // namespace lapi_test
