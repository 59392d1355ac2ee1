// SPDX-License-Identifier: BSD-3-Clause
#include "job/worlds.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "job/bootstrap/shm_directory.h"

namespace mobius::job {
namespace {

class WorldRequests : public testing::Test {
 protected:
  void SetUp() override {
    int descriptor = -1;
    ASSERT_EQ(ShmDirectory::create(2, &descriptor), MOB_OK) << mob_last_error();
    ASSERT_EQ(directory_.open(descriptor, 0, {}, true), MOB_OK) << mob_last_error();
  }
  World& world(mob_rank_t first) { return directory_.worlds()->world(first); }

  static WorldRequest request(size_t count) {
    WorldRequest wanted;
    wanted.least = 1;
    wanted.spawner = 1;
    wanted.request.path = "/bin/true";
    wanted.request.arguments = {"true", ""};
    wanted.request.environment = {"A=B"};
    wanted.parents = {1, 0};
    for (size_t i = 0; i < count; ++i) wanted.hosts.push_back(static_cast<int32_t>(i % 2));
    return wanted;
  }

  ShmDirectory directory_;
};

TEST_F(WorldRequests, ARequestIsReadAsItWasWritten) {
  mob_rank_t first = 0;
  ASSERT_EQ(write_request("call", directory_, request(3), 10, &first), MOB_OK);
  EXPECT_EQ(first, 2);
  EXPECT_EQ(world(first).state.load(), WorldState::kAsked);
  EXPECT_EQ(world(first).size, 3);
  EXPECT_EQ(directory_.worlds()->slot(4).world, first);
  std::vector<mob_rank_t> parents;
  std::vector<int32_t> hosts;
  ASSERT_TRUE(read_members(directory_.worlds_segment(), world(first), &parents, &hosts));
  EXPECT_EQ(parents, (std::vector<mob_rank_t>{1, 0}));
  EXPECT_EQ(hosts, (std::vector<int32_t>{0, 1, 0}));
  EXPECT_EQ(read_reason(directory_.worlds_segment(), world(first)), "");
  write_reason(directory_.worlds_segment(), world(first), "because");
  EXPECT_EQ(read_reason(directory_.worlds_segment(), world(first)), "because");
  free_request(directory_.worlds_segment(), world(first));
  EXPECT_FALSE(read_members(directory_.worlds_segment(), world(first), &parents, &hosts));
}

TEST_F(WorldRequests, NumbersAreGivenOutOnceAndUsedUp) {
  mob_rank_t first = 0;
  ASSERT_EQ(write_request("call", directory_, request(2), 5, &first), MOB_OK);
  EXPECT_EQ(write_request("call", directory_, request(2), 5, &first), MOB_ERR_RANGE);
  EXPECT_NE(std::string(mob_last_error()).find("this job has had 4 and can have 5"),
            std::string::npos)
      << mob_last_error();
  ASSERT_EQ(write_request("call", directory_, request(1), 5, &first), MOB_OK);
  EXPECT_EQ(first, 4);
}

// A spawned process publishes a value, and others fetch it by the number of that process.
TEST_F(WorldRequests, ValuesOfSpawnedProcessesAreFetchedByNumber) {
  mob_rank_t first = 0;
  ASSERT_EQ(write_request("call", directory_, request(1), 10, &first), MOB_OK);
  ShmDirectory spawned;
  ASSERT_EQ(spawned.open(dup(directory_.worlds_segment()), first, {}, true), MOB_OK);
  EXPECT_EQ(spawned.secret(), directory_.secret());
  const std::vector<unsigned char> value = {1, 2, 3};
  ASSERT_EQ(spawned.publish("key", value), MOB_OK);
  EXPECT_EQ(spawned.fence(), MOB_OK);  // alone in its world
  std::vector<unsigned char> found;
  ASSERT_EQ(directory_.fetch(first, "key", &found), MOB_OK) << mob_last_error();
  EXPECT_EQ(found, value);
  EXPECT_FALSE(directory_.is_connected(first));
  ASSERT_TRUE(change_state(world(first), WorldState::kAsked, WorldState::kJoined));
  EXPECT_TRUE(directory_.is_connected(first));
  EXPECT_FALSE(directory_.have_connected_come());
  spawned.start_leaving();
  EXPECT_TRUE(directory_.have_connected_come());
}

}  // namespace
}  // namespace mobius::job
