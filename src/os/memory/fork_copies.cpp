// SPDX-License-Identifier: BSD-3-Clause
#include "os/memory/fork_copies.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "os/memory/private_views.h"

namespace mobius::os {
namespace {

struct Copied {
  uintptr_t start;
  size_t bytes;
  SharedPlace place;
};

// Never destroyed: the program may fork() after the end of main().
struct State {
  std::mutex mutex;  // held from before fork() until both processes are done with it
  std::vector<Copied> copied;
  std::vector<ForkGuard> guards;
  bool is_copying = false;
  int done[2] = {-1, -1};  // a pipe: the child writes a byte, or its end closes
};

State& state() {
  static auto& single = *new State;
  return single;
}

void before_fork() {
  State& now = state();
  now.mutex.lock();
  now.is_copying = !now.copied.empty();
  if (!now.is_copying) return;
  for (const ForkGuard& guard : now.guards) guard.before(guard.context);
  // Without a pipe the parent does not wait; then the child may copy contents of some moments
  // later.
  if (pipe2(now.done, O_CLOEXEC) != 0) now.done[0] = now.done[1] = -1;
}

void after_fork_in_parent() {
  State& now = state();
  if (now.is_copying) {
    // Nothing is written until the child has its copy, because this code's own data may lie in the
    // pages.
    if (now.done[1] >= 0) close(now.done[1]);
    char byte = 0;
    // Ends also if the child died, or fork() failed.
    while (now.done[0] >= 0 && read(now.done[0], &byte, 1) < 0 && errno == EINTR) {
    }
    if (now.done[0] >= 0) close(now.done[0]);
    now.done[0] = now.done[1] = -1;
    for (const ForkGuard& guard : now.guards) guard.after(guard.context);
  }
  now.mutex.unlock();
}

void after_fork_in_child() {
  State& now = state();
  if (now.is_copying) {
    for (const Copied& each : now.copied) {
      if (leave_place(each.start, each.bytes, each.place) == MOB_OK) continue;
      // A child that continued with its parent's memory would destroy it.
      constexpr std::string_view kMessage =
          "mobius: fork: no memory for the child's copy of the program's shared memory; it ends\n";
      [[maybe_unused]] const ssize_t said = write(STDERR_FILENO, kMessage.data(), kMessage.size());
      _exit(127);
    }
    [[maybe_unused]] const ssize_t told = write(now.done[1], "", 1);
    for (int& end : now.done) {
      if (end >= 0) close(end);
      end = -1;
    }
    // The child's pages are its own now: its children get them like any other memory.
    for (const Copied& each : now.copied) close(each.place.descriptor);
    now.copied.clear();
    for (const ForkGuard& guard : now.guards) guard.in_child(guard.context);
    now.guards.clear();
  }
  now.mutex.unlock();
}

}  // namespace

mob_status_t begin_copies(uintptr_t start, size_t bytes, SharedPlace place) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  static const int registered =
      pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (registered != 0) {
    return base::fail_errno(MOB_ERR_MEMORY, registered, "registering handlers for fork() failed");
  }
  // A descriptor of its own: these pages may stay shared for longer than the job lasts.
  const int descriptor = fcntl(place.descriptor, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) {
    return base::fail_errno(MOB_ERR_SYSTEM, errno,
                            "cannot duplicate the descriptor of pages that "
                            "children of fork() copy");
  }
  now.copied.push_back({start, bytes, {descriptor, place.offset}});
  return MOB_OK;
}

void end_copies(uintptr_t start, SharedPlace place) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  std::erase_if(now.copied, [=](const Copied& each) {
    const bool is_meant = each.start == start && each.place.offset == place.offset;
    if (is_meant) close(each.place.descriptor);
    return is_meant;
  });
}

void add_fork_guard(const ForkGuard& guard) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  now.guards.push_back(guard);
}

void remove_fork_guard(const void* context) {
  State& now = state();
  const std::lock_guard lock(now.mutex);
  std::erase_if(now.guards, [=](const ForkGuard& each) { return each.context == context; });
}

}  // namespace mobius::os
