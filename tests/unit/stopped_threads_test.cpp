// SPDX-License-Identifier: BSD-3-Clause
#include "os/process/stopped_threads.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <thread>
#include <vector>

namespace mobius::os {
namespace {

// Threads that count, each its own counter, until the end.
class Counting {
 public:
  explicit Counting(size_t threads) : counts_(threads) {
    for (auto& count : counts_) {
      threads_.emplace_back([this, &count] {
        while (!end_.load(std::memory_order_relaxed)) count.fetch_add(1);
      });
    }
  }
  ~Counting() {
    end_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  std::vector<uint64_t> counts() const { return {counts_.begin(), counts_.end()}; }

 private:
  std::vector<std::atomic<uint64_t>> counts_;
  std::vector<std::thread> threads_;
  std::atomic<bool> end_ = false;
};

void sleep_some_ms() {
  constexpr timespec kTime = {0, 20'000'000};
  nanosleep(&kTime, nullptr);
}

class Stopping : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer keeps signals from threads until they call the C library";
#endif
  }
};

TEST_F(Stopping, NobodyElseRuns) {
  const Counting counting(5);
  for (int i = 0; i < 3; ++i) {
    std::vector<uint64_t> before;
    std::vector<uint64_t> after;
    before.reserve(5);
    after.reserve(5);
    {
      const StoppedThreads stopped;
      ASSERT_EQ(stopped.left(), 0);
      before = counting.counts();
      sleep_some_ms();
      after = counting.counts();
    }
    EXPECT_EQ(before, after);
    while (counting.counts() == after) std::this_thread::yield();
  }
}

// Threads that have not left the handler of one stop when the next begins do not count as blocking
// the signal.
TEST_F(Stopping, OneStopAfterTheOther) {
  const Counting counting(4 * std::max(2u, std::thread::hardware_concurrency()));
  for (int i = 0; i < 100; ++i) {
    const StoppedThreads stopped;
    ASSERT_EQ(stopped.left(), 0) << "stop " << i;
  }
}

TEST_F(Stopping, SystemCallsGoOn) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  char byte = 0;
  ssize_t got = -1;
  std::thread reader([&] { got = read(ends[0], &byte, 1); });
  sleep_some_ms();
  {
    const StoppedThreads stopped;
    EXPECT_EQ(stopped.left(), 0);
  }
  EXPECT_EQ(write(ends[1], "x", 1), 1);
  reader.join();
  EXPECT_EQ(got, 1);
  EXPECT_EQ(byte, 'x');
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Stopping, OneThatBlocksTheSignalIsLeft) {
  sigset_t urgent;
  sigset_t before;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  pthread_sigmask(SIG_BLOCK, &urgent, &before);
  const Counting counting(1);  // inherits the blocked signal
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  const Counting others(2);
  {
    const StoppedThreads stopped;
    EXPECT_EQ(stopped.left(), 1);
  }
  const auto count = others.counts();
  while (others.counts() == count) std::this_thread::yield();
}

// Without a descriptor nobody knows which threads there are. That is told, and no thread is said to
// block the signal.
TEST_F(Stopping, ThreadsThatCannotBeListedAreToldApartFromThoseThatBlockTheSignal) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  int left = 0;
  int error = 0;
  {
    const StoppedThreads stopped;
    left = stopped.left();
    error = stopped.error();
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_GT(left, 0);
  EXPECT_EQ(error, EMFILE);
  const StoppedThreads stopped;
  EXPECT_EQ(stopped.error(), 0);
}

// The C library blocks all signals in a thread that it has just started, also those that programs
// cannot block; the thread may wait long for its first turn on a processor.
TEST_F(Stopping, OneThatBlocksAllForAWhileIsWaitedFor) {
  constexpr auto kWhile = std::chrono::milliseconds(100);
  std::atomic<bool> blocks = false;
  std::atomic<bool> end = false;
  std::thread thread([&] {
    uint64_t all = UINT64_MAX;
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    blocks = true;
    const auto until = std::chrono::steady_clock::now() + kWhile;
    while (std::chrono::steady_clock::now() < until) {
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
    while (!end) std::this_thread::yield();
  });
  while (!blocks) std::this_thread::yield();
  {
    const StoppedThreads stopped;
    EXPECT_EQ(stopped.left(), 0);
  }
  end = true;
  thread.join();
}

// The program's own handler of the signal stays in place.
TEST_F(Stopping, TheProgramsHandlerIsBackAfterwards) {
  static std::atomic<int> handled;
  handled = 0;
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) { ++handled; };
  ASSERT_EQ(sigaction(SIGURG, &action, &before), 0);
  {
    const Counting counting(2);
    const StoppedThreads stopped;
    EXPECT_EQ(stopped.left(), 0);
  }
  EXPECT_EQ(handled, 0);
  raise(SIGURG);
  EXPECT_EQ(handled, 1);
  sigaction(SIGURG, &before, nullptr);
}

}  // namespace
}  // namespace mobius::os
