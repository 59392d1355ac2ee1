// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Forked processes over one shared mapping, for tests of objects in shared memory.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <vector>

namespace mobius_test {

// One T in zeroed memory that children share.
template <typename T>
class SharedZeros {
 public:
  SharedZeros()
      : memory_(
            mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) std::abort();
  }
  ~SharedZeros() { munmap(memory_, sizeof(T)); }
  SharedZeros(const SharedZeros&) = delete;
  SharedZeros& operator=(const SharedZeros&) = delete;

  T* operator->() { return static_cast<T*>(memory_); }
  T& operator*() { return *static_cast<T*>(memory_); }

 private:
  void* memory_;
};

// Its destructor kills the processes that still run.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (const pid_t pid : running_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  // Runs `body` in a new process, which succeeds if `body` returns true. Fork before starting any
  // thread.
  pid_t start(const std::function<bool()>& body) {
    const pid_t pid = fork();
    if (pid == 0) _exit(body() ? 0 : 1);
    EXPECT_GT(pid, 0);
    running_.push_back(pid);
    return pid;
  }

  void kill_one(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    std::erase(running_, pid);
  }

  // Waits for all and expects success.
  void expect_success() {
    for (const pid_t pid : running_) {
      int status = -1;
      EXPECT_EQ(waitpid(pid, &status, 0), pid);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
    }
    running_.clear();
  }

 private:
  std::vector<pid_t> running_;
};

}  // namespace mobius_test
