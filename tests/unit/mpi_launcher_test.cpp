// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/mpi_launcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "job/bootstrap/join_by_address.h"
#include "job/bootstrap/local_protocol.h"
#include "job/control.h"
#include "os/unix_socket.h"
#include "shared_processes.h"

namespace mobius::job {
namespace {

using mobius_test::Children;
using mobius_test::SharedZeros;

constexpr const char* kMpich[] = {"PMI_RANK=2", "PMI_SIZE=4", "MPI_LOCALNRANKS=4", nullptr};

std::string key_of_this_test() {
  std::string key = std::to_string(getpid());
  return std::string(kKeyDigits - key.size(), 'd') + key;
}

mob_status_t find(const char* const* environment, MpiLaunch* launch) {
  bool found = false;
  const mob_status_t status = find_mpi_launch(environment, launch, &found);
  EXPECT_TRUE(found);
  return status;
}

TEST(MpiLauncher, NothingIsFoundWithoutOne) {
  const char* environment[] = {"PMI_RANKS=1", "XPMI_RANK=1", "PMI_SIZE=2", nullptr};
  MpiLaunch launch;
  bool found = true;
  EXPECT_EQ(find_mpi_launch(environment, &launch, &found), MOB_OK);
  EXPECT_FALSE(found);
}

TEST(MpiLauncher, RankAndSizeOfBothDialects) {
  const char* open_mpi[] = {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=3",
                            "OMPI_COMM_WORLD_LOCAL_SIZE=3", "PMIX_NAMESPACE=7", nullptr};
  MpiLaunch launch;
  ASSERT_EQ(find(open_mpi, &launch), MOB_OK) << mob_last_error();
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.size, 3);
  ASSERT_EQ(find(kMpich, &launch), MOB_OK) << mob_last_error();
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.size, 4);
}

TEST(MpiLauncher, KeysTellJobsApartAndRanksNot) {
  const char* others[][4] = {{"PMI_RANK=0", "PMI_SIZE=4", "MPI_LOCALNRANKS=4", nullptr},
                             {"PMI_RANK=2", "PMI_SIZE=5", "MPI_LOCALNRANKS=5", nullptr}};
  const char* spawned[][5] = {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1",
                               "OMPI_COMM_WORLD_LOCAL_SIZE=1", "PMIX_NAMESPACE=1", nullptr},
                              {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1",
                               "OMPI_COMM_WORLD_LOCAL_SIZE=1", "PMIX_NAMESPACE=2", nullptr}};
  MpiLaunch launch;
  ASSERT_EQ(find(kMpich, &launch), MOB_OK);
  const std::string key = launch.key;
  EXPECT_EQ(key.size(), kKeyDigits);
  EXPECT_EQ(key.find_first_not_of("0123456789abcdef"), std::string::npos);
  ASSERT_EQ(find(others[0], &launch), MOB_OK);
  EXPECT_EQ(launch.key, key);
  ASSERT_EQ(find(others[1], &launch), MOB_OK);
  EXPECT_NE(launch.key, key);
  ASSERT_EQ(find(spawned[0], &launch), MOB_OK);
  const std::string first = launch.key;
  ASSERT_EQ(find(spawned[1], &launch), MOB_OK);
  EXPECT_NE(launch.key, first);
}

TEST(MpiLauncher, WhatMakesNoSenseIsRefused) {
  const char* cases[][4] = {
      {"PMI_RANK=4", "PMI_SIZE=4", "MPI_LOCALNRANKS=4", nullptr},
      {"PMI_RANK=x", "PMI_SIZE=4", "MPI_LOCALNRANKS=4", nullptr},
      {"PMI_RANK=-1", "PMI_SIZE=4", "MPI_LOCALNRANKS=4", nullptr},
      {"PMI_RANK=0", "PMI_SIZE=", "MPI_LOCALNRANKS=4", nullptr},
      {"PMI_RANK=0", "MPI_LOCALNRANKS=4", nullptr, nullptr},
  };
  for (const auto& environment : cases) {
    MpiLaunch launch;
    EXPECT_EQ(find(environment, &launch), MOB_ERR_SETTING) << environment[0] << environment[1];
    EXPECT_NE(std::string(mob_last_error()).find("MOBIUS_LAUNCHER=none"), std::string::npos);
  }
}

TEST(MpiLauncher, SeveralHostsAreRefused) {
  const char* two[] = {"PMI_RANK=0", "PMI_SIZE=4", "MPI_LOCALNRANKS=2", nullptr};
  const char* unknown[] = {"PMI_RANK=0", "PMI_SIZE=4", nullptr};
  MpiLaunch launch;
  EXPECT_EQ(find(two, &launch), MOB_ERR_SYSTEM);
  EXPECT_NE(std::string(mob_last_error()).find("started 4 processes, and on this host 2"),
            std::string::npos)
      << mob_last_error();
  EXPECT_EQ(find(unknown, &launch), MOB_ERR_SYSTEM);
}

TEST(JoinByAddress, AllGetOneSegment) {
  constexpr mob_rank_t kSize = 16;
  const std::string key = key_of_this_test();
  SharedZeros<std::atomic<int>> seen;
  for (int round = 0; round < 3; ++round) {
    Children children;
    for (mob_rank_t rank = 0; rank < kSize; ++rank) {
      children.start([&, rank] {
        int segment = -1;
        bool pid_is_shared = false;
        if (join_by_address(key, rank, kSize, &segment, &pid_is_shared) != MOB_OK) return false;
        ControlBlock* block = nullptr;
        if (!pid_is_shared || control_map(segment, &block) != MOB_OK) return false;
        block->slot(rank).pid.store(getpid());
        block->barrier.arrived.fetch_add(1);
        while (block->barrier.arrived.load() != kSize) sched_yield();
        for (mob_rank_t other = 0; other < kSize; ++other) {
          if (block->slot(other).pid.load() == 0) return false;
        }
        ++*seen;
        return block->header.size == kSize;
      });
    }
    children.expect_success();
  }
  EXPECT_EQ(seen->load(), 3 * kSize);
}

TEST(JoinByAddress, ARankThatIsTakenIsRefused) {
  const std::string key = key_of_this_test();
  SharedZeros<std::atomic<int>> refused;
  Children children;
  const auto join_as_0 = [&] {
    int segment = -1;
    bool pid_is_shared = false;
    if (join_by_address(key, 0, 2, &segment, &pid_is_shared) == MOB_OK) return true;
    refused->fetch_add(1);
    return std::string(mob_last_error()).find("joined as rank 0") != std::string::npos;
  };
  children.start(join_as_0);
  children.start(join_as_0);
  while (refused->load() == 0) sched_yield();
  int segment = -1;
  bool pid_is_shared = false;
  EXPECT_EQ(join_by_address(key, 1, 2, &segment, &pid_is_shared), MOB_OK) << mob_last_error();
  close(segment);
  children.expect_success();
  EXPECT_EQ(refused->load(), 1);
}

TEST(JoinByAddress, WhoSpeaksAnotherProtocolIsRefusedAndTheOthersMeet) {
  const std::string key = key_of_this_test();
  testing::internal::CaptureStderr();
  Children children;
  children.start([&] {
    int segment = -1;
    bool pid_is_shared = false;
    return join_by_address(key, 0, 2, &segment, &pid_is_shared) == MOB_OK;
  });
  sockaddr_un address{};
  const socklen_t length = socket_address(key, &address);
  Message wrong;
  wrong.type = MessageType::kHello;
  wrong.version = kProtocolVersion + 1;
  wrong.rank = 1;
  wrong.size = 2;
  Message answer;
  int descriptor = -1;
  os::UnixSocket stranger;
  while (stranger.connect(address, length) != MOB_OK) sched_yield();
  ASSERT_EQ(stranger.send(&wrong, sizeof wrong), MOB_OK);
  ASSERT_EQ(stranger.receive(&answer, sizeof answer, &descriptor), MOB_OK);
  EXPECT_EQ(answer.type, MessageType::kRefused);
  EXPECT_EQ(descriptor, -1);
  os::UnixSocket passing;  // connects and leaves without a message
  ASSERT_EQ(passing.connect(address, length), MOB_OK);
  passing.close();
  os::UnixSocket shouter;
  ASSERT_EQ(shouter.connect(address, length), MOB_OK);
  ASSERT_EQ(shouter.send("garbage", 7), MOB_OK);
  std::array<os::UnixSocket, 100> silent;  // stay connected, more than are permitted
  for (os::UnixSocket& each : silent) ASSERT_EQ(each.connect(address, length), MOB_OK);
  int segment = -1;
  bool pid_is_shared = false;
  EXPECT_EQ(join_by_address(key, 1, 2, &segment, &pid_is_shared), MOB_OK) << mob_last_error();
  close(segment);
  children.expect_success();
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                "turned away process " + std::to_string(getpid()) +
                ", which connected to this job's socket and is not of this job\n"),
            std::string::npos);
}

}  // namespace
}  // namespace mobius::job
