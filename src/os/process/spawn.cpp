// SPDX-License-Identifier: BSD-3-Clause
#include "os/process/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace mobius::os {
namespace {

// Written by the child, which shares the parent's memory until it executes the program.
struct Failure {
  int error = 0;
  const char* step = nullptr;
};

[[noreturn]] void fail(volatile Failure* failure, const char* step) {
  failure->error = errno;
  failure->step = step;
  _exit(127);
}

// Runs in the parent's memory, so it makes system calls only, allocates nothing and changes nothing
// else.
[[noreturn]] void become(const SpawnArguments& request, pid_t parent, char* const* shell_arguments,
                         volatile Failure* failure) {
  if (request.own_group && setpgid(0, 0) != 0) fail(failure, "setpgid");
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) fail(failure, "prctl");
  if (getppid() != parent) _exit(127);  // the parent died before prctl()
  if (dup2(request.input, STDIN_FILENO) < 0 || dup2(request.output, STDOUT_FILENO) < 0 ||
      dup2(request.error_output, STDERR_FILENO) < 0) {
    fail(failure, "dup2");
  }
  if (request.processors != nullptr &&
      sched_setaffinity(0, request.processors_bytes, request.processors) != 0) {
    fail(failure, "sched_setaffinity");
  }
  if (request.descriptor_limit != nullptr &&
      setrlimit(RLIMIT_NOFILE, request.descriptor_limit) != 0) {
    fail(failure, "setrlimit");
  }
  for (const int descriptor : request.descriptors) {
    if (fcntl(descriptor, F_SETFD, 0) != 0) fail(failure, "fcntl");
  }
  if (request.folder != nullptr && chdir(request.folder) != 0) fail(failure, "chdir");
  sigprocmask(SIG_SETMASK, request.signal_mask, nullptr);
  execve(request.path, request.arguments, request.environment);
  if (errno == ENOEXEC) {
    execve(shell_arguments[0], shell_arguments, request.environment);
    errno = ENOEXEC;
  }
  fail(failure, "execve");
}

}  // namespace

Spawned spawn(const SpawnArguments& request) {
  volatile Failure failure;
  const pid_t parent = getpid();
  // A script without "#!" is one for sh, as in shells.
  static char shell[] = "/bin/sh";
  std::vector<char*> shell_arguments{shell, const_cast<char*>(request.path)};
  for (char* const* argument = request.arguments + 1; *argument != nullptr; ++argument) {
    shell_arguments.push_back(*argument);
  }
  shell_arguments.push_back(nullptr);

  // Copying the page tables as fork() does would be most of the time it takes to start a job.
  const pid_t pid = vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (pid == 0) become(request, parent, shell_arguments.data(), &failure);
  if (pid < 0) return {-1, errno, "fork"};
  if (failure.error == 0) return {pid, 0, nullptr};
  waitpid(pid, nullptr, 0);
  return {-1, failure.error, failure.step};
}

}  // namespace mobius::os
