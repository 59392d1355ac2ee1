// SPDX-License-Identifier: BSD-3-Clause
#include "os/process/process.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "shared_processes.h"

namespace {

using mobius::os::process_is_ending;
using mobius::os::process_start_time;
using mobius::os::ProcessWatch;
using mobius_test::Children;
using mobius_test::SharedZeros;

bool sleep_for_ever() {
  while (true) pause();
}

void wait_for_end_without_reaping(pid_t pid) {
  siginfo_t ended{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT), 0);
}

TEST(Process, StartTimeStaysAndOrdersProcesses) {
  const uint64_t own = process_start_time(getpid());
  EXPECT_GT(own, 0U);
  EXPECT_EQ(process_start_time(getpid()), own);
  Children children;
  EXPECT_GE(process_start_time(children.start(sleep_for_ever)), own);
}

TEST(Process, StartTimeIsFoundBehindAnyName) {
  const uint64_t before = process_start_time(getpid());
  char name[16]{};
  prctl(PR_GET_NAME, name, 0, 0, 0);
  prctl(PR_SET_NAME, ") R 1 (2 3", 0, 0, 0);
  EXPECT_EQ(process_start_time(getpid()), before);
  prctl(PR_SET_NAME, name, 0, 0, 0);
}

TEST(Process, StartTimeOfNobodyIsZero) {
  Children children;
  const pid_t pid = children.start(sleep_for_ever);
  children.kill_one(pid);
  EXPECT_EQ(process_start_time(pid), 0U);
}

TEST(Process, NeitherTheLivingNorZombiesAreEnding) {
  Children children;
  const pid_t pid = children.start(sleep_for_ever);
  EXPECT_FALSE(process_is_ending(pid));
  EXPECT_FALSE(process_is_ending(getpid()));
  kill(pid, SIGKILL);
  wait_for_end_without_reaping(pid);
  EXPECT_FALSE(process_is_ending(pid));
}

// In a namespace of process ids whose processes are not those that /proc numbers, as after
// `unshare --pid --fork`.
TEST(ProcessWatch, WhereProcIsAnotherNamespacesTheLivingAreNotDead) {
  Children children;
  SharedZeros<std::atomic<int>> refused;
  children.start([&] {
    if (unshare(CLONE_NEWPID) != 0) {
      *refused = 1;
      return true;
    }
    const pid_t first = fork();
    if (first != 0) {
      int status = 0;
      return waitpid(first, &status, 0) == first && status == 0;
    }
    // Process 1 of the namespace. Others, which /proc knows under other numbers.
    const pid_t other = fork();
    if (other == 0) sleep_for_ever();
    const uint64_t own = process_start_time(getpid());
    ProcessWatch watch;
    bool good = !mobius::os::proc_is_ours() && own != 0 && process_start_time(other) == 0;
    good = good && !watch.has_ended(other, own);
    kill(other, SIGKILL);
    wait_for_end_without_reaping(other);
    good = good && watch.has_ended(other, own);
    waitpid(other, nullptr, 0);
    ProcessWatch late;
    good = good && late.has_ended(other, own);
    _exit(good ? 0 : 1);
  });
  children.expect_success();
  if (*refused != 0) GTEST_SKIP() << "namespaces of process ids may not be made here";
}

TEST(ProcessWatch, SeesTheEndBeforeAnybodyReapsIt) {
  Children children;
  const pid_t pid = children.start(sleep_for_ever);
  const uint64_t start = process_start_time(pid);
  ProcessWatch early;
  EXPECT_FALSE(early.has_ended(pid, start));
  EXPECT_FALSE(early.has_ended(pid, start));
  kill(pid, SIGKILL);
  wait_for_end_without_reaping(pid);
  EXPECT_TRUE(early.has_ended(pid, start));
  ProcessWatch late;  // opened when the process is a zombie
  EXPECT_TRUE(late.has_ended(pid, start));
}

TEST(ProcessWatch, ProcessThatIsGone) {
  Children children;
  const pid_t pid = children.start(sleep_for_ever);
  const uint64_t start = process_start_time(pid);
  children.kill_one(pid);
  ProcessWatch watch;
  EXPECT_TRUE(watch.has_ended(pid, start));
  EXPECT_TRUE(watch.has_ended(pid, start));
}

TEST(ProcessWatch, AnotherProcessWithTheSamePidDoesNotCount) {
  Children children;
  const pid_t pid = children.start(sleep_for_ever);
  ProcessWatch watch;
  EXPECT_TRUE(watch.has_ended(pid, process_start_time(pid) - 1));
}

TEST(ProcessWatch, StoppedIsNotEnded) {
  Children children;
  const pid_t pid = children.start(sleep_for_ever);
  ProcessWatch watch;
  kill(pid, SIGSTOP);
  siginfo_t stopped{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &stopped, WSTOPPED | WNOWAIT), 0);
  EXPECT_FALSE(watch.has_ended(pid, process_start_time(pid)));
}

// A process that has used up its descriptors can open neither a pidfd nor a file of /proc.
TEST(ProcessWatch, AProcessThatCannotLookSeesNobodyEnd) {
  Children children;
  const pid_t pid = children.start(sleep_for_ever);
  const pid_t gone = children.start(sleep_for_ever);
  const uint64_t start = process_start_time(pid);
  const uint64_t start_of_gone = process_start_time(gone);
  children.kill_one(gone);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = dup(STDERR_FILENO);
  ASSERT_GE(lowest_free, 0);
  close(lowest_free);
  // No descriptor is left, or one, which the pidfd takes.
  for (const rlim_t left : {0, 1}) {
    ProcessWatch watch;
    ProcessWatch watch_of_gone;
    rlimit few = before;
    few.rlim_cur = static_cast<rlim_t>(lowest_free) + left;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_FALSE(watch.has_ended(pid, start)) << left;
    EXPECT_TRUE(watch_of_gone.has_ended(gone, start_of_gone)) << left;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_FALSE(watch.has_ended(pid, start)) << left;
  }
}

}  // namespace
