// SPDX-License-Identifier: BSD-3-Clause

// Access and exposure epochs: the data that has arrived when a wait returns, groups of all kinds,
// and calls that do not match.

#include <mobius/epoch.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "fixture.h"
#include "messages.h"

using mobius_test::expect_text;
using mobius_test::left_of;
using mobius_test::right_of;
using mobius_test::Shared;

namespace {

class Epoch {
 public:
  explicit Epoch(mob_team_t team = MOB_TEAM_WORLD) {
    EXPECT_EQ(mob_epoch_create(team, &epoch_), MOB_OK) << mob_last_error();
  }
  ~Epoch() { EXPECT_EQ(mob_epoch_free(epoch_), MOB_OK) << mob_last_error(); }
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

  operator mob_epoch_t() const { return epoch_; }  // NOLINT(google-explicit-constructor)

 private:
  mob_epoch_t epoch_ = nullptr;
};

std::vector<mob_rank_t> everyone() {
  std::vector<mob_rank_t> ranks;
  for (mob_rank_t r = 0; r < mob_size(); ++r) ranks.push_back(r);
  return ranks;
}

}  // namespace

TEST(Epoch, ARingOfAccessAndExposure) {
  constexpr size_t kBytes = 3000;
  const Shared memory(kBytes);
  const Epoch epoch;
  const mob_rank_t origin = left_of(mob_rank());
  const mob_rank_t target = right_of(mob_rank());
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(mob_epoch_post(epoch, &origin, 1), MOB_OK);
    EXPECT_EQ(mob_epoch_start(epoch, &target, 1), MOB_OK);
    const auto data = mobius_test::patterned(kBytes, mob_rank(), round);
    EXPECT_EQ(mob_put(target, memory.at(target), data.data(), kBytes), MOB_OK);
    EXPECT_EQ(mob_epoch_complete(epoch), MOB_OK);
    EXPECT_EQ(mob_epoch_wait(epoch), MOB_OK);
    EXPECT_TRUE(
        mobius_test::holds(memory.local(), mobius_test::patterned(kBytes, origin, round), kBytes))
        << "round " << round;
  }
}

TEST(Epoch, EveryoneToEveryoneAndTesting) {
  const Shared memory(sizeof(uint64_t) * static_cast<size_t>(mob_size()));
  const Epoch epoch;
  const auto all = everyone();
  const size_t own = sizeof(uint64_t) * static_cast<size_t>(mob_rank());
  int wrong = 0;
  for (uint64_t round = 1; round <= 30; ++round) {
    wrong += mob_epoch_post(epoch, all.data(), mob_size()) != MOB_OK;
    wrong += mob_epoch_start(epoch, all.data(), mob_size()) != MOB_OK;
    for (const mob_rank_t r : all) wrong += mob_put8(r, memory.at(r, own), round) != MOB_OK;
    wrong += mob_epoch_complete(epoch) != MOB_OK;
    int done = 0;
    while (done == 0) {
      wrong += mob_epoch_test(epoch, &done) != MOB_OK;
      if (done == 0) std::this_thread::yield();
    }
    const auto* seen = reinterpret_cast<const uint64_t*>(memory.local());
    for (const mob_rank_t r : all) wrong += seen[r] != round;
  }
  EXPECT_EQ(wrong, 0);
}

// Two targets post to one origin, which starts to them one after the other, in the other order.
TEST(Epoch, PairsAreIndependent) {
  const Epoch epoch;
  const mob_rank_t origin = 0;
  for (int round = 0; round < 20; ++round) {
    if (mob_rank() != origin) {
      EXPECT_EQ(mob_epoch_post(epoch, &origin, 1), MOB_OK);
      EXPECT_EQ(mob_epoch_wait(epoch), MOB_OK);
    } else {
      for (mob_rank_t target = mob_size() - 1; target > 0; --target) {
        EXPECT_EQ(mob_epoch_start(epoch, &target, 1), MOB_OK);
        EXPECT_EQ(mob_epoch_complete(epoch), MOB_OK);
      }
    }
  }
}

TEST(Epoch, OfATeamAndWithNobody) {
  mob_team_t team = MOB_TEAM_NONE;
  EXPECT_EQ(mob_team_split(MOB_TEAM_WORLD, mob_rank() % 2, -mob_rank(), &team), MOB_OK);
  {
    const Epoch epoch(team);
    const mob_rank_t me = mob_rank();
    EXPECT_EQ(mob_epoch_post(epoch, &me, 1), MOB_OK);
    EXPECT_EQ(mob_epoch_start(epoch, &me, 1), MOB_OK);
    EXPECT_EQ(mob_epoch_complete(epoch), MOB_OK);
    EXPECT_EQ(mob_epoch_wait(epoch), MOB_OK);
    EXPECT_EQ(mob_epoch_post(epoch, nullptr, 0), MOB_OK);
    EXPECT_EQ(mob_epoch_start(epoch, nullptr, 0), MOB_OK);
    EXPECT_EQ(mob_epoch_complete(epoch), MOB_OK);
    EXPECT_EQ(mob_epoch_wait(epoch), MOB_OK);
    if (mob_size() > 1) {
      const mob_rank_t other = me % 2 == 0 ? 1 : 0;
      EXPECT_EQ(mob_epoch_post(epoch, &other, 1), MOB_ERR_RANK);
      const mob_rank_t number = mobius_test::number_of(other);
      expect_text("mob_epoch_post", "rank " + std::to_string(number) + " is not in the team");
    }
  }
  EXPECT_EQ(mob_team_free(team), MOB_OK);
}

// A list is compared with the former list: the same, another one, one that was refused, none.
TEST(Epoch, GroupsThatChangeFromEpochToEpoch) {
  const Epoch epoch;
  const mob_rank_t me = mob_rank();
  const mob_rank_t size = mob_size();
  const mob_rank_t refused[] = {me, size};
  for (mob_rank_t turn = 0; turn < 12; ++turn) {
    const mob_rank_t distance = turn / 3 % size;  // three times the same
    const mob_rank_t target = (me + distance) % size;
    const mob_rank_t origin = (me + size - distance) % size;
    const mob_rank_t count = turn % 5 == 4 ? 0 : 1;
    if (turn % 2 == 1) {
      ASSERT_EQ(mob_epoch_post(epoch, refused, 2), MOB_ERR_RANK);
      ASSERT_EQ(mob_epoch_start(epoch, refused, 2), MOB_ERR_RANK);
    }
    ASSERT_EQ(mob_epoch_post(epoch, &origin, count), MOB_OK) << mob_last_error();
    ASSERT_EQ(mob_epoch_start(epoch, &target, count), MOB_OK) << mob_last_error();
    ASSERT_EQ(mob_epoch_complete(epoch), MOB_OK) << mob_last_error();
    ASSERT_EQ(mob_epoch_wait(epoch), MOB_OK) << mob_last_error();
  }
}

// A call that would have to wait in a handler is refused, and the epoch is as it was.
TEST(Epoch, HandlersDoNotEndThem) {
  constexpr unsigned kTries = 120;
  struct Trial {
    mob_epoch_t epoch;
    mob_status_t (*call)(mob_epoch_t);
    std::atomic<mob_status_t> status = MOB_OK;
  };
  const Epoch epoch;
  const Shared memory(sizeof(uint64_t));
  Trial trial{epoch, nullptr};
  mobius_test::register_handler(
      kTries,
      [](const mob_message_t*, void* argument, mob_delivery_t*) {
        auto& tried = *static_cast<Trial*>(argument);
        tried.status = tried.call(tried.epoch);
      },
      &trial);
  const auto refused_in_handler = [&](mob_status_t (*call)(mob_epoch_t)) {
    trial.call = call;
    trial.status = MOB_OK;
    mobius_test::send(mob_rank(), kTries);
    mobius_test::flush_all();
    mobius_test::barrier();
    return trial.status == MOB_ERR_STATE;
  };
  const mob_rank_t origin = left_of(mob_rank());
  const mob_rank_t target = right_of(mob_rank());
  const uint64_t value = 7;
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(refused_in_handler([](mob_epoch_t each) {
      const mob_rank_t right = right_of(mob_rank());
      return mob_epoch_start(each, &right, 1);
    }));
    EXPECT_EQ(mob_epoch_post(epoch, &origin, 1), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_epoch_start(epoch, &target, 1), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_put_nbi(target, memory.at(target), &value, sizeof value), MOB_OK);
    EXPECT_TRUE(refused_in_handler(mob_epoch_complete));
    EXPECT_TRUE(refused_in_handler(mob_epoch_wait));
    int done = 7;
    EXPECT_EQ(mob_epoch_test(epoch, &done), MOB_OK) << mob_last_error();
    EXPECT_EQ(done, 0);
    mobius_test::barrier();
    EXPECT_EQ(mob_epoch_complete(epoch), MOB_OK) << mob_last_error();
    EXPECT_EQ(mob_epoch_wait(epoch), MOB_OK) << mob_last_error();
    EXPECT_EQ(*reinterpret_cast<const uint64_t*>(memory.local()), value);
    std::memset(memory.local(), 0, sizeof value);
    mobius_test::barrier();
  }
}

// Both sides check their lists at once, because two threads may call them.
TEST(Epoch, ThreadsNameTheGroupsOfBothSides) {
  const Epoch epoch;
  const mob_rank_t me = mob_rank();
  const auto all = everyone();
  auto refused = all;
  refused.push_back(mob_size());
  std::atomic<int> wrong{0};
  const auto alternate = [&](auto begin, auto end) {
    for (int round = 0; round < 100; ++round) {
      for (int i = 0; i < 20; ++i) {
        wrong += begin(epoch, refused.data(), mob_size() + 1) != MOB_ERR_RANK;
      }
      const bool with_all = round % 2 == 0;
      while (begin(epoch, with_all ? all.data() : &me, with_all ? mob_size() : 1) != MOB_OK)
        ++wrong;
      wrong += end(epoch) != MOB_OK;
    }
  };
  std::thread origin([&] { alternate(mob_epoch_start, mob_epoch_complete); });
  alternate(mob_epoch_post, mob_epoch_wait);
  origin.join();
  EXPECT_EQ(wrong.load(), 0) << mob_last_error();
}

// Transfers long enough not to travel as messages between hosts, in another context than the one
// that ends the epoch.
TEST(Epoch, EndsCompletePutsOfAllContexts) {
  constexpr size_t kBytes = 16 << 20;
  const Shared memory(kBytes);
  const Epoch epoch;
  const mob_rank_t target = (mob_rank() + mob_size() / 2) % mob_size();
  const mob_rank_t origin = (mob_rank() + mob_size() - mob_size() / 2) % mob_size();
  mob_context_t context = nullptr;
  EXPECT_EQ(mob_context_create(&context), MOB_OK);
  for (int round = 0; round < 4; ++round) {
    const bool fences = round % 2 == 1;
    const std::vector<unsigned char> data(kBytes, static_cast<unsigned char>(round + 1));
    if (!fences) {
      EXPECT_EQ(mob_epoch_post(epoch, &origin, 1), MOB_OK);
      EXPECT_EQ(mob_epoch_start(epoch, &target, 1), MOB_OK);
    }
    EXPECT_EQ(mob_context_use(context), MOB_OK);
    EXPECT_EQ(mob_put_nbi(target, memory.at(target), data.data(), kBytes), MOB_OK);
    EXPECT_EQ(mob_context_use(MOB_CONTEXT_DEFAULT), MOB_OK);
    if (fences) {
      EXPECT_EQ(mob_epoch_fence(epoch), MOB_OK) << mob_last_error();
    } else {
      EXPECT_EQ(mob_epoch_complete(epoch), MOB_OK) << mob_last_error();
      EXPECT_EQ(mob_epoch_wait(epoch), MOB_OK) << mob_last_error();
    }
    EXPECT_TRUE(mobius_test::holds(memory.local(), data, kBytes)) << "round " << round;
    mobius_test::barrier();
  }
  EXPECT_EQ(mob_context_free(context), MOB_OK) << mob_last_error();
}

TEST(Epoch, FencesSeparatePhases) {
  const Shared memory(8);
  const Epoch epoch;
  const mob_rank_t target = right_of(mob_rank());
  for (uint64_t phase = 1; phase <= 100; ++phase) {
    EXPECT_EQ(mob_put8(target, memory.at(target), phase), MOB_OK);
    EXPECT_EQ(mob_epoch_fence(epoch), MOB_OK);
    EXPECT_EQ(*reinterpret_cast<const uint64_t*>(memory.local()), phase);
    EXPECT_EQ(mob_epoch_fence(epoch), MOB_OK);
  }
}

TEST(EpochBadInput, CallsThatDoNotMatch) {
  const Epoch epoch;
  const mob_rank_t me = mob_rank();
  int done = 7;
  EXPECT_EQ(mob_epoch_complete(epoch), MOB_ERR_STATE);
  expect_text("mob_epoch_complete", "mob_epoch_start()");
  EXPECT_EQ(mob_epoch_wait(epoch), MOB_ERR_STATE);
  expect_text("mob_epoch_wait", "mob_epoch_post()");
  EXPECT_EQ(mob_epoch_test(epoch, &done), MOB_ERR_STATE);
  expect_text("mob_epoch_test", "mob_epoch_post()");
  EXPECT_EQ(done, 7);
  EXPECT_EQ(mob_epoch_post(epoch, &me, 1), MOB_OK);
  EXPECT_EQ(mob_epoch_post(epoch, &me, 1), MOB_ERR_STATE);
  expect_text("mob_epoch_post", "without mob_epoch_wait()");
  EXPECT_EQ(mob_epoch_start(epoch, &me, 1), MOB_OK);
  EXPECT_EQ(mob_epoch_start(epoch, &me, 1), MOB_ERR_STATE);
  expect_text("mob_epoch_start", "without mob_epoch_complete()");
  EXPECT_EQ(mob_epoch_fence(epoch), MOB_ERR_STATE);
  expect_text("mob_epoch_fence", "mob_epoch_complete()");
  EXPECT_EQ(mob_epoch_free(epoch), MOB_ERR_STATE);
  expect_text("mob_epoch_free", "mob_epoch_complete()");
  EXPECT_EQ(mob_epoch_complete(epoch), MOB_OK);
  // One member inside an epoch is enough.
  if (me != 0) {
    EXPECT_EQ(mob_epoch_wait(epoch), MOB_OK);
  }
  EXPECT_EQ(mob_epoch_free(epoch), me == 0 ? MOB_ERR_STATE : MOB_ERR_PEER);
  if (me == 0) {
    EXPECT_EQ(mob_epoch_wait(epoch), MOB_OK);
  }
}

TEST(EpochBadInput, EveryArgument) {
  mob_epoch_t none = nullptr;
  const mob_rank_t me = mob_rank();
  int done = 7;
  EXPECT_EQ(mob_epoch_create(MOB_TEAM_NONE, &none), MOB_ERR_HANDLE);
  EXPECT_EQ(mob_epoch_create(MOB_TEAM_WORLD, me == 0 ? nullptr : &none),
            me == 0 ? MOB_ERR_ARGUMENT : MOB_ERR_PEER);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(mob_epoch_free(nullptr), MOB_OK);
  mob_epoch_t freed = nullptr;
  EXPECT_EQ(mob_epoch_create(MOB_TEAM_WORLD, &freed), MOB_OK);
  for (const mob_rank_t rank : {-1, mob_size(), 1 << 30}) {
    const mob_rank_t group[] = {me, rank};
    EXPECT_EQ(mob_epoch_post(freed, group, 2), MOB_ERR_RANK);
    expect_text("mob_epoch_post", "is not in th");  // the team, or the job
    EXPECT_EQ(mob_epoch_start(freed, group, 2), MOB_ERR_RANK);
  }
  const mob_rank_t twice[] = {me, me};
  EXPECT_EQ(mob_epoch_post(freed, twice, 2), MOB_ERR_ARGUMENT);
  expect_text("mob_epoch_post", "named twice");
  EXPECT_EQ(mob_epoch_start(freed, twice, 2), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_epoch_post(freed, nullptr, 1), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_epoch_start(freed, nullptr, 1), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_epoch_post(freed, &me, -1), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_epoch_start(freed, &me, -1), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_epoch_test(freed, nullptr), MOB_ERR_ARGUMENT);
  EXPECT_EQ(mob_epoch_free(freed), MOB_OK) << mob_last_error();
  for (mob_epoch_t bad : {freed, none}) {
    EXPECT_EQ(mob_epoch_post(bad, &me, 1), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_epoch_start(bad, &me, 1), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_epoch_complete(bad), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_epoch_wait(bad), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_epoch_test(bad, &done), MOB_ERR_HANDLE);
    EXPECT_EQ(mob_epoch_fence(bad), MOB_ERR_HANDLE);
  }
  EXPECT_EQ(mob_epoch_free(freed), MOB_ERR_HANDLE);
  expect_text("mob_epoch_free", "not a live epoch");
  EXPECT_EQ(done, 7);
}
