// SPDX-License-Identifier: BSD-3-Clause
#include "os/process/stopped_threads.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <span>

#include "os/process/process.h"
#include "os/sync/futex.h"

namespace mobius::os {
namespace {

constexpr int kSignal = SIGURG;
// Five seconds: where many threads share a CPU, each must run once.
constexpr int kLooks = 10'000;
constexpr int kPatientLooks =
    40;  // checks before a thread that blocks the signal counts as one that keeps blocking it
constexpr uint64_t kLongestSleepNs = 1'000'000;
constexpr int kShortLooks = 8;  // threads that run, or wait in the kernel, stop within these
constexpr long kBetweenLooksNs = 500'000;

// Static, because handlers use it.
std::mutex stopping;
std::atomic<uint32_t> round_number;  // odd while threads must wait
std::atomic<int> waiting;
struct sigaction before;

void wait_in_handler(int) {
  const int error = errno;
  const uint32_t now = round_number.load(std::memory_order_acquire);
  if (now % 2 != 0) {  // otherwise the round is over
    waiting.fetch_add(1, std::memory_order_acq_rel);
    while (round_number.load(std::memory_order_acquire) == now) {
      // With a time limit, because the page of this word may be moved: a thread that went to sleep
      // before the move is not woken after it.
      futex_wait(&round_number, now, kLongestSleepNs);
    }
    waiting.fetch_sub(1, std::memory_order_acq_rel);
  }
  errno = error;
}

// Reads a file of /proc/self/task/THREAD. Does not allocate. Empty if there is no such thread.
template <size_t kRoom>
void read_task_file(pid_t thread, const char* name, char (&text)[kRoom]) {
  std::snprintf(text, kRoom, "/proc/self/task/%d/%s", thread, name);
  const int file = open(text, O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? 0 : read(file, text, kRoom - 1);
  if (file >= 0) close(file);
  text[std::max<ssize_t>(got, 0)] = 0;
}

// Whether a thread has ended: the first thread of a process stays in the kernel's list after its
// end, until all others have ended.
bool has_ended(pid_t thread) {
  char text[4096];
  read_task_file(thread, "status", text);
  return std::strstr(text, "State:\tZ") != nullptr || std::strstr(text, "State:\tX") != nullptr;
}

// The threads of this process except the caller, as the kernel lists them. Does not use the C
// library, whose directory functions allocate memory. More threads than fit count as one that
// cannot be stopped.
class OtherThreads {
 public:
  // 0, or the reason (errno) why there is no list.
  int read() {
    count_ = 0;
    const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return errno;
    const bool ids_are_ours = proc_is_ours();
    const pid_t process = getpid();
    const auto self = static_cast<pid_t>(syscall(SYS_gettid));
    alignas(8) char buffer[4096];
    long got = 0;
    while ((got = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0) {
      for (long at = 0; at < got;) {
        // d_ino 8, d_off 8, d_reclen 2, d_type 1, d_name
        const char* entry = buffer + at;
        at += *reinterpret_cast<const uint16_t*>(entry + 16);
        const auto thread = static_cast<pid_t>(std::strtol(entry + 19, nullptr, 10));
        if (thread <= 0 || thread == self || count_ == ids_.size()) continue;
        if (thread == process && has_ended(thread)) continue;
        ids_[count_++] = thread;
      }
    }
    const int error = got < 0 ? errno : 0;
    close(folder);
    if (error != 0) return error;
    if (count_ == ids_.size()) return EOVERFLOW;
    if (ids_are_ours) return 0;
    // The ids mean nothing here, but a list of one is that of the caller.
    const bool is_alone = count_ == 1;
    count_ = 0;
    return is_alone ? 0 : ENOTSUP;
  }
  std::span<const pid_t> ids() const { return {ids_.data(), count_}; }
  bool has(pid_t thread) const { return std::ranges::find(ids(), thread) != ids().end(); }
  void clear() { count_ = 0; }
  void add(pid_t thread) {
    if (count_ < ids_.size()) ids_[count_++] = thread;
  }

 private:
  std::array<pid_t, 2048> ids_;
  size_t count_ = 0;
};

// The signal mask of a thread in the handler, as the kernel shows it.
uint64_t handler_mask() {
  sigset_t all;
  sigfillset(&all);
  uint64_t mask = 0;
  for (int signal = 1; signal <= 64; ++signal) {
    const bool blocked = signal != SIGKILL && signal != SIGSTOP && sigismember(&all, signal) == 1;
    mask |= uint64_t{blocked} << (signal - 1);
  }
  return mask;
}

// Whether a thread blocks a signal that is pending for it, and will keep blocking it. A thread that
// blocks all signals, and is runnable or waits for a page, may be leaving the handler of the former
// round, or may have just been started by the C library, which starts threads that way.
bool refuses_signal(pid_t thread) {
  char text[4096];
  read_task_file(thread, "status", text);
  const auto set_of = [&](const char* name) -> uint64_t {
    const char* at = std::strstr(text, name);
    return at != nullptr ? std::strtoull(at + std::strlen(name), nullptr, 16) : 0;
  };
  const uint64_t blocked = set_of("SigBlk:");
  if (((blocked & set_of("SigPnd:")) >> (kSignal - 1)) % 2 == 0) return false;
  const bool goes_on =
      std::strstr(text, "State:\tR") != nullptr || std::strstr(text, "State:\tD") != nullptr;
  return !goes_on || (blocked & handler_mask()) != handler_mask();
}

// Before the next look: at first only others' turn on the processor, then ever longer.
void sleep_between_looks(int look) {
  if (look < kShortLooks / 2) {
    sched_yield();
    return;
  }
  const timespec time = {0, kBetweenLooksNs >> std::max(kShortLooks - look, 0)};
  nanosleep(&time, nullptr);
}

// The number of these threads that still exist.
int alive(pid_t process, const OtherThreads& threads) {
  return static_cast<int>(std::ranges::count_if(threads.ids(), [process](pid_t thread) {
    return syscall(SYS_tgkill, process, thread, 0) == 0;
  }));
}

// Stops all threads, including those that other threads start meanwhile. Returns the number left.
// `*error` becomes the reason if they could not be listed.
int stop_all(int* error) {
  static OtherThreads threads;
  static OtherThreads signalled;  // each thread once: the list may lack a thread for a moment
  signalled.clear();
  const pid_t process = getpid();
  int left = 1;
  for (int look = 0; look < kLooks && left > 0; ++look) {
    if (look > 0) sleep_between_looks(look - 1);
    *error = threads.read();
    if (*error != 0) return 1;
    for (const pid_t thread : threads.ids()) {
      if (signalled.has(thread)) continue;
      signalled.add(thread);
      syscall(SYS_tgkill, process, thread, kSignal);
    }
    // A thread that ends is no longer listed, or soon will not be.
    left = static_cast<int>(threads.ids().size()) - waiting.load(std::memory_order_acquire);
    // A thread missing from the list would count as stopped, so the threads seen before are looked
    // up by id.
    if (left <= 0) left = alive(process, signalled) - waiting.load(std::memory_order_acquire);
    // The others may only be waiting for a processor.
    if (left > 0 && look % kPatientLooks == kPatientLooks - 1 &&
        std::ranges::count_if(threads.ids(), refuses_signal) >= left) {
      break;
    }
  }
  return left;
}

}  // namespace

StoppedThreads::StoppedThreads() : one_at_a_time_(stopping) {
  struct sigaction action{};
  action.sa_handler = wait_in_handler;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(kSignal, &action, &before);
  round_number.fetch_add(1, std::memory_order_acq_rel);
  left_ = stop_all(&error_);
}

StoppedThreads::~StoppedThreads() {
  round_number.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(&round_number, INT_MAX);
  // The next round starts from zero.
  for (int look = 0; waiting.load(std::memory_order_acquire) > 0; ++look) sleep_between_looks(look);
  sigaction(kSignal, &before, nullptr);
}

}  // namespace mobius::os
