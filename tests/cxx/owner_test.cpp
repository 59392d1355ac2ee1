// SPDX-License-Identifier: BSD-3-Clause

// Errors; and owners that are moved, freed, destroyed, and left by an exception.

#include <limits>
#include <stdexcept>
#include <utility>

#include "fixture.h"

using mobius_test::right_of;
using mobius_test::thrown;

static_assert(!std::is_copy_constructible_v<mob::Array<int>>);
static_assert(std::is_nothrow_move_constructible_v<mob::Array<int>>);
static_assert(!std::is_copy_constructible_v<mob::Team>);
static_assert(std::is_nothrow_move_assignable_v<mob::Team>);
static_assert(!std::is_copy_constructible_v<mob::Counter>);
static_assert(!std::is_copy_constructible_v<mob::Handle>);
static_assert(!std::is_move_constructible_v<mob::Job>);

TEST(Errors, HaveStatusAndText) {
  EXPECT_EQ(thrown([] { mob::check(MOB_OK); }), MOB_OK);
  EXPECT_EQ(thrown([] { mob::check(mob_flush(mob_size())); }, "mob_flush:"), MOB_ERR_RANK);
  EXPECT_EQ(thrown([] { mob::Job again; }, "mob_init:"), MOB_ERR_STATE);
  EXPECT_EQ(mob_initialized(), 1);
}

TEST(Arrays, HaveAPartInEveryMember) {
  const mob_rank_t me = mob_rank();
  const mob::Array<double> array(static_cast<size_t>(me));  // no elements at rank 0
  EXPECT_EQ(array.local().size(), static_cast<size_t>(me));
  for (const double value : array.local()) EXPECT_EQ(value, 0.0);
  for (mob_rank_t rank = 0; rank < mob_size(); ++rank) {
    const size_t size = static_cast<size_t>(rank);
    EXPECT_EQ(array.size(rank), size);
    EXPECT_EQ(array.at(rank, size) - array.at(rank), rank);
    EXPECT_EQ(thrown([&] { static_cast<void>(array.at(rank, size + 1)); }, "mob_mem_address:"),
              MOB_ERR_RANGE);
  }
  EXPECT_EQ(thrown([&] { static_cast<void>(array.at(mob_size())); }), MOB_ERR_RANK);
  EXPECT_EQ(thrown([&] { static_cast<void>(array.size(-1)); }), MOB_ERR_RANK);
  constexpr size_t kMost = std::numeric_limits<size_t>::max();
  EXPECT_EQ(thrown([&] { static_cast<void>(array.at(me, kMost / 2)); }), MOB_ERR_RANGE);
  EXPECT_EQ(thrown([] { mob::Array<double> large(kMost / 8 + 1); }), MOB_ERR_RANGE);
}

TEST(Arrays, AreMovedAndFreed) {
  mob::Array<int> none;
  EXPECT_TRUE(none.local().empty());
  EXPECT_EQ(none.handle(), nullptr);
  EXPECT_EQ(thrown([&] { static_cast<void>(none.at(0)); }), MOB_ERR_HANDLE);
  EXPECT_EQ(thrown([&] { none.free(); }), MOB_OK);

  mob::Array<int> first(3);
  mob_mem_t handle = first.handle();
  int* const local = first.local().data();
  none = std::move(first);
  EXPECT_EQ(none.handle(), handle);
  EXPECT_EQ(none.local().data(), local);
  EXPECT_EQ(first.handle(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(first.local().empty());

  mob::Array<int> second(std::move(none));
  second = mob::Array<int>(5);  // frees the first, everywhere
  EXPECT_EQ(second.local().size(), 5u);
  EXPECT_NE(second.handle(), nullptr);
  size_t bytes = 0;
  EXPECT_EQ(mob_mem_bytes(handle, mob_rank(), &bytes), MOB_ERR_HANDLE);
  mob::Array<int>& same = second;
  second = std::move(same);
  EXPECT_EQ(second.local().size(), 5u);
  second.free();
  EXPECT_EQ(second.handle(), nullptr);
  EXPECT_TRUE(second.local().empty());
}

TEST(Arrays, OfATeamAreFreedBeforeIt) {
  mob::Team team = mob::Team::world().split(0);
  mob::Array<int> array(2, team);
  EXPECT_EQ(thrown([&] { team.free(); }, "mob_team_free:"), MOB_ERR_STATE);
  EXPECT_TRUE(team);
  array.free();
  team.free();
  EXPECT_FALSE(team);
}

// All ranks leave by an exception, so that they can check that the allocation still exists.
TEST(Arrays, ThatAnExceptionLeavesStay) {
  mob_mem_t left = nullptr;
  try {
    const mob::Array<int> array(1);
    left = array.handle();
    throw std::runtime_error("left");
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "left");
  }
  size_t bytes = 0;
  EXPECT_EQ(mob_mem_bytes(left, mob_rank(), &bytes), MOB_OK);
  EXPECT_EQ(bytes, sizeof(int));
  EXPECT_EQ(mob_mem_free(left), MOB_OK);

  // An array that was made while the stack is unwound is freed as usual.
  struct Maker {
    mob_mem_t* made;
    ~Maker() {
      const mob::Array<int> array(1);
      *made = array.handle();
    }
  };
  try {
    const Maker maker{&left};
    throw std::runtime_error("left");
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "left");
  }
  EXPECT_EQ(mob_mem_bytes(left, mob_rank(), &bytes), MOB_ERR_HANDLE);
}

TEST(CountersInCxx, CountAndAreGivenBack) {
  mob::Counter done;
  const mob::Array<double> array(8);
  const double values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  mob_transfer_t put{};
  put.kind = MOB_PUT;
  put.rank = right_of(mob_rank());
  put.remote = array.at(put.rank).address();
  put.local = const_cast<double*>(values);
  put.bytes = sizeof values;
  put.completion_counter = done.handle();
  for (int i = 0; i < 3; ++i) mob::check(mob_transfer_nbi(&put));
  EXPECT_EQ(done.wait(3), 0u);
  done.set(7);
  EXPECT_EQ(done.wait(2), 5u);
  mob::Counter moved(std::move(done));
  EXPECT_EQ(moved.value(), 5u);
  EXPECT_EQ(thrown([&] { done.set(1); }), MOB_ERR_HANDLE);  // NOLINT(bugprone-use-after-move)
  mob::check(mob_barrier());
  EXPECT_EQ(array.local()[7], 8.0);
  moved.free();
  EXPECT_EQ(thrown([&] { static_cast<void>(moved.value()); }), MOB_ERR_HANDLE);
}
