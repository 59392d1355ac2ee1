// SPDX-License-Identifier: BSD-3-Clause

// Handles of several transfers at once.

#include <algorithm>

#include "fixture.h"

using mobius_test::barrier;
using mobius_test::Shared;

namespace {

constexpr size_t kTransfers = 20;
constexpr size_t kBytes = 300;

// Puts and gets in turn, between this rank and its right neighbour.
class Started {
 public:
  Started() : memory_(2 * kTransfers * kBytes), handles_(kTransfers), got_(kTransfers) {
    const auto own = mobius_test::patterned(kTransfers * kBytes, mob_rank(), 1);
    std::memcpy(memory_.local(), own.data(), own.size());
    barrier();
    const mob_rank_t target = mobius_test::right_of(mob_rank());
    data_ = mobius_test::patterned(kTransfers * kBytes, mob_rank(), 2);
    for (size_t i = 0; i < kTransfers; ++i) {
      got_[i].resize(kBytes);
      const mob_status_t status =
          i % 2 == 0 ? mob_get_nb(target, memory_.at(target, i * kBytes), got_[i].data(), kBytes,
                                  &handles_[i])
                     : mob_put_nb(target, memory_.at(target, (kTransfers + i) * kBytes),
                                  &data_[i * kBytes], kBytes, &handles_[i]);
      EXPECT_EQ(status, MOB_OK) << mob_last_error();
    }
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  // All were waited for: what was got is here, and what was put is there after a barrier.
  ~Started() {
    const auto theirs =
        mobius_test::patterned(kTransfers * kBytes, mobius_test::right_of(mob_rank()), 1);
    const auto put =
        mobius_test::patterned(kTransfers * kBytes, mobius_test::left_of(mob_rank()), 2);
    EXPECT_TRUE(std::ranges::all_of(handles_, [](auto h) { return h == MOB_HANDLE_DONE; }));
    for (size_t i = 0; i < kTransfers; i += 2) {
      EXPECT_EQ(std::memcmp(got_[i].data(), &theirs[i * kBytes], kBytes), 0) << i;
    }
    barrier();
    for (size_t i = 1; i < kTransfers; i += 2) {
      EXPECT_EQ(std::memcmp(memory_.local() + (kTransfers + i) * kBytes, &put[i * kBytes], kBytes),
                0)
          << i;
    }
    barrier();
  }

  mob_handle_t* handles() { return handles_.data(); }

 private:
  Shared memory_;
  std::vector<mob_handle_t> handles_;
  std::vector<std::vector<unsigned char>> got_;
  std::vector<unsigned char> data_;
};

}  // namespace

TEST(Handles, AreWaitedForInAnyOrder) {
  Started started;
  for (size_t i = kTransfers; i-- > 0;) {
    EXPECT_EQ(mob_wait(&started.handles()[i]), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_wait(&started.handles()[i]), MOB_OK) << "done handles may be waited for";
  }
}

TEST(Handles, AreWaitedForTogether) {
  Started started;
  EXPECT_EQ(mob_wait_all(started.handles(), kTransfers), MOB_OK) << mob_last_error();
  EXPECT_EQ(mob_wait_all(nullptr, 0), MOB_OK);
}

TEST(Handles, AnyTakesOneAtATimeUntilAllAreDone) {
  Started started;
  size_t index = 0;
  for (size_t calls = 0; calls <= kTransfers && index < kTransfers; ++calls) {
    EXPECT_EQ(mob_wait_any(started.handles(), kTransfers, &index), MOB_OK) << mob_last_error();
    if (index < kTransfers) {
      EXPECT_EQ(started.handles()[index], MOB_HANDLE_DONE);
    }
  }
  EXPECT_EQ(index, kTransfers);
}

TEST(Handles, SomeTakesThemInAscendingOrder) {
  Started started;
  size_t seen = 0;
  for (size_t completed = 1; completed > 0;) {
    size_t indices[kTransfers];
    EXPECT_EQ(mob_wait_some(started.handles(), kTransfers, indices, &completed), MOB_OK);
    EXPECT_TRUE(std::is_sorted(indices, indices + completed));
    seen += completed;
  }
  EXPECT_LE(seen, kTransfers);
}

TEST(Handles, TestingCompletesThem) {
  Started started;
  for (size_t i = 0; i < kTransfers; ++i) {
    for (int done = 0; done == 0;) {
      EXPECT_EQ(mob_test(&started.handles()[i], &done), MOB_OK) << mob_last_error();
      EXPECT_EQ(done == 1, started.handles()[i] == MOB_HANDLE_DONE);
    }
  }
}
