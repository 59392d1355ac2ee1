// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/mpi_launcher.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "job/bootstrap/join_by_address.h"
#include "job/bootstrap/local_protocol.h"
#include "job/control.h"
#include "os/file/unix_socket.h"
#include "os/process/process.h"
#include "shared_processes.h"

namespace mobius::job {
namespace {

using mobius_test::Children;
using mobius_test::SharedZeros;

constexpr const char* kMpich[] = {"PMI_RANK=2", "PMI_SIZE=4", "MPI_LOCALNRANKS=4", nullptr};

Secret new_secret() {
  Secret secret{};
  EXPECT_EQ(make_secret(&secret), MOB_OK);
  return secret;
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

TEST(MpiLauncher, SecretsTellJobsApartAndRanksNot) {
  const char* others[][4] = {{"PMI_RANK=0", "PMI_SIZE=4", "MPI_LOCALNRANKS=4", nullptr},
                             {"PMI_RANK=2", "PMI_SIZE=5", "MPI_LOCALNRANKS=5", nullptr}};
  const char* spawned[][5] = {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1",
                               "OMPI_COMM_WORLD_LOCAL_SIZE=1", "PMIX_NAMESPACE=1", nullptr},
                              {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1",
                               "OMPI_COMM_WORLD_LOCAL_SIZE=1", "PMIX_NAMESPACE=2", nullptr}};
  MpiLaunch launch;
  ASSERT_EQ(find(kMpich, &launch), MOB_OK);
  const Secret secret = launch.secret;
  ASSERT_EQ(find(others[0], &launch), MOB_OK);
  EXPECT_EQ(launch.secret, secret);
  ASSERT_EQ(find(others[1], &launch), MOB_OK);
  EXPECT_NE(launch.secret, secret);
  ASSERT_EQ(find(spawned[0], &launch), MOB_OK);
  const Secret first = launch.secret;
  ASSERT_EQ(find(spawned[1], &launch), MOB_OK);
  EXPECT_NE(launch.secret, first);
}

TEST(MpiLauncher, SecretsAreMadeOfMoreThanOthersCanSee) {
  const std::string hidden = os::process_private_bytes(getppid());
  EXPECT_GT(hidden.size(), 100u);
  EXPECT_NE(hidden, os::process_private_bytes(getpid()));
  if (geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  Children children;
  children.start([] { return setuid(54321) == 0 && os::process_private_bytes(getppid()).empty(); });
  children.expect_success();
  const char* with_key[] = {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1",
                            "OMPI_COMM_WORLD_LOCAL_SIZE=1",
                            "OMPI_MCA_orte_precondition_transports=17", nullptr};
  MpiLaunch launch;
  ASSERT_EQ(find(with_key, &launch), MOB_OK);
  const Secret first = launch.secret;
  with_key[3] = "OMPI_MCA_orte_precondition_transports=18";
  ASSERT_EQ(find(with_key, &launch), MOB_OK);
  EXPECT_NE(launch.secret, first);
}

TEST(MpiLauncher, SenselessAnswersAreRefused) {
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
  const Secret secret = new_secret();
  SharedZeros<std::atomic<int>> seen;
  for (int round = 0; round < 3; ++round) {
    Children children;
    for (mob_rank_t rank = 0; rank < kSize; ++rank) {
      children.start([&, rank] {
        int segment = -1;
        bool pid_is_shared = false;
        if (join_by_address({secret, rank, kSize}, &segment, &pid_is_shared) != MOB_OK)
          return false;
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
  const Secret secret = new_secret();
  SharedZeros<std::atomic<int>> refused;
  Children children;
  const auto join_as_0 = [&] {
    int segment = -1;
    bool pid_is_shared = false;
    if (join_by_address({secret, 0, 2}, &segment, &pid_is_shared) == MOB_OK) return true;
    refused->fetch_add(1);
    return std::string(mob_last_error()).find("joined as rank 0") != std::string::npos;
  };
  children.start(join_as_0);
  children.start(join_as_0);
  while (refused->load() == 0) sched_yield();
  int segment = -1;
  bool pid_is_shared = false;
  EXPECT_EQ(join_by_address({secret, 1, 2}, &segment, &pid_is_shared), MOB_OK) << mob_last_error();
  close(segment);
  children.expect_success();
  EXPECT_EQ(refused->load(), 1);
}

TEST(JoinByAddress, AnotherProtocolIsRefusedAndTheOthersMeet) {
  const Secret secret = new_secret();
  testing::internal::CaptureStderr();
  Children children;
  children.start([&] {
    int segment = -1;
    bool pid_is_shared = false;
    return join_by_address({secret, 0, 2}, &segment, &pid_is_shared) == MOB_OK;
  });
  sockaddr_un address{};
  const socklen_t length = job_address(secret, &address);
  Message wrong;
  wrong.type = MessageType::kHello;
  wrong.version = kProtocolVersion + 1;
  wrong.rank = 1;
  wrong.size = 2;
  Message answer;
  Nonce challenge;
  int descriptor = -1;
  os::UnixSocket other_version;
  while (connect_to_job(secret, &other_version, &challenge) != MOB_OK) sched_yield();
  ASSERT_EQ(other_version.send(&wrong, sizeof wrong), MOB_OK);
  ASSERT_EQ(other_version.receive(&answer, sizeof answer, &descriptor), MOB_OK);
  EXPECT_EQ(answer.type, MessageType::kRefused);
  EXPECT_EQ(descriptor, -1);
  os::UnixSocket silent_visitor;  // comes and goes without a word
  ASSERT_EQ(silent_visitor.connect(address, length), MOB_OK);
  silent_visitor.close();
  os::UnixSocket shouter;
  ASSERT_EQ(shouter.connect(address, length), MOB_OK);
  ASSERT_EQ(shouter.send("garbage", 7), MOB_OK);
  std::array<os::UnixSocket, 300> silent;  // stay, more than may
  for (os::UnixSocket& each : silent) ASSERT_EQ(each.connect(address, length), MOB_OK);
  int segment = -1;
  bool pid_is_shared = false;
  EXPECT_EQ(join_by_address({secret, 1, 2}, &segment, &pid_is_shared), MOB_OK) << mob_last_error();
  close(segment);
  children.expect_success();
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                "turned away process " + std::to_string(getpid()) +
                ", which connected to this job's socket and is not of this job\n"),
            std::string::npos);
}

// Sends Hello as rank 1 of 2 and returns the type of the answer; none if there is no answer.
MessageType greet(const Secret& address_of, const Secret& known, const Nonce* old_challenge,
                  Nonce* challenge) {
  os::UnixSocket socket;
  while (connect_to_job(address_of, &socket, challenge) != MOB_OK) sched_yield();
  Message hello;
  hello.type = MessageType::kHello;
  hello.rank = 1;
  hello.size = 2;
  seal(hello, known, old_challenge != nullptr ? *old_challenge : *challenge);
  Message answer;
  int descriptor = -1;
  EXPECT_EQ(socket.send(&hello, sizeof hello), MOB_OK);
  if (socket.receive(&answer, sizeof answer, &descriptor) != MOB_OK) return MessageType{};
  if (descriptor >= 0) close(descriptor);
  return answer.type;
}

TEST(JoinByAddress, OnlyAFreshProofOfTheSecretLetsIn) {
  const Secret secret = new_secret();
  testing::internal::CaptureStderr();
  Children children;
  children.start([&] {
    int segment = -1;
    bool pid_is_shared = false;
    return join_by_address({secret, 0, 2}, &segment, &pid_is_shared) == MOB_OK;
  });
  Nonce first;
  Nonce other;
  EXPECT_EQ(greet(secret, new_secret(), nullptr, &first), MessageType{}) << "without the secret";
  EXPECT_EQ(greet(secret, secret, &first, &other), MessageType{})
      << "an answer to an old challenge";
  EXPECT_NE(first, other);
  EXPECT_EQ(greet(secret, secret, nullptr, &other), MessageType::kWelcome);
  children.expect_success();
  testing::internal::GetCapturedStderr();
}

// Takes the first address of a job as another user, until it is killed.
pid_t occupy(const Secret& secret, unsigned attempt) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    sockaddr_un address{};
    const socklen_t length = job_address(secret, &address, attempt);
    os::UnixListener listener;
    bool taken = false;
    // The kernel remembers the user that called listen().
    if (setuid(54321) != 0 || listener.listen(address, length, &taken) != MOB_OK || taken) _exit(1);
    if (write(ready[1], "x", 1) != 1) _exit(2);
    while (true) pause();
  }
  close(ready[1]);
  char word = 0;
  EXPECT_EQ(read(ready[0], &word, 1), 1);
  close(ready[0]);
  return pid;
}

TEST(JoinByAddress, AnAddressThatAnotherUserHasTakenIsPassedOver) {
  if (geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  constexpr mob_rank_t kSize = 4;
  const Secret secret = new_secret();
  const pid_t squatters[] = {occupy(secret, 0), occupy(secret, 1)};
  testing::internal::CaptureStderr();
  Children children;
  for (mob_rank_t rank = 1; rank < kSize; ++rank) {
    children.start([&, rank] {
      int segment = -1;
      bool pid_is_shared = false;
      return join_by_address({secret, rank, kSize}, &segment, &pid_is_shared) == MOB_OK;
    });
  }
  // When a squatter ends, the others join where this process, which finds the address free, waits.
  kill(squatters[0], SIGKILL);
  waitpid(squatters[0], nullptr, 0);
  int segment = -1;
  bool pid_is_shared = false;
  EXPECT_EQ(join_by_address({secret, 0, kSize}, &segment, &pid_is_shared), MOB_OK)
      << mob_last_error();
  close(segment);
  children.expect_success();
  kill(squatters[1], SIGKILL);
  waitpid(squatters[1], nullptr, 0);
  testing::internal::GetCapturedStderr();
}

TEST(JoinByAddress, AUserWhoTakesAllAddressesIsNamed) {
  if (geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  const Secret secret = new_secret();
  std::vector<pid_t> squatters;
  for (unsigned attempt = 0; attempt < 8; ++attempt) squatters.push_back(occupy(secret, attempt));
  testing::internal::CaptureStderr();
  int segment = -1;
  bool pid_is_shared = false;
  EXPECT_EQ(join_by_address({secret, 0, 2}, &segment, &pid_is_shared), MOB_ERR_SYSTEM);
  EXPECT_NE(std::string(mob_last_error()).find("another user has taken all"), std::string::npos);
  for (const pid_t pid : squatters) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  EXPECT_NE(testing::internal::GetCapturedStderr().find("another user has taken the address"),
            std::string::npos);
}

}  // namespace
}  // namespace mobius::job
