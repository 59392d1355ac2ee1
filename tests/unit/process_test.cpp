// SPDX-License-Identifier: BSD-3-Clause
#include "os/process.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared_processes.h"

namespace {

using mobius::os::process_start_time;
using mobius::os::ProcessWatch;
using mobius_test::Children;

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
TEST(ProcessWatch, WhoCannotLookSeesNobodyEnd) {
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
